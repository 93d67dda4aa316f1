//! Backends that break the family verbs: interrupted and concurrent changes of tags, what an instance keeps, and of
//! which instance an image is made.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, Effect, ImageId, InstanceId, InstanceType, LaunchRecord, LaunchToken,
    Reboot, Result, SnapshotRequest, TagChange,
};
use fleetwright_contract_tests::{Oracle, SCOPE_TAG, Truth};

use super::{Mutant, Override, stop::AlteredOracle};
use crate::{CallContext, OverrideHarness};

/// At least one for each of VERBS-13 to VERBS-16.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a change of tags whose response was lost is reported as without effect",
        violates: "VERBS-13",
        make: OverrideHarness::factory::<ClaimsNoEffect>,
    },
    Mutant {
        name: "a change of tags that failed is not repeated",
        violates: "VERBS-13",
        make: OverrideHarness::factory::<RepeatsNothing>,
    },
    Mutant {
        name: "a change of tags writes back all tags that it read",
        violates: "VERBS-14",
        make: OverrideHarness::factory::<WritesBackTags>,
    },
    Mutant {
        name: "a resize loses the user data",
        violates: "VERBS-15",
        make: OverrideHarness::factory::<ResizeLosesUserData>,
    },
    Mutant {
        name: "a reboot loses the size of the disk",
        violates: "VERBS-15",
        make: OverrideHarness::factory::<RebootLosesDiskSize>,
    },
    Mutant {
        name: "a resize makes the token unknown",
        violates: "VERBS-15",
        make: OverrideHarness::factory::<ResizeLosesToken>,
    },
    Mutant {
        name: "an image is made of another instance",
        violates: "VERBS-16",
        make: OverrideHarness::factory::<SnapshotsAnother>,
    },
];

#[derive(Default)]
struct ClaimsNoEffect;

#[async_trait]
impl Override for ClaimsNoEffect {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let result = at.inner.update_tags(id, change).await;
        result.map_err(|error| error.with_effect(Effect::None))
    }
}

/// Instances to which something has happened.
#[derive(Clone, Default)]
struct Marked(Arc<Mutex<BTreeSet<InstanceId>>>);

impl Marked {
    fn add(&self, id: &InstanceId) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert(id.clone());
    }

    fn take(&self, id: &InstanceId) -> bool {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.remove(id)
    }

    fn has(&self, id: &InstanceId) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.contains(id)
    }

    /// Returns an oracle that shows the marked instances changed.
    fn altered(
        &self,
        sound: Arc<dyn Oracle>,
        alter: impl Fn(&mut Truth) + Send + Sync + 'static,
    ) -> Arc<dyn Oracle> {
        let marked = self.clone();
        let change = move |truth: &mut Truth| {
            if marked.has(&truth.info.id) {
                alter(truth);
            }
        };
        Arc::new(AlteredOracle { sound, change })
    }
}

/// Believes that the first attempt had its effect.
#[derive(Default)]
struct RepeatsNothing(Marked);

#[async_trait]
impl Override for RepeatsNothing {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        if self.0.take(id) {
            return Ok(());
        }
        let result = at.inner.update_tags(id, change).await;
        if result
            .as_ref()
            .is_err_and(|error| error.effect() != Effect::None)
        {
            self.0.add(id);
        }
        result
    }
}

/// Replaces all tags by those that it read, with the change.
#[derive(Default)]
struct WritesBackTags;

#[async_trait]
impl Override for WritesBackTags {
    async fn update_tags(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        change: &TagChange,
    ) -> Result<()> {
        let Some(read) = at.truth(id).map(|truth| truth.info.tags) else {
            return at.inner.update_tags(id, change).await;
        };
        let Ok(wanted) = change.apply(&read) else {
            return at.inner.update_tags(id, change).await;
        };
        at.inner.update_tags(id, change).await?;
        let now = at.truth(id).map(|truth| truth.info.tags);
        let mut write_back = TagChange::new();
        for (key, _) in &now.unwrap_or_default() {
            if wanted.get(key).is_none() {
                write_back.remove.insert(key.to_owned());
            }
        }
        let actor = at.harness.cloud().external_actor();
        actor.update_tags(id, &write_back)
    }
}

#[derive(Default)]
struct ResizeLosesUserData(Marked);

#[async_trait]
impl Override for ResizeLosesUserData {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        at.inner.resize_instance(id, to).await?;
        self.0.add(id);
        Ok(())
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.altered(sound, |truth| truth.user_data = None)
    }
}

#[derive(Default)]
struct RebootLosesDiskSize(Marked);

#[async_trait]
impl Override for RebootLosesDiskSize {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        at.inner.reboot_instance(id, how).await?;
        self.0.add(id);
        Ok(())
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.altered(sound, |truth| {
            truth.disk_size_gb = truth.disk_size_gb.map(|_| 8);
        })
    }
}

/// Finds launches by the config that the instance has now.
#[derive(Default)]
struct ResizeLosesToken(Marked);

#[async_trait]
impl Override for ResizeLosesToken {
    async fn resize_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        to: &InstanceType,
    ) -> Result<()> {
        at.inner.resize_instance(id, to).await?;
        self.0.add(id);
        Ok(())
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let found = at.inner.find_launch(token).await?;
        let lost = matches!(&found, LaunchRecord::Found(list) if list.iter().any(|info| self.0.has(&info.id)));
        Ok(if lost { LaunchRecord::NotFound } else { found })
    }
}

/// Looks the disk up by its place in a list, not by its instance.
#[derive(Default)]
struct SnapshotsAnother;

#[async_trait]
impl Override for SnapshotsAnother {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let size = |truth: &fleetwright_memory::OracleInstance| {
            truth.disk.as_ref().map(|disk| disk.size_gb)
        };
        let target = at.truth(id);
        let scope = request.tags.get(SCOPE_TAG);
        let all = at.harness.cloud().oracle().instances().into_iter();
        let other = all
            .filter(|truth| truth.info.state == CloudInstanceState::Running)
            .filter(|truth| truth.info.tags.get(SCOPE_TAG) == scope)
            .find(|truth| size(truth) != target.as_ref().and_then(size));
        let source = other.map_or_else(|| id.clone(), |truth| truth.info.id);
        at.inner.snapshot_image(&source, request).await
    }
}
