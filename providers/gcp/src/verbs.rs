//! The optional verbs.

use fleetwright::{
    Call, CloudInstanceState, Effect, ImageId, InstanceId, InvalidValue, Operation, Problem,
    Result, RetryAdvice, SnapshotRequest, TagChange, Tags,
};
use google_cloud_compute_v1::model::{
    Image, Instance, InstancesSetLabelsRequest, Operation as NativeOperation,
};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{
    GcpProvisioner,
    address::{self, Address},
    error::{Cause, ErrorContext, Failure, GcpFailure as _},
    history, labels, metadata,
    options::MAX_LABELS,
};

/// The label that says which instance an image was made of.
const SOURCE_LABEL: &str = "fwx-source";

/// How often a change of tags begins anew because somebody else changed them at the same time.
const RACES: u32 = 5;

/// The states in which an instance can be changed.
const ALIVE: [CloudInstanceState; 4] = [
    CloudInstanceState::Pending,
    CloudInstanceState::Running,
    CloudInstanceState::Stopping,
    CloudInstanceState::Stopped,
];

impl GcpProvisioner {
    /// An id that an optional verb has just read by.
    pub(crate) fn at(&self, call: &Call, id: &InstanceId) -> Result<Address> {
        self.address(id).ok_or_else(|| self.missing(call, id))
    }

