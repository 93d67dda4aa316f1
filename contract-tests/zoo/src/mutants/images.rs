//! Backends that break the family verbs: the deletion of images.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceConfig, InstanceInfo, Operation, ProvisionError, Result,
    RetryAdvice, Tags,
};
use fleetwright_contract_tests::{Harness, Oracle, Truth};
use fleetwright_memory::Image;

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause about the deletion of images.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the deletion of an image has no effect",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<DeletesNothing>,
    },
    Mutant {
        name: "a second deletion of an image fails as not found",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<DeletesOnce>,
    },
    Mutant {
        name: "a launch from a deleted image fails with unknown effect",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<UnclearLaunchOfDeleted>,
    },
    Mutant {
        name: "a launch from a deleted image is refused as a conflict",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<ConflictingLaunchOfDeleted>,
    },
    Mutant {
        name: "the deletion of an image stops its instances",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<StopsInstances>,
    },
    Mutant {
        name: "the deletion of an image terminates its instances",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<TerminatesInstances>,
    },
    Mutant {
        name: "the deletion of an image deletes all images of its instance",
        violates: "VERBS-10",
        make: OverrideHarness::factory::<DeletesSiblings>,
    },
    Mutant {
        name: "the deletion of an image that no snapshot created seems to succeed",
        violates: "VERBS-11",
        make: OverrideHarness::factory::<AcceptsOtherImages>,
    },
    Mutant {
        name: "an image that no snapshot created is deleted although that was refused",
        violates: "VERBS-11",
        make: OverrideHarness::factory::<DeletesOtherImages>,
    },
    Mutant {
        name: "the refusal to delete an image that no snapshot created advises a retry",
        violates: "VERBS-11",
        make: OverrideHarness::factory::<AdvisesRetry>,
    },
    Mutant {
        name: "a deletion with unknown effect is reported as done",
        violates: "VERBS-12",
        make: OverrideHarness::factory::<BelievesInSuccess>,
    },
    Mutant {
        name: "the data of an image stays if the response to its deletion is lost",
        violates: "VERBS-12",
        make: OverrideHarness::factory::<ForgetsData>,
    },
];

/// Returns the image with this id.
fn image(at: CallContext<'_>, id: &ImageId) -> Option<Image> {
    let images = at.harness.cloud().oracle().images();
    images.into_iter().find(|image| image.id == *id)
}

/// Returns the instances that were launched from an image.
fn instances(at: CallContext<'_>, id: &ImageId) -> Vec<fleetwright::InstanceId> {
    let all = at.harness.cloud().oracle().instances().into_iter();
    let ours = all.filter(|truth| truth.info.image.as_ref() == Some(id));
    ours.map(|truth| truth.info.id).collect()
}

fn lock<T>(state: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct DeletesNothing;

#[async_trait]
impl Override for DeletesNothing {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        match image(at, id) {
            Some(_) => Ok(()),
            None => at.inner.delete_image(id).await,
        }
    }
}

/// Remembers what was deleted.
#[derive(Default)]
struct DeletesOnce(Mutex<BTreeSet<ImageId>>);

#[async_trait]
impl Override for DeletesOnce {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        if lock(&self.0).contains(id) {
            return Err(not_found(at));
        }
        at.inner.delete_image(id).await?;
        lock(&self.0).insert(id.clone());
        Ok(())
    }
}

fn not_found(at: CallContext<'_>) -> ProvisionError {
    let call = at.call(Operation::DeleteImage);
    call.not_found(&Harness::unknown_id(at.harness))
}

/// Returns whether the error of a launch says that its image does not exist.
fn is_deleted(at: CallContext<'_>, config: &InstanceConfig, error: &ProvisionError) -> bool {
    let created = config.image.as_str().starts_with("img-");
    created && image(at, &config.image).is_none() && error.kind() == ErrorKind::Invalid
}

#[derive(Default)]
struct UnclearLaunchOfDeleted;

#[async_trait]
impl Override for UnclearLaunchOfDeleted {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        result.map_err(|error| {
            if is_deleted(at, config, &error) {
                return error.with_effect(Effect::Unknown);
            }
            error
        })
    }
}

