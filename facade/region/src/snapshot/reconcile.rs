//! Carrying out a step: at most one call to the cloud, and the write of its result.

use chrono::{DateTime, Utc};
use fleetwright::{ErrorKind, InvalidValue, ProvisionError, SnapshotRequest};
use fleetwright_identity::{Resource, Verb};
use fleetwright_runtime::{
    Action,
    clock::{between, later},
};
use fleetwright_store::Key;
use metrics::counter;

use super::{Snapshots, Step, decide, native_name};
use crate::{
    catalog::{Image, ImageError, ImageState, Snapshot, SnapshotProgress, advance},
    ids::ImageId,
    machine::{RequiredState, ready_machine},
};

/// What a failed call means for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Retry.
    Again,
    /// Retry if the machine still exists by its record.
    CheckRecord,
    /// Fail: a retry cannot succeed.
    Never,
}

impl Snapshots {
    /// Reconciles one image: reads it, decides, and carries out one step.
    pub async fn reconcile(&self, id: &ImageId) -> Result<Action, ImageError> {
        let Some(read) = self.images.get(&Key::new(id.as_str())?).await? else {
            return Ok(Action::AwaitChange);
        };
        let step = decide(&read.value, &self.region, &self.policy, self.clock.now());
        tracing::debug!(image = %id, step = step.name(), "reconcile");
        if step == Step::Delete {
            return self.delete(read).await;
        }
        let image = read.value;
        match (step, &image.snapshot) {
            (Step::Nothing | Step::Delete, _) | (_, None) => Ok(Action::AwaitChange),
            (Step::Wait(date), _) => Ok(Action::RequeueAt(date)),
            (Step::Fail(reason), _) => self.fail(id, reason.to_owned()).await,
            (Step::Finish, _) => self.finish(id).await,
            (Step::Create, Some(snapshot)) => self.create(&image, snapshot).await,
        }
    }

    async fn create(&self, image: &Image, snapshot: &Snapshot) -> Result<Action, ImageError> {
        let request = match request(image) {
            Ok(request) => request,
            Err(invalid) => return self.fail(&image.id, invalid.to_string()).await,
        };
        let result = self.cloud.snapshot_image(&snapshot.machine, &request).await;
        let now = self.clock.now();
        match result {
            Ok(native) => self.record_start(&image.id, native, now).await,
            Err(error) => self.record_failure(image, snapshot, &error, now).await,
        }
    }

    async fn record_start(
        &self,
        id: &ImageId,
        native: fleetwright::ImageId,
        now: DateTime<Utc>,
    ) -> Result<Action, ImageError> {
        let started = SnapshotProgress::Started(native);
        self.write(id, "begun", |image, snapshot| {
            snapshot.started_at = Some(now);
            snapshot.failures = 0;
            (snapshot.not_before, snapshot.last_error) = (None, None);
            advance(image, &started)
        })
        .await?;
        Ok(Action::Requeue)
    }

    async fn finish(&self, id: &ImageId) -> Result<Action, ImageError> {
        self.write(id, "ready", |image, _| {
            advance(image, &SnapshotProgress::Ready)
        })
        .await?;
        Ok(Action::AwaitChange)
    }

    async fn fail(&self, id: &ImageId, reason: String) -> Result<Action, ImageError> {
        tracing::warn!(image = %id, reason, "an image cannot be created");
        self.write(id, "failed", |image, snapshot| {
            snapshot.last_error = Some(reason.clone());
            snapshot.not_before = None;
            advance(image, &SnapshotProgress::Failed)
        })
        .await?;
        Ok(Action::AwaitChange)
    }

    /// Records a failed call: schedules a retry, or fails the image.
    async fn record_failure(
        &self,
        image: &Image,
        snapshot: &Snapshot,
        error: &ProvisionError,
        now: DateTime<Utc>,
    ) -> Result<Action, ImageError> {
        let message = format!("{} failed: {}", error.operation(), error.message());
        let is_over = between(snapshot.requested_at, now) >= self.policy.timeout;
        let name_at_cloud = || {
            let name = native_name(&image.id);
            format!("if the cloud created it nevertheless, its name there is {name}")
        };
        match verdict(error.kind()) {
            Verdict::Never => return self.fail(&image.id, message).await,
            Verdict::CheckRecord if self.is_gone(snapshot).await? => {
                let reason = format!("its machine no longer exists; {}", name_at_cloud());
                return self.fail(&image.id, reason).await;
            }
            Verdict::Again | Verdict::CheckRecord if is_over => {
                let reason = format!("gave up: {message}; {}", name_at_cloud());
                return self.fail(&image.id, reason).await;
            }
            Verdict::Again | Verdict::CheckRecord => {}
        }
        let failures = snapshot.failures.saturating_add(1);
        let requested = error.retry().delay().unwrap_or_default();
        let delay = self.policy.backoff(&image.id, failures).max(requested);
        let not_before = later(now, delay);
        self.write(&image.id, "retried", |_, snapshot| {
            snapshot.failures = failures;
            snapshot.not_before = Some(not_before);
            snapshot.last_error = Some(message.clone());
            Ok(())
        })
        .await?;
        Ok(Action::RequeueAt(not_before))
    }

    /// Returns whether the machine is terminated or being terminated, by its server's record.
    async fn is_gone(&self, snapshot: &Snapshot) -> Result<bool, ImageError> {
        let found = self.servers.get(&snapshot.server.key()?).await?;
        let machine = found
            .as_ref()
            .and_then(|found| ready_machine(&found.value, RequiredState::Machine).ok());
        Ok(machine.is_none_or(|machine| machine.id != snapshot.machine))
    }

    /// Changes an image that is unfinished. One that was finished meanwhile is not changed.
    async fn write(
        &self,
        id: &ImageId,
        outcome: &'static str,
        edit: impl Fn(&mut Image, &mut Snapshot) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        let change = |image: &mut Image| match (image.state, image.snapshot.clone()) {
            (ImageState::Pending | ImageState::Creating, Some(mut snapshot)) => {
                edit(image, &mut snapshot)?;
                image.snapshot = Some(snapshot);
                Ok(())
            }
            (ImageState::Ready | ImageState::Failed | ImageState::Deleting, _) | (_, None) => {
                Ok(())
            }
        };
        self.catalog
            .change(
                &self.own,
                (Verb::Update, Resource::NativeImages),
                id,
                change,
            )
            .await?;
        let labels = [("region", self.label()), ("outcome", outcome.to_owned())];
        counter!("fleetwright_region_snapshots_total", &labels).increment(1);
        Ok(())
    }
}

/// Returns the request to the cloud, the same in every process.
fn request(image: &Image) -> Result<SnapshotRequest, InvalidValue> {
    let mut request = SnapshotRequest::new(native_name(&image.id))?;
    request.tags = image.tags.clone();
    Ok(request)
}

fn verdict(kind: ErrorKind) -> Verdict {
    match kind {
        ErrorKind::Invalid | ErrorKind::Unsupported => Verdict::Never,
        ErrorKind::NotFound | ErrorKind::WrongState => Verdict::CheckRecord,
        ErrorKind::Conflict
        | ErrorKind::TokenConflict
        | ErrorKind::TokenSpent
        | ErrorKind::Capacity
        | ErrorKind::Quota
        | ErrorKind::Throttled
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Incomplete
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::Unexpected
        // All present kinds are named above. A future kind is retried.
        | _ => Verdict::Again,
    }
}
