//! The optional verbs.

use fleetwright::{
    Call, CloudInstanceState, ConsoleOutput, Effect, ImageId, InstanceId, InstanceType,
    InvalidValue, Operation, Problem, Result, RetryAdvice, SnapshotRequest, TagChange, Tags,
};
use tokio::time::sleep;

use crate::{
    AzureProvisioner,
    address::{self, Address},
    error::{AzureFailure as _, Cause, ErrorContext, Failure},
    lro::{self, Outcome},
    machine::{Begun, Edit, MadeImage},
    tags,
};

/// How often a change of tags begins anew because somebody else changed the machine at the same time.
const RACES: u32 = 5;

/// The states in which a machine can be changed.
const ALIVE: [CloudInstanceState; 4] = [
    CloudInstanceState::Pending,
    CloudInstanceState::Running,
    CloudInstanceState::Stopping,
    CloudInstanceState::Stopped,
];

impl AzureProvisioner {
    /// Changes tags, by all of them at once: Azure replaces the whole map. The version that was read keeps two
    /// changes from undoing each other.
    pub(crate) async fn retagged(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let operation = Operation::UpdateTags;
        let (call, at) = self
            .in_state(operation, id, &ALIVE, "not terminated")
            .await?;
        for _ in 0..RACES {
            let told = |failure: Failure| failure.into_error(&call, self.about(id));
            let read = self.client.get(&at.name).await;
            let machine = read.map_err(|failure| told(failure).with_effect(Effect::None))?;
            if machine.vm_id != at.vm_id {
                return Err(self.missing(&call, id));
            }
            let before = Tags::from_observed(machine.tags.clone());
            let refused = |value| call.invalid(value);
            let after = change.apply(&before).map_err(refused)?;
            let given = tags::without_own(&after, &self.launch.tags);
            self.capabilities.tags.check(&given).map_err(refused)?;
            tags::limits(0).check(&after).map_err(refused)?;
            // Sent also if it seems to change nothing: what was read may be of before another change.
            let edit = Edit::Tags(tags::replaced(&machine.tags, &after));
            let sent = self
                .client
                .update(&at.name, &edit, machine.etag.as_deref())
                .await;
            match sent {
                Ok(begun) => return self.done(begun).await.map_err(told),
                Err(failure) if failure.is_stale() => sleep(self.capabilities.poll_interval).await,
                Err(failure) => return Err(told(failure)),
            }
        }
        let retry = RetryAdvice::After(self.capabilities.consistency_window);
        Err(call.conflict("somebody else keeps changing the machine", retry))
    }

    pub(crate) async fn rebooted(&self, id: &InstanceId) -> Result<()> {
        let running = [CloudInstanceState::Running];
        let ready = self.in_state(Operation::RebootInstance, id, &running, "running");
        let (call, at) = ready.await?;
        let told = |failure: Failure| failure.into_error(&call, self.about(id));
        let begun = self.client.restart(&at.name).await.map_err(told)?;
        let tick = self.options.poll_interval;
        let patience = self.options.launch_wait;
        match lro::followed(&self.client, &begun, tick, patience).await {
            Outcome::Failed(failure) if !failure.is_overtaken() => Err(told(*failure)),
            Outcome::Failed(_) | Outcome::Succeeded | Outcome::Unknown => Ok(()),
        }
    }

    pub(crate) async fn resized(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let stopped = [CloudInstanceState::Stopped];
        let ready = self.in_state(Operation::ResizeInstance, id, &stopped, "stopped");
        let (call, at) = ready.await?;
        let told = |failure: Failure| failure.into_error(&call, ErrorContext::default());
        let edit = Edit::Size(to.to_string());
        let begun = self
            .client
            .update(&at.name, &edit, None)
            .await
            .map_err(told)?;
        self.done(begun).await.map_err(told)
    }

    pub(crate) async fn console(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let ready = self.in_state(Operation::ConsoleOutput, id, &ALIVE, "not terminated");
        let (call, at) = ready.await?;
        let text = self.client.console(&at.name).await;
        let text = text.map_err(|failure| failure.into_error(&call, self.about(id)))?;
        Ok(ConsoleOutput::new(text))
    }

    /// A small change, followed to its end. One whose end nobody sees is no success.
    async fn done(&self, begun: Begun) -> std::result::Result<(), Failure> {
        let (tick, patience) = (self.options.poll_interval, self.options.call_timeout);
        if begun.url.is_none() {
            return Ok(());
        }
        match lro::followed(&self.client, &begun, tick, patience).await {
            Outcome::Succeeded => Ok(()),
            Outcome::Failed(failure) => Err(*failure),
            Outcome::Unknown => Err(Failure::new(Cause::TimedOut, "nobody tells how it ended")),
        }
    }

    /// Makes an image of the system's disk as it is, or finds the one that was made before.
    pub(crate) async fn imaged(
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
            Ok(image) => self.same_image(&call, &at, &request.name, &image)?,
            Err(failure) if failure.is_not_found() => {
                self.new_image(&call, id, &at, request).await?;
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

    fn same_image(&self, call: &Call, at: &Address, name: &str, image: &MadeImage) -> Result<()> {
        if tags::value(&image.tags, tags::SOURCE) == Some(at.vm_id.as_str()) {
            return Ok(());
        }
        let message = format!("another image is named {name}; choose another name");
        Err(call.conflict(&message, RetryAdvice::Never))
    }

    async fn new_image(
        &self,
        call: &Call,
        id: &InstanceId,
        at: &Address,
        request: &SnapshotRequest,
    ) -> Result<()> {
        let told = |failure: Failure| failure.into_error(call, self.about(id));
        let read = self.client.get(&at.name).await;
        let machine = read.map_err(|failure| told(failure).with_effect(Effect::None))?;
        let diskless = || call.unexpected(Effect::None, "the machine shows no disk");
        let disk = machine.disk.clone().filter(|_| machine.vm_id == at.vm_id);
        let disk = disk.ok_or_else(diskless)?;
        self.capabilities
            .tags
            .check(&request.tags)
            .map_err(|value| call.invalid(value))?;
        let given = request.tags.iter();
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let source = (tags::SOURCE.to_owned(), at.vm_id.clone());
        let tags = given.chain([source]).collect();
        let made = self
            .client
            .make_image(&request.name, &machine, &disk, &tags);
        let begun = made.await.map_err(told)?;
        let (tick, patience) = (self.options.poll_interval, self.options.launch_wait);
        match lro::followed(&self.client, &begun, tick, patience).await {
            Outcome::Failed(failure) => Err(told(*failure)),
            Outcome::Succeeded | Outcome::Unknown => Ok(()),
        }
    }
}
