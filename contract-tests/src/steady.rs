//! What must stay as it is: an instance that nothing was done to, and one that is at its end.

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, ProvisionError, Result,
};
use tokio::time::Instant;

use crate::{Arm, Cx, Stop, require};

/// Instances that must not change.
impl Cx {
    /// The entry of `id` in the list of this scope, with everything that was done so far.
    pub async fn settled(&self, id: &InstanceId) -> Result<InstanceInfo, Stop> {
        self.settle_reads().await;
        let list = self.list(&self.filter()).await?;
        let found = list.into_iter().find(|info| info.id == *id);
        found.ok_or_else(|| Stop::violated(format!("{id} is not in the list of its tags")))
    }

    /// Demands that an instance is as `expected` after `what` was done, once reads show it.
    pub async fn is_still(&self, what: &str, expected: &InstanceInfo) -> Result<(), Stop> {
        let seen = self.settled(&expected.id).await?;
        let changed = differences(expected, &seen);
        require(changed.is_empty(), || {
            format!("after {what}, {}: {}", expected.id, changed.join("; "))
        })
    }
}

/// Instances that are terminating or terminated, since a moment before their terminate was sent.
impl Cx {
    /// Whether the cloud may have forgotten an instance by now.
    pub fn may_be_forgotten(&self, since: Instant) -> bool {
        since.elapsed() >= self.capabilities().terminated_visible
    }

    /// Demands that a call on such an instance was refused as wrong state, or as not found where
    /// the cloud may have forgotten it.
    pub fn refused_at_the_end<T: std::fmt::Debug>(
        &self,
        call: &str,
        answer: Result<T>,
        since: Instant,
    ) -> Result<Arm, Stop> {
        if self.is_forgotten(answer.as_ref().err(), since) {
            return Ok(Arm::Weaker);
        }
        self.refused(call, answer, ErrorKind::WrongState)?;
        Ok(Arm::Held)
    }

    /// Demands that such an instance is shown as terminating or terminated once reads have
    /// settled, or not at all where the cloud may have forgotten it.
    pub async fn is_at_its_end(&self, id: &InstanceId, since: Instant) -> Result<Arm, Stop> {
        self.settle_reads().await;
        let answer = self.provisioner().describe_instance(id).await;
        if self.is_forgotten(answer.as_ref().err(), since) {
            return Ok(Arm::Weaker);
        }
        let state = answer
            .map_err(|error| Stop::failed("describe_instance", &error))?
            .state;
        require(state.is_ending(), || {
            format!("{id} is {state} although its terminate was accepted")
        })?;
        Ok(Arm::Held)
    }

    /// Whether an error says that the cloud has forgotten such an instance, and may.
    pub fn is_forgotten(&self, error: Option<&ProvisionError>, since: Instant) -> bool {
        let not_found = error.is_some_and(|error| error.kind() == ErrorKind::NotFound);
        not_found && self.may_be_forgotten(since)
    }
}

/// Of two arms of one clause the weaker one.
pub(crate) fn weaker(one: Arm, other: Arm) -> Arm {
    if one == Arm::Held { other } else { one }
}

/// What tells two views of an instance apart, native words and reasons aside.
pub(crate) fn differences(before: &InstanceInfo, after: &InstanceInfo) -> Vec<String> {
    let mut changed = Vec::new();
    let mut compare = |field: &str, before: &dyn std::fmt::Debug, after: &dyn std::fmt::Debug| {
        let (before, after) = (format!("{before:?}"), format!("{after:?}"));
        if before != after {
            changed.push(format!("{field} must be {before} and is {after}"));
        }
    };
    compare("id", &before.id, &after.id);
    compare("state", &before.state, &after.state);
    compare("private address", &before.private_ip, &after.private_ip);
    compare("public address", &before.public_ip, &after.public_ip);
    compare("hardware address", &before.mac_address, &after.mac_address);
    compare("launch time", &before.launch_time, &after.launch_time);
    compare("tags", &before.tags, &after.tags);
    compare("image", &before.image, &after.image);
    compare("type", &before.instance_type, &after.instance_type);
    compare("placement", &before.placement, &after.placement);
    changed
}

/// The view that must be seen of a stopped instance that was seen as `running`, given what is seen
/// `now`: a cloud may or may not take addresses back.
pub(crate) fn when_stopped(running: &InstanceInfo, now: &InstanceInfo) -> InstanceInfo {
    let mut expected = running.clone();
    expected.state = CloudInstanceState::Stopped;
    expected.private_ip = now.private_ip;
    expected.public_ip = now.public_ip;
    expected.mac_address = now.mac_address;
    expected.placement.public_address = now.placement.public_address;
    expected
}
