//! Checks on instances that must not change: those that no call changed, and those that are
//! terminating or terminated.
//!
//! Owns the comparison of two reads of an instance, field by field. What a cloud calls a state and
//! the reasons that it gives may differ between reads and are never compared.

use std::collections::BTreeSet;

use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceId, InstanceInfo, ProvisionError, Result,
};
use tokio::time::Instant;

use crate::{
    Context, Failure, Pass, require,
    shown::{Shown, quoted},
};

/// Instances that must not change.
impl Context {
    /// Returns the entry of `id` in the list of this scope, once reads show every change so far.
    pub async fn consistent_info(&self, id: &InstanceId) -> Result<InstanceInfo, Failure> {
        self.wait_for_consistent_reads().await;
        let list = self.list(&self.filter()).await?;
        let found = list.into_iter().find(|info| info.id == *id);
        found.ok_or_else(|| Failure::violated(format!("{id} is not in the list of its tags")))
    }

    /// Requires that an instance is as `expected` after `what` was done, once reads show it.
    pub async fn require_unchanged(
        &self,
        what: &str,
        expected: &InstanceInfo,
    ) -> Result<(), Failure> {
        let observed = self.consistent_info(&expected.id).await?;
        let changed = differences(expected, &observed);
        require(changed.is_empty(), || {
            format!("after {what}, {}: {}", expected.id, changed.join("; "))
        })
    }
}

/// Instances whose termination was requested. `since` is a moment before that request was sent.
impl Context {
    /// Returns whether the cloud may have deleted its record of the instance by now.
    pub fn may_be_forgotten(&self, since: Instant) -> bool {
        since.elapsed() >= self.capabilities().terminated_visible
    }

    /// Requires that a call on such an instance was refused as wrong state, or as not found if the
    /// cloud may have deleted its record.
    pub fn require_refused_after_terminate<T: std::fmt::Debug + 'static>(
        &self,
        call: &str,
        result: Result<T>,
        since: Instant,
    ) -> Result<Pass, Failure> {
        if self.is_forgotten(result.as_ref().err(), since) {
            return Ok(Pass::Weaker);
        }
        self.require_refused(call, result, ErrorKind::WrongState)?;
        Ok(Pass::Held)
    }

    /// Requires that such an instance is terminating or terminated once reads show every change, or not
    /// found if the cloud may have deleted its record.
    pub async fn require_ending(&self, id: &InstanceId, since: Instant) -> Result<Pass, Failure> {
        self.wait_for_consistent_reads().await;
        let result = self.provisioner().describe_instance(id).await;
        if self.is_forgotten(result.as_ref().err(), since) {
            return Ok(Pass::Weaker);
        }
        let state = result
            .map_err(|error| Failure::call_failed("describe_instance", &error))?
            .state;
        require(state.is_ending(), || {
            format!("{id} is {state} although its terminate was accepted")
        })?;
        Ok(Pass::Held)
    }

    /// Returns whether an error says that the cloud has deleted its record, at a time when it may.
    pub fn is_forgotten(&self, error: Option<&ProvisionError>, since: Instant) -> bool {
        let not_found = error.is_some_and(|error| error.kind() == ErrorKind::NotFound);
        not_found && self.may_be_forgotten(since)
    }
}

/// Returns the differences between two reads of an instance, except native states and reasons.
pub(crate) fn differences(before: &InstanceInfo, after: &InstanceInfo) -> Vec<String> {
    let tags = before.tags.iter().chain(after.tags.iter());
    let keys: BTreeSet<_> = tags.map(|(key, _)| key).collect();
    let tags = keys.into_iter().filter_map(|key| {
        let (before, after) = (before.tags.get(key), after.tags.get(key));
        let shown = (quoted(before), quoted(after));
        (before != after).then(|| format!("tag {key} must be {} and is {}", shown.0, shown.1))
    });
    let fields = [
        difference("id", &before.id, &after.id),
        difference("state", &before.state, &after.state),
        difference("private address", &before.private_ip, &after.private_ip),
        difference("public address", &before.public_ip, &after.public_ip),
        difference("hardware address", &before.mac_address, &after.mac_address),
        difference("launch time", &before.launch_time, &after.launch_time),
        difference("image", &before.image, &after.image),
        difference("type", &before.instance_type, &after.instance_type),
        difference("placement", &before.placement, &after.placement),
    ];
    fields.into_iter().flatten().chain(tags).collect()
}

/// Returns the difference between two values of a field.
pub(crate) fn difference<T: PartialEq + Shown>(
    field: &str,
    before: &T,
    after: &T,
) -> Option<String> {
    let shown = || (before.shown(), after.shown());
    (before != after).then(|| format!("{field} must be {} and is {}", shown().0, shown().1))
}

/// Returns what a read of a stopped instance must return, given a read while it was `running` and the
/// read `now`: a cloud may or may not release addresses.
pub(crate) fn when_stopped(running: &InstanceInfo, now: &InstanceInfo) -> InstanceInfo {
    let mut expected = running.clone();
    expected.state = CloudInstanceState::Stopped;
    expected.private_ip = now.private_ip;
    expected.public_ip = now.public_ip;
    expected.mac_address = now.mac_address;
    expected.placement.public_address = now.placement.public_address;
    expected
}
