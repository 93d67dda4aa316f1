//! The optional verbs: tags, images and the console.
//!
//! Owns the order of steps in a change of tags. Between any two steps an instance must be found by
//! its old or its new tags.
//!
//! | verb | state | native calls |
//! | --- | --- | --- |
//! | `update_tags` | not terminated | `get`, `setLabels`; `setMetadata` and `setLabels` again for other tags |
//! | `reboot_instance` | running | `reset`, and a wait for `launch_wait` |
//! | `resize_instance` | stopped | `setMachineType`, until done |
//! | `console_output` | not terminated | `getSerialPortOutput` |
//! | `console_session` | running | none |
//! | `snapshot_image` | running or stopped | `images.get`, `images.insert` |
//!
//! Deleting an image is in [`image`](crate::image).

use fleetwright::{
    Call, CloudInstanceState, Effect, ImageId, InstanceId, InvalidValue, Operation, Problem,
    Result, RetryAdvice, SnapshotRequest, TagChange, Tags,
};
use fleetwright_provider_support::ReadInstances as _;
use google_cloud_compute_v1::model::{
    Image, Instance, InstancesSetLabelsRequest, Operation as NativeOperation,
};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    GcpProvisioner,
    address::{self, Address},
    client::OperationScope,
    error::{Cause, ErrorContext, Failure, GcpFailure as _},
    history, labels, metadata,
    options::MAX_LABELS,
};

/// The label of an image with the number of its source instance.
pub(crate) const SOURCE_LABEL: &str = "fwx-source";

/// How often a change of tags starts again because another actor changed them at the same time.
const MAX_RACES: u32 = 5;

/// The states in which an instance can be changed.
const ALIVE: [CloudInstanceState; 4] = [
    CloudInstanceState::Pending,
    CloudInstanceState::Running,
    CloudInstanceState::Stopping,
    CloudInstanceState::Stopped,
];

impl GcpProvisioner {
    /// Returns the address in an id, or a not-found error.
    pub(crate) fn at(&self, call: &Call, id: &InstanceId) -> Result<Address> {
        self.address(id).ok_or_else(|| self.not_found_yet(call, id))
    }

