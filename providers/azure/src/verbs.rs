//! The optional verbs: tags, reboot, resize, console and images.
//!
//! Owns their sequences of calls. Each needs the machine in a certain state, which a read checks
//! first.
//!
//! | verb | state | native calls |
//! | --- | --- | --- |
//! | `update_tags` | not terminated | GET, PATCH with the version that was read, polls until done |
//! | `reboot_instance` | running | `restart`, polls for `launch_wait` |
//! | `resize_instance` | stopped | PATCH, polls until done |
//! | `console_output` | not terminated | `retrieveBootDiagnosticsData` and a read of the blob |
//! | `snapshot_image` | running or stopped | GET and PUT of the image, polls for `launch_wait` |
//!
//! Deleting an image is in [`image`](crate::image).

use fleetwright::{
    Call, CloudInstanceState, ConsoleOutput, Effect, ImageId, InstanceId, InstanceType,
    InvalidValue, Operation, Problem, Result, RetryAdvice, SnapshotRequest, TagChange, Tags,
};
use fleetwright_provider_support::ReadInstances as _;
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{self, Address},
    error::{AzureFailure as _, Cause, ErrorContext, Failure},
    lro::{self, Outcome},
    machine::{Edit, ImageRecord, StartedOperation},
    tags,
};

/// How often a change of tags starts again because another actor changed the machine at the same
/// time.
const MAX_RACES: u32 = 5;

/// The states in which a machine can be changed.
const ALIVE: [CloudInstanceState; 4] = [
    CloudInstanceState::Pending,
    CloudInstanceState::Running,
    CloudInstanceState::Stopping,
    CloudInstanceState::Stopped,
];

