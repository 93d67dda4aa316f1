//! Backends that break the family verbs: consoles, images, and verbs on the wrong instance.

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

/// One for each of the family's other clauses, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "console output always empty",
        violates: "VERBS-05",
        make: OverrideHarness::factory::<SilentConsole>,
    },
    Mutant {
        name: "one console for all instances",
        violates: "VERBS-06",
        make: OverrideHarness::factory::<OneConsole>,
    },
    Mutant {
        name: "console of a stopped instance opens",
        violates: "VERBS-06",
        make: OverrideHarness::factory::<ConsoleOfStopped>,
    },
    Mutant {
        name: "snapshot asked again makes a second image",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsAgain>,
    },
    Mutant {
        name: "launch of a fresh image is of unknown effect",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<LosesSightOfFreshImages>,
    },
    Mutant {
        name: "snapshot answers another instance's image",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsByName>,
    },
    Mutant {
        name: "snapshot answers an image that never comes",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<SnapshotsNothing>,
    },
    Mutant {
        name: "reboot of an unknown id Ok",
        violates: "VERBS-08",
        make: OverrideHarness::factory::<RebootsUnknown>,
    },
    Mutant {
        name: "tags of a terminated instance change",
        violates: "VERBS-09",
        make: OverrideHarness::factory::<TagsTerminated>,
    },
    Mutant {
        name: "console of a terminated instance is empty",
        violates: "VERBS-09",
        make: OverrideHarness::factory::<ConsoleOfTerminated>,
    },
];

#[derive(Default)]
struct SilentConsole;

#[async_trait]
impl Override for SilentConsole {
    async fn console_output(&self, at: CallContext<'_>, id: &InstanceId) -> Result<ConsoleOutput> {
        let mut output = at.inner.console_output(id).await?;
        output.text.clear();
        Ok(output)
    }
}

/// Opens the gateway once and hands it to everybody.
#[derive(Default)]
struct OneConsole(Mutex<Option<ConsoleSession>>);

#[async_trait]
impl Override for OneConsole {
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

/// Makes names unique by counting.
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

/// Looks for the name, and not for whose image it is.
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

/// Answers the name of an image whose making it gave up.
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
        let made = at.inner.snapshot_image(id, request).await?;
        Ok(ImageId::new(format!("{made}-draft")).unwrap_or(made))
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
            answer => answer,
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
            answer => answer,
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
            answer => answer,
        }
    }
}

/// Does not know what became of the first launch from an image that it has made.
#[derive(Default)]
struct LosesSightOfFreshImages(Mutex<BTreeSet<ImageId>>);

#[async_trait]
impl Override for LosesSightOfFreshImages {
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
