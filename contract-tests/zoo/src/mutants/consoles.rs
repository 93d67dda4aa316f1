//! Backends that break the family verbs: consoles, snapshots, and verbs on the wrong instance.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, ConsoleOutput, ConsoleSession, Effect, ErrorKind, ImageId, InstanceConfig,
    InstanceId, InstanceInfo, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each of the family's other clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the console output is always empty",
        violates: "VERBS-05",
        make: OverrideHarness::factory::<EmptyConsole>,
    },
    Mutant {
        name: "all instances have the same console session",
        violates: "VERBS-06",
        make: OverrideHarness::factory::<SharedConsole>,
    },
    Mutant {
        name: "a console session of a stopped instance opens",
        violates: "VERBS-06",
        make: OverrideHarness::factory::<ConsoleOfStopped>,
    },
    Mutant {
        name: "a second snapshot with the same name creates a second image",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsAgain>,
    },
    Mutant {
        name: "the first launch of a new image fails with unknown effect",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<UnknownEffectForNewImages>,
    },
    Mutant {
        name: "a snapshot returns the image of another instance",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsByName>,
    },
    Mutant {
        name: "a snapshot returns an image that never exists",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsNothing>,
    },
    Mutant {
        name: "a reboot of an unknown id succeeds",
        violates: "VERBS-08",
        make: OverrideHarness::factory::<RebootsUnknown>,
    },
    Mutant {
        name: "the tags of a terminated instance can be changed",
        violates: "VERBS-09",
        make: OverrideHarness::factory::<TagsTerminated>,
    },
    Mutant {
        name: "the console output of a terminated instance is empty instead of refused",
        violates: "VERBS-09",
        make: OverrideHarness::factory::<ConsoleOfTerminated>,
    },
];

#[derive(Default)]
struct EmptyConsole;

#[async_trait]
impl Override for EmptyConsole {
    async fn console_output(&self, at: CallContext<'_>, id: &InstanceId) -> Result<ConsoleOutput> {
        let mut output = at.inner.console_output(id).await?;
        output.text.clear();
        Ok(output)
    }
}

/// Opens one session and returns it for every instance.
#[derive(Default)]
struct SharedConsole(Mutex<Option<ConsoleSession>>);

#[async_trait]
impl Override for SharedConsole {
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        let session = at.inner.console_session(id).await?;
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(first.get_or_insert(session).clone())
    }
}

#[derive(Default)]
struct ConsoleOfStopped;

#[async_trait]
impl Override for ConsoleOfStopped {
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        if at.state(id) == Some(CloudInstanceState::Stopped) {
            return Ok(ConsoleSession::new(format!("memory://console/{id}")));
        }
        at.inner.console_session(id).await
    }
}

/// Makes image names unique by appending a number.
#[derive(Default)]
struct SnapshotsAgain(AtomicU32);

#[async_trait]
impl Override for SnapshotsAgain {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let mut request = request.clone();
        request.name += &format!("-{}", self.0.fetch_add(1, Ordering::SeqCst));
        at.inner.snapshot_image(id, &request).await
    }
}

/// Looks an image up by its name and ignores which instance it was created from.
#[derive(Default)]
struct SnapshotsByName;

#[async_trait]
impl Override for SnapshotsByName {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let images = at.harness.cloud().oracle().images();
        match images.iter().find(|image| image.name == request.name) {
            Some(image) => Ok(image.id.clone()),
            None => at.inner.snapshot_image(id, request).await,
        }
    }
}

/// Returns the name of an image that it does not create.
#[derive(Default)]
struct SnapshotsNothing;

#[async_trait]
impl Override for SnapshotsNothing {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let image = at.inner.snapshot_image(id, request).await?;
        Ok(ImageId::new(format!("{image}-draft")).unwrap_or(image))
    }
}

#[derive(Default)]
struct RebootsUnknown;

#[async_trait]
impl Override for RebootsUnknown {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        match at.inner.reboot_instance(id, how).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

#[derive(Default)]
struct TagsTerminated;

#[async_trait]
impl Override for TagsTerminated {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        match at.inner.update_tags(id, change).await {
            Err(error) if error.kind() == ErrorKind::WrongState => Ok(()),
            result => result,
        }
    }
}

#[derive(Default)]
struct ConsoleOfTerminated;

#[async_trait]
impl Override for ConsoleOfTerminated {
    async fn console_output(&self, at: CallContext<'_>, id: &InstanceId) -> Result<ConsoleOutput> {
        match at.inner.console_output(id).await {
            Err(error) if error.kind() == ErrorKind::WrongState => Ok(ConsoleOutput::new("")),
            result => result,
        }
    }
}

/// Reports the first launch from an image that it created as of unknown effect.
#[derive(Default)]
struct UnknownEffectForNewImages(Mutex<BTreeSet<ImageId>>);

#[async_trait]
impl Override for UnknownEffectForNewImages {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let image = at.inner.snapshot_image(id, request).await?;
        let mut fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.insert(image.clone());
        Ok(image)
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let fresh = {
            let mut fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.remove(&config.image)
        };
        if fresh {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::Unknown, "still copying"));
        }
        at.inner.launch_instance(config).await
    }
}