    /// Changes tags in three steps: add the labels that the new tags need, replace the metadata,
    /// remove the old labels. If it ends in between, the instance is still found by its tags, and a
    /// repetition completes it.
    pub(crate) async fn retag(
        &self,
        call: &Call,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let at = self.at(call, id)?;
        self.describe_in_state(call.operation(), id, &ALIVE, "not terminated")
            .await?;
        let mut begun = false;
        for _ in 0..MAX_RACES {
            match self.retag_once(call, id, &at, change, &mut begun).await {
                Err(Retag::Raced) => sleep(self.capabilities.poll_interval).await,
                // The first steps may have been applied.
                Err(Retag::Failed(error)) if begun => {
                    return Err(error.with_effect(Effect::Unknown));
                }
                Err(Retag::Failed(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        let error = call.conflict("another actor keeps changing the tags; retry later", retry);
        Err(if begun {
            error.with_effect(Effect::Unknown)
        } else {
            error
        })
    }

    /// Reads the instance and applies the steps once.
    async fn retag_once(
        &self,
        call: &Call,
        id: &InstanceId,
        at: &Address,
        change: &TagChange,
        begun: &mut bool,
    ) -> std::result::Result<(), Retag> {
        let about = self.about(id, at);
        let read = self.client.get(&at.zone, &at.number.to_string()).await;
        let native = read.map_err(|failure| {
            let error = failure.into_error(call, about);
            Retag::Failed(error.with_effect(Effect::None))
        })?;
        let originals = metadata::value(native.metadata.as_ref(), metadata::TAGS);
        let before = labels::decode(&native.labels, originals);
        let invalid = |value| Retag::Failed(call.invalid(value));
        let after = change.apply(&before).map_err(invalid)?;
        self.capabilities.tags.check(&after).map_err(invalid)?;
        let Some(steps) = Steps::new(&native, &before, &after) else {
            return Ok(());
        };
        let to_error = |failure: Failure| {
            if failure.is_stale() {
                return Retag::Raced;
            }
            Retag::Failed(failure.into_error(call, about))
        };
        let Some(originals) = steps.originals else {
            self.replace_labels(at, &native, steps.last)
                .await
                .map_err(to_error)?;
            return Ok(());
        };
        self.replace_labels(at, &native, steps.first)
            .await
            .map_err(to_error)?;
        *begun = true;
        let items = metadata::with(
            native.metadata.as_ref(),
            metadata::TAGS,
            originals.as_deref(),
        );
        let sent = self.client.set_metadata(at, items).await;
        self.await_change(at, sent).await.map_err(to_error)?;
        // The first step has changed the fingerprint of the labels.
        let read = self.client.get(&at.zone, &at.number.to_string()).await;
        let native = read.map_err(to_error)?;
        self.replace_labels(at, &native, steps.last)
            .await
            .map_err(to_error)
    }

    /// Replaces all labels, if they have not changed since `native` was read.
    async fn replace_labels(
        &self,
        at: &Address,
        native: &Instance,
        labels: Labels,
    ) -> std::result::Result<(), Failure> {
        let body = InstancesSetLabelsRequest::new()
            .set_or_clear_label_fingerprint(native.label_fingerprint.clone())
            .set_labels(labels);
        let sent = self.client.set_labels(at, body).await;
        self.await_change(at, sent).await
    }

    /// Waits until a change is done. A change whose end cannot be read fails with a timeout.
    pub(crate) async fn await_change(
        &self,
        at: &Address,
        sent: std::result::Result<NativeOperation, Failure>,
    ) -> std::result::Result<(), Failure> {
        let timeout = self.options.call_timeout;
        let operation = self
            .await_operation(OperationScope::Zone(&at.zone), sent?, timeout)
            .await;
        if !history::is_over(&operation) {
            let failure = Failure::new(Cause::TimedOut, "the operation did not end in time");
            return Err(failure.with_request_id(operation.name));
        }
        history::failure(&operation).map_or(Ok(()), Err)
    }

    /// Creates an image of the boot disk, or returns the one that an earlier attempt created.
    pub(crate) async fn snapshot_boot_disk(
        &self,
        call: &Call,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        if !address::is_name(&request.name) {
            let expected = "lowercase letters, digits and hyphens, at most 63, a letter in front";
            let value = InvalidValue::new("snapshot name", Problem::Malformed { expected });
            return Err(call.invalid(value));
        }
        let at = self.at(call, id)?;
        let to_error = |failure: Failure| failure.into_error(call, self.about(id, &at));
        let states = [CloudInstanceState::Running, CloudInstanceState::Stopped];
        self.describe_in_state(call.operation(), id, &states, "running or stopped")
            .await?;
        match self.client.image(&request.name).await {
            Ok(image) => self.check_source(call, &at, &request.name, &image)?,
            Err(failure) if failure.is_not_found() => {
                self.create_image(call, &at, request).await?;
            }
            Err(failure) => return Err(to_error(failure).with_effect(Effect::None)),
        }
        let path = format!(
            "projects/{}/global/images/{}",
            self.client.project(),
            request.name
        );
        ImageId::new(path).map_err(|error| call.unexpected(Effect::Done, &error.to_string()))
    }

    /// Checks that an image was created from this instance.
    fn check_source(&self, call: &Call, at: &Address, name: &str, image: &Image) -> Result<()> {
        if image.labels.get(SOURCE_LABEL) == Some(&at.number.to_string()) {
            return Ok(());
        }
        let message = format!("another image is named {name}; choose another name");
        Err(call.conflict(&message, RetryAdvice::Never))
    }

    /// Creates the image, with a label that names its source.
    async fn create_image(
        &self,
        call: &Call,
        at: &Address,
        request: &SnapshotRequest,
    ) -> Result<()> {
        let to_error = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let read = self.client.get(&at.zone, &at.number.to_string()).await;
        let native = read.map_err(|failure| to_error(failure).with_effect(Effect::None))?;
        let boot = native.disks.iter().find(|disk| disk.boot == Some(true));
        let disk = boot.and_then(|disk| disk.source.clone());
        let no_disk = || call.unexpected(Effect::None, "the instance has no boot disk");
        let encoded = labels::encode(&request.tags);
        let image = Image::new()
            .set_name(&request.name)
            .set_source_disk(disk.ok_or_else(no_disk)?)
            .set_labels(encoded.labels)
            .set_or_clear_description(encoded.originals);
        let mut image = image;
        image
            .labels
            .insert(SOURCE_LABEL.to_owned(), at.number.to_string());
        let request_id = Uuid::new_v4().to_string();
        match self.client.insert_image(image, &request_id).await {
            Ok(operation) => {
                history::failure(&operation).map_or(Ok(()), |failure| Err(to_error(failure)))
            }
            // A concurrent call has created it.
            Err(failure) if failure.is_taken() => {
                let image = self.client.image(&request.name).await.map_err(to_error)?;
                self.check_source(call, at, &request.name, &image)
            }
            Err(failure) => Err(to_error(failure)),
        }
    }

    /// Returns the URL of the serial console in a browser.
    pub(crate) fn console_url(at: &Address) -> String {
        let Address {
            project,
            zone,
            name,
            ..
        } = at;
        format!(
            "https://ssh.cloud.google.com/v2/ssh/projects/{project}/zones/{zone}/instances/{name}?serialConsole=true"
        )
    }

    /// Checks that an instance is in one of `states`, which `needed` describes. Returns call and
    /// address.
    pub(crate) async fn require_state(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<(Call, Address)> {
        let call = self.call(operation);
        let at = self.at(&call, id)?;
        self.describe_in_state(operation, id, states, needed)
            .await?;
        Ok((call, at))
    }
}

/// Why a change of tags did not happen.
enum Retag {
    /// Another actor changed the tags in between. At most, labels were added.
    Raced,
    /// Anything else.
    Failed(fleetwright::ProvisionError),
}

/// Labels by key.
type Labels = std::collections::HashMap<String, String>;

/// The steps of a change of tags.
///
/// Example: from `Team=Blue` to `Team=Red`, neither of which is a valid label.
///
/// 1. labels: the placeholders of both
/// 2. metadata: `{"Team":"Red"}`
/// 3. labels: the placeholder of `Team=Red`
#[derive(Debug, PartialEq, Eq)]
struct Steps {
    /// The labels of the first step, which both the old and the new tags need.
    first: Labels,
    /// The new metadata item, if it changes.
    originals: Option<Option<String>>,
    /// The labels that the new tags need.
    last: Labels,
}

impl Steps {
    /// Returns the steps that change the tags of `native`, or `None` if nothing changes.
    fn new(native: &Instance, before: &Tags, after: &Tags) -> Option<Self> {
        let (old, new) = (labels::encode(before), labels::encode(after));
        let mut last = native.labels.clone();
        last.retain(|key, _| !old.labels.contains_key(key) && !labels::is_placeholder(key));
        last.extend(new.labels);
        // If both do not fit into the limit, some old labels are removed in the first step.
        let mut first = last.clone();
        let removed = native
            .labels
            .iter()
            .filter(|(key, _)| !last.contains_key(*key));
        let room = MAX_LABELS.saturating_sub(last.len());
        first.extend(
            removed
                .take(room)
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        let current = metadata::value(native.metadata.as_ref(), metadata::TAGS);
        let originals = (current != new.originals.as_deref()).then_some(new.originals);
        let same = originals.is_none() && last == native.labels;
        (!same).then_some(Self {
            first,
            originals,
            last,
        })
    }
}

#[cfg(test)]
mod tests;