#[derive(Default)]
struct ConflictingLaunchOfDeleted;

#[async_trait]
impl Override for ConflictingLaunchOfDeleted {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        result.map_err(|error| {
            if is_deleted(at, config, &error) {
                let call = at.call(Operation::LaunchInstance);
                return call.conflict("the image was deleted", RetryAdvice::Never);
            }
            error
        })
    }
}

#[derive(Default)]
struct StopsInstances;

#[async_trait]
impl Override for StopsInstances {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        at.inner.delete_image(id).await?;
        for instance in instances(at, id) {
            at.inner.stop_instance(&instance).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct TerminatesInstances;

#[async_trait]
impl Override for TerminatesInstances {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        at.inner.delete_image(id).await?;
        for instance in instances(at, id) {
            at.inner.terminate_instance(&instance).await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct DeletesSiblings;

#[async_trait]
impl Override for DeletesSiblings {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        let images = at.harness.cloud().oracle().images();
        if let Some(one) = image(at, id) {
            let siblings = images.iter().filter(|other| other.source == one.source);
            for sibling in siblings.filter(|other| other.id != *id) {
                at.inner.delete_image(&sibling.id).await?;
            }
        }
        at.inner.delete_image(id).await
    }
}

#[derive(Default)]
struct AcceptsOtherImages;

#[async_trait]
impl Override for AcceptsOtherImages {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        match at.inner.delete_image(id).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
            result => result,
        }
    }
}

/// Refuses launches from images whose deletion it refused.
#[derive(Default)]
struct DeletesOtherImages(Mutex<BTreeSet<ImageId>>);

#[async_trait]
impl Override for DeletesOtherImages {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        let result = at.inner.delete_image(id).await;
        let is_conflict = |error: &ProvisionError| error.kind() == ErrorKind::Conflict;
        if result.as_ref().is_err_and(is_conflict) {
            lock(&self.0).insert(id.clone());
        }
        result
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if lock(&self.0).contains(&config.image) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.conflict("the image was deleted", RetryAdvice::Never));
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct AdvisesRetry;

#[async_trait]
impl Override for AdvisesRetry {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        match at.inner.delete_image(id).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let later = RetryAdvice::After(Duration::from_secs(1));
                let call = at.call(Operation::DeleteImage);
                Err(call.conflict("the image is in use", later))
            }
            result => result,
        }
    }
}

#[derive(Default)]
struct BelievesInSuccess(Mutex<BTreeSet<ImageId>>);

#[async_trait]
impl Override for BelievesInSuccess {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        if lock(&self.0).contains(id) {
            return Ok(());
        }
        match at.inner.delete_image(id).await {
            Err(error) if error.effect() == Effect::Unknown => {
                lock(&self.0).insert(id.clone());
                Ok(())
            }
            result => result,
        }
    }
}

/// Deletes an image and, only if it gets the response, also its data.
#[derive(Default)]
struct ForgetsData(Arc<Mutex<Vec<Image>>>);

#[async_trait]
impl Override for ForgetsData {
    async fn delete_image(&self, at: CallContext<'_>, id: &ImageId) -> Result<()> {
        let before = image(at, id);
        let result = at.inner.delete_image(id).await;
        if result.is_err() && image(at, id).is_none() {
            lock(&self.0).extend(before);
        }
        result
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        Arc::new(WithForgottenData(sound, Arc::clone(&self.0)))
    }
}

/// The oracle of a cloud with data of deleted images.
struct WithForgottenData(Arc<dyn Oracle>, Arc<Mutex<Vec<Image>>>);

#[async_trait]
impl Oracle for WithForgottenData {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        self.0.instances(tags).await
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        self.0.leftovers(tags).await
    }
    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        let mut found = self.0.images(tags).await?;
        let data = lock(&self.1);
        let ours = data.iter().filter(|image| image.tags.contains_all(tags));
        found.extend(ours.map(|image| format!("data of {}", image.id)));
        Some(found)
    }
    async fn calls(&self) -> u64 {
        self.0.calls().await
    }
}