    /// Changes tags. Labels first get all that the old and the new tags need, then the originals are
    /// replaced at once, then the labels lose what is old: whenever it ends in between, the instance is
    /// found by its tags, and a repetition finishes it.
    pub(crate) async fn retagged(
        &self,
        call: &Call,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let at = self.at(call, id)?;
        self.in_state(call.operation(), id, &ALIVE, "not terminated")
            .await?;
        let mut begun = false;
        for _ in 0..RACES {
            match self.retagged_once(call, id, &at, change, &mut begun).await {
                Err(Retag::Raced) => sleep(self.capabilities.poll_interval).await,
                // Some of it may be there already.
                Err(Retag::Failed(error)) if begun => {
                    return Err(error.with_effect(Effect::Unknown));
                }
                Err(Retag::Failed(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        let error = call.conflict("somebody else keeps changing the tags", retry);
        Err(if begun {
            error.with_effect(Effect::Unknown)
        } else {
            error
        })
    }

    async fn retagged_once(
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
        let before = labels::read(&native.labels, originals);
        let invalid = |value| Retag::Failed(call.invalid(value));
        let after = change.apply(&before).map_err(invalid)?;
        self.capabilities.tags.check(&after).map_err(invalid)?;
        let Some(steps) = Steps::new(&native, &before, &after) else {
            return Ok(());
        };
        let told = |failure: Failure| {
            if failure.is_stale() {
                return Retag::Raced;
            }
            Retag::Failed(failure.into_error(call, about))
        };
        let Some(originals) = steps.originals else {
            self.relabelled(at, &native, steps.last)
                .await
                .map_err(told)?;
            return Ok(());
        };
        self.relabelled(at, &native, steps.first)
            .await
            .map_err(told)?;
        *begun = true;
        let items = metadata::with(
            native.metadata.as_ref(),
            metadata::TAGS,
            originals.as_deref(),
        );
        let sent = self.client.set_metadata(at, items).await;
        self.done(at, sent).await.map_err(told)?;
        // The fingerprint of the labels is another one by now.
        let read = self.client.get(&at.zone, &at.number.to_string()).await;
        let native = read.map_err(told)?;
        self.relabelled(at, &native, steps.last).await.map_err(told)
    }

    async fn relabelled(
        &self,
        at: &Address,
        native: &Instance,
        labels: Labels,
    ) -> std::result::Result<(), Failure> {
        let body = InstancesSetLabelsRequest::new()
            .set_or_clear_label_fingerprint(native.label_fingerprint.clone())
            .set_labels(labels);
        let sent = self.client.set_labels(at, body).await;
        self.done(at, sent).await
    }

    /// A small change, followed to its end. One whose end nobody sees is no success.
    pub(crate) async fn done(
        &self,
        at: &Address,
        sent: std::result::Result<NativeOperation, Failure>,
    ) -> std::result::Result<(), Failure> {
        let patience = self.options.call_timeout;
        let operation = self.await_operation(&at.zone, sent?, patience).await;
        if !history::is_over(&operation) {
            let failure = Failure::new(Cause::TimedOut, "the operation did not end in time");
            return Err(failure.with_request_id(operation.name));
        }
        history::failure(&operation).map_or(Ok(()), Err)
    }

    /// Makes an image of the boot disk, or finds the one that was made before.
    pub(crate) async fn imaged(
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
        let told = |failure: Failure| failure.into_error(call, self.about(id, &at));
        let states = [CloudInstanceState::Running, CloudInstanceState::Stopped];
        self.in_state(call.operation(), id, &states, "running or stopped")
            .await?;
        match self.client.image(&request.name).await {
            Ok(image) => self.same_image(call, &at, &request.name, &image)?,
            Err(failure) if failure.is_not_found() => {
                self.new_image(call, &at, request).await?;
            }
            Err(failure) => return Err(told(failure).with_effect(Effect::None)),
        }
        let path = format!(
            "projects/{}/global/images/{}",
            self.client.project(),
            request.name
        );
        ImageId::new(path).map_err(|error| call.unexpected(Effect::Done, &error.to_string()))
    }

    fn same_image(&self, call: &Call, at: &Address, name: &str, image: &Image) -> Result<()> {
        if image.labels.get(SOURCE_LABEL) == Some(&at.number.to_string()) {
            return Ok(());
        }
        let message = format!("another image is named {name}; choose another name");
        Err(call.conflict(&message, RetryAdvice::Never))
    }

    async fn new_image(&self, call: &Call, at: &Address, request: &SnapshotRequest) -> Result<()> {
        let told = |failure: Failure| failure.into_error(call, ErrorContext::default());
        let read = self.client.get(&at.zone, &at.number.to_string()).await;
        let native = read.map_err(|failure| told(failure).with_effect(Effect::None))?;
        let boot = native.disks.iter().find(|disk| disk.boot == Some(true));
        let disk = boot.and_then(|disk| disk.source.clone());
        let diskless = || call.unexpected(Effect::None, "the instance shows no boot disk");
        let written = labels::written(&request.tags);
        let image = Image::new()
            .set_name(&request.name)
            .set_source_disk(disk.ok_or_else(diskless)?)
            .set_labels(written.labels)
            .set_or_clear_description(written.originals);
        let mut image = image;
        image
            .labels
            .insert(SOURCE_LABEL.to_owned(), at.number.to_string());
        let request_id = Uuid::new_v4().to_string();
        match self.client.make_image(image, &request_id).await {
            Ok(operation) => {
                history::failure(&operation).map_or(Ok(()), |failure| Err(told(failure)))
            }
            // Somebody made it at the same time.
            Err(failure) if failure.is_taken() => {
                let image = self.client.image(&request.name).await.map_err(told)?;
                self.same_image(call, at, &request.name, &image)
            }
            Err(failure) => Err(told(failure)),
        }
    }

    /// Where a person gets to the serial console.
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

    /// Sends a verb that needs an instance in one of `states`.
    pub(crate) async fn ready(
        &self,
        operation: Operation,
        id: &InstanceId,
        states: &[CloudInstanceState],
        needed: &str,
    ) -> Result<(Call, Address)> {
        let call = self.call(operation);
        let at = self.at(&call, id)?;
        self.in_state(operation, id, states, needed).await?;
        Ok((call, at))
    }
}

/// Why a change of tags did not happen.
enum Retag {
    /// Somebody else changed something in between; nothing more than an addition was done.
    Raced,
    Failed(fleetwright::ProvisionError),
}

type Labels = std::collections::HashMap<String, String>;

/// The steps of a change of tags.
#[derive(Debug, PartialEq, Eq)]
struct Steps {
    /// The labels that both the old and the new tags need.
    first: Labels,
    /// The new originals, if they change.
    originals: Option<Option<String>>,
    /// The labels that the new tags need.
    last: Labels,
}

impl Steps {
    /// What takes `native` from one set of tags to the other, if anything does.
    fn new(native: &Instance, before: &Tags, after: &Tags) -> Option<Self> {
        let (old, new) = (labels::written(before), labels::written(after));
        let mut last = native.labels.clone();
        last.retain(|key, _| !old.labels.contains_key(key) && !labels::stands_in(key));
        last.extend(new.labels);
        // Where there is no room for both, those that are going are not all kept till the end.
        let mut first = last.clone();
        let going = native
            .labels
            .iter()
            .filter(|(key, _)| !last.contains_key(*key));
        let room = MAX_LABELS.saturating_sub(last.len());
        first.extend(
            going
                .take(room)
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        let kept = metadata::value(native.metadata.as_ref(), metadata::TAGS);
        let originals = (kept != new.originals.as_deref()).then_some(new.originals);
        let same = originals.is_none() && last == native.labels;
        (!same).then_some(Self {
            first,
            originals,
            last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use google_cloud_compute_v1::model::Metadata;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let with = |tags: Tags, (key, value): &(&str, &str)| tags.with(*key, *value).unwrap();
        pairs.iter().fold(Tags::new(), with)
    }

    fn instance(tags: &Tags) -> Instance {
        let written = labels::written(tags);
        let items = written
            .originals
            .map(|text| metadata::item(metadata::TAGS, &text));
        Instance::new()
            .set_labels(written.labels)
            .set_metadata(Metadata::new().set_items(items))
    }

    #[test]
    fn tags_that_fit_labels_change_in_one_step() {
        let (before, after) = (
            tags(&[("a", "1"), ("b", "2")]),
            tags(&[("a", "3"), ("c", "4")]),
        );
        let steps = Steps::new(&instance(&before), &before, &after).unwrap();
        assert_eq!(steps.originals, None);
        let mut last: Vec<_> = steps.last.into_iter().collect();
        last.sort();
        let expected =
            [("a", "3"), ("c", "4")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(last, expected);
        assert_eq!(Steps::new(&instance(&before), &before, &before), None);
    }

    #[test]
    fn every_step_keeps_the_instance_found_by_its_tags() {
        let (before, after) = (
            tags(&[("Team", "Blue"), ("a", "1")]),
            tags(&[("Team", "Red")]),
        );
        let native = instance(&before);
        let steps = Steps::new(&native, &before, &after).unwrap();
        let originals = steps.originals.clone().flatten();
        for labels in [&steps.first, &steps.last] {
            assert_eq!(
                labels::read(labels, originals.as_deref()).get("Team"),
                Some("Red")
            );
        }
        for value in ["Blue", "Red"] {
            let (key, value) = labels::label("Team", value);
            assert_eq!(steps.first.get(&key), Some(&value));
        }
        assert_eq!(labels::read(&steps.last, originals.as_deref()), after);
        let gone = Steps::new(&native, &before, &Tags::new()).unwrap();
        assert_eq!((gone.last.len(), gone.originals), (0, Some(None)));
    }

    #[test]
    fn what_others_labelled_stays() {
        let native = instance(&tags(&[("a", "1")]));
        let native = native.set_labels([("a", "1"), ("goog-x", "y")]);
        let before = labels::read(&native.labels, None);
        let steps = Steps::new(&native, &before, &tags(&[("b", "2")])).unwrap();
        assert_eq!(steps.last.get("goog-x").map(String::as_str), Some("y"));
        assert_eq!(steps.last.len(), 2);
    }

    #[test]
    fn a_console_is_that_of_the_instance() {
        let at =
            Address::parse(&InstanceId::new("gce://p/us-central1-a/fw-1/42").unwrap()).unwrap();
        assert!(GcpProvisioner::console_url(&at).contains("/projects/p/zones/us-central1-a/"));
    }
}