impl AzureProvisioner {
    /// Changes tags. Azure replaces all tags at once; the version that was read keeps concurrent
    /// changes from undoing each other.
    pub(crate) async fn retag(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let operation = Operation::UpdateTags;
        let (call, at) = self
            .in_state(operation, id, &ALIVE, "not terminated")
            .await?;
        for _ in 0..MAX_RACES {
            let to_error = |failure: Failure| failure.into_error(&call, self.about(id));
            let read = self.client.get(&at.name).await;
            let machine = read.map_err(|failure| to_error(failure).with_effect(Effect::None))?;
            if machine.vm_id != at.vm_id {
                return Err(self.not_found_yet(&call, id));
            }
            let before = Tags::from_observed(machine.tags.clone());
            let refused = |value| call.invalid(value);
            let after = change.apply(&before).map_err(refused)?;
            let given = tags::without_own(&after, &self.launch.tags);
            self.capabilities.tags.check(&given).map_err(refused)?;
            tags::limits(0).check(&after).map_err(refused)?;
            // Sent even if it seems to change nothing, because the read may be stale.
            let edit = Edit::Tags(tags::apply_change(&machine.tags, &after));
            let sent = self
                .client
                .update(&at.name, &edit, machine.etag.as_deref())
                .await;
            match sent {
                Ok(started) => return self.await_change(started).await.map_err(to_error),
                Err(failure) if failure.is_stale() => sleep(self.capabilities.poll_interval).await,
                Err(failure) => return Err(to_error(failure)),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        Err(call.conflict(
            "another actor keeps changing the machine; retry later",
            retry,
        ))
    }

    /// Restarts a running machine.
    pub(crate) async fn reboot(&self, id: &InstanceId) -> Result<()> {
        let running = [CloudInstanceState::Running];
        let ready = self.in_state(Operation::RebootInstance, id, &running, "running");
        let (call, at) = ready.await?;
        let to_error = |failure: Failure| failure.into_error(&call, self.about(id));
        let started = self.client.restart(&at.name).await.map_err(to_error)?;
        let interval = self.options.poll_interval;
        let timeout = self.options.launch_wait;
        match lro::await_operation(&self.client, &started, interval, timeout).await {
            Outcome::Failed(failure) if !failure.is_overtaken() => Err(to_error(*failure)),
            Outcome::Failed(_) | Outcome::Succeeded | Outcome::Unknown => Ok(()),
        }
    }

    /// Changes the size of a stopped machine, and waits until that is done.
    pub(crate) async fn resize(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let stopped = [CloudInstanceState::Stopped];
        let ready = self.in_state(Operation::ResizeInstance, id, &stopped, "stopped");
        let (call, at) = ready.await?;
        let to_error = |failure: Failure| failure.into_error(&call, ErrorContext::default());
        let edit = Edit::Size(to.to_string());
        let started = self
            .client
            .update(&at.name, &edit, None)
            .await
            .map_err(to_error)?;
        self.await_change(started).await.map_err(to_error)
    }

    /// Reads the console log.
    pub(crate) async fn console(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let ready = self.in_state(Operation::ConsoleOutput, id, &ALIVE, "not terminated");
        let (call, at) = ready.await?;
        let text = self.client.console(&at.name).await;
        let text = text.map_err(|failure| failure.into_error(&call, self.about(id)))?;
        Ok(ConsoleOutput::new(text))
    }

    /// Waits until a change is done. A change whose end cannot be read fails with a timeout.
    pub(crate) async fn await_change(
        &self,
        started: StartedOperation,
    ) -> std::result::Result<(), Failure> {
        let (interval, timeout) = (self.options.poll_interval, self.options.call_timeout);
        if started.url.is_none() {
            return Ok(());
        }
        match lro::await_operation(&self.client, &started, interval, timeout).await {
            Outcome::Succeeded => Ok(()),
            Outcome::Failed(failure) => Err(*failure),
            Outcome::Unknown => Err(Failure::new(
                Cause::TimedOut,
                "the result of the operation could not be read in time",
            )),
        }
    }

    /// Creates an image of the system disk, or returns the one that an earlier attempt created.
    pub(crate) async fn snapshot_system_disk(
        &self,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let call = self.call(Operation::SnapshotImage);
        if !address::is_name(&request.name) {
            let expected = "letters, digits and any of -_., at most 80, a letter or digit in front";
            let value = InvalidValue::new("snapshot name", Problem::Malformed { expected });
            return Err(call.invalid(value));
        }
        let states = [CloudInstanceState::Running, CloudInstanceState::Stopped];
        let ready = self.in_state(call.operation(), id, &states, "running or stopped");
        let (call, at) = ready.await?;
        match self.client.image(&request.name).await {
            Ok(image) => self.check_source(&call, &at, &request.name, &image)?,
            Err(failure) if failure.is_not_found() => {
                self.create_image(&call, id, &at, request).await?;
            }
            Err(failure) => {
                let error = failure.into_error(&call, self.about(id));
                return Err(error.with_effect(Effect::None));
            }
        }
        let path = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/images/{}",
            self.client.subscription(),
            self.client.group(),
            request.name
        );
        ImageId::new(path).map_err(|error| call.unexpected(Effect::Done, &error.to_string()))
    }

    /// Checks that an image was created from this machine.
    fn check_source(
        &self,
        call: &Call,
        at: &Address,
        name: &str,
        image: &ImageRecord,
    ) -> Result<()> {
        if tags::value(&image.tags, tags::SOURCE) == Some(at.vm_id.as_str()) {
            return Ok(());
        }
        let message = format!("another image is named {name}; choose another name");
        Err(call.conflict(&message, RetryAdvice::Never))
    }

    /// Creates the image, with a tag that names its source.
    async fn create_image(
        &self,
        call: &Call,
        id: &InstanceId,
        at: &Address,
        request: &SnapshotRequest,
    ) -> Result<()> {
        let to_error = |failure: Failure| failure.into_error(call, self.about(id));
        let read = self.client.get(&at.name).await;
        let machine = read.map_err(|failure| to_error(failure).with_effect(Effect::None))?;
        let no_disk = || call.unexpected(Effect::None, "the machine has no system disk");
        let disk = machine.disk.clone().filter(|_| machine.vm_id == at.vm_id);
        let disk = disk.ok_or_else(no_disk)?;
        self.capabilities
            .tags
            .check(&request.tags)
            .map_err(|value| call.invalid(value))?;
        let given = request.tags.iter();
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let source = (tags::SOURCE.to_owned(), at.vm_id.clone());
        let tags = given.chain([source]).collect();
        let sent = self.client.put_image(&request.name, &machine, &disk, &tags);
        let started = sent.await.map_err(to_error)?;
        let (interval, timeout) = (self.options.poll_interval, self.options.launch_wait);
        match lro::await_operation(&self.client, &started, interval, timeout).await {
            Outcome::Failed(failure) => Err(to_error(*failure)),
            Outcome::Succeeded | Outcome::Unknown => Ok(()),
        }
    }
}
