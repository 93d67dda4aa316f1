//! Changing tags.
//!
//! Owns which resources have the tags of an instance, and the order of the calls. New tags are set before old ones
//! are removed: an instance can be found by one of them at any moment, also if the process ends in between.

use aws_sdk_ec2::types::Instance;
use fleetwright::{CloudInstanceState, Effect, InstanceId, Operation, Result, TagChange, Tags};
use fleetwright_provider_support::ReadInstances as _;

use crate::{Ec2Provisioner, error::Failure};

/// The states in which tags can change.
const ALIVE: [CloudInstanceState; 4] = [
    CloudInstanceState::Pending,
    CloudInstanceState::Running,
    CloudInstanceState::Stopping,
    CloudInstanceState::Stopped,
];

impl Ec2Provisioner {
    /// Sets and removes tags of an instance, and of the disks and network interfaces that are deleted with it.
    ///
    /// # Errors
    ///
    /// An invalid value, `WrongState` and a failed read have no effect. If the second of two calls fails, the
    /// effect is unknown.
    pub(crate) async fn change_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let operation = Operation::UpdateTags;
        let call = self.call(operation);
        let before = self
            .describe_in_state(operation, id, &ALIVE, "not terminated")
            .await?;
        let after = change
            .apply(&before.tags)
            .map_err(|value| call.invalid(value))?;
        let limits = &self.capabilities.tags;
        limits.check(&after).map_err(|value| call.invalid(value))?;
        let error = |failure: Failure| failure.into_error(&call, self.error_context(id));
        let natives = self.client.describe(std::slice::from_ref(id)).await;
        let natives = natives.map_err(|failure| error(failure).with_effect(Effect::None))?;
        let resources = resources(id, &natives);
        // Old and new tags together may be too many for EC2. Then the old ones must go first.
        let fits = limits.check(&both(&before.tags, change)).is_ok();
        let steps = if fits {
            [Step::Set, Step::Remove]
        } else {
            [Step::Remove, Step::Set]
        };
        let mut changed = false;
        for step in steps {
            let result = match step {
                Step::Set if change.set.is_empty() => continue,
                Step::Remove if change.remove.is_empty() => continue,
                Step::Set => self.client.set_tags(&resources, &change.set).await,
                Step::Remove => self.client.remove_tags(&resources, &change.remove).await,
            };
            result.map_err(|failure| match error(failure) {
                // The first call has changed tags, whatever became of this one.
                partial if changed => partial.with_effect(Effect::Unknown),
                refused => refused,
            })?;
            changed = true;
        }
        Ok(())
    }
}

/// One of the two calls of a change.
#[derive(Clone, Copy)]
enum Step {
    Set,
    Remove,
}

/// Returns the tags that an instance has between the two calls.
fn both(before: &Tags, change: &TagChange) -> Tags {
    let old = before
        .iter()
        .filter(|(key, _)| change.set.get(key).is_none());
    let all = old.chain(change.set.iter());
    Tags::from_observed(all.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// Returns an instance and what is deleted with it: the disks and network interfaces that its launch created. What
/// was attached later is kept at termination unless somebody changes that, and has tags of its own.
fn resources(id: &InstanceId, natives: &[Instance]) -> Vec<String> {
    let mut all = vec![id.to_string()];
    for native in natives {
        let disks = native.block_device_mappings().iter();
        let disks = disks.filter_map(|mapping| mapping.ebs());
        let ours = disks.filter(|disk| disk.delete_on_termination() == Some(true));
        all.extend(ours.filter_map(|disk| disk.volume_id().map(ToOwned::to_owned)));
        let cards = native.network_interfaces().iter().filter(|card| {
            let attachment = card.attachment();
            attachment.and_then(|one| one.delete_on_termination()) == Some(true)
        });
        all.extend(cards.filter_map(|card| card.network_interface_id().map(ToOwned::to_owned)));
    }
    all
}
