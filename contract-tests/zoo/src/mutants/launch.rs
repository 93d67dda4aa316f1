//! Backends that break the family launch.

pub(super) mod addresses;
pub(super) mod fields;
pub(super) mod types;
pub(super) mod user_data;

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use fleetwright::{
    Call, CloudInstanceState, Effect, ImageId, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceType, InvalidValue, Operation, PlacementField, Problem, ProvisionError,
    Result, UserData,
};

use super::{
    Mutant, Override,
    list::{Lists, Relist},
};
use crate::{CallContext, MemoryHarness, OverrideHarness};
use fleetwright_contract_tests::Harness as _;

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a launch returns a stopped instance",
        violates: "LAUNCH-01",
        make: OverrideHarness::factory::<ReturnsStopped>,
    },
    Mutant {
        name: "an id is reused after a terminate",
        violates: "LAUNCH-02",
        make: OverrideHarness::factory::<ReusesIds>,
    },
    Mutant {
        name: "a launch succeeds and creates nothing",
        violates: "LAUNCH-03",
        make: OverrideHarness::factory::<LaunchesNothing>,
    },
    Mutant {
        name: "a list without a filter is empty",
        violates: "LAUNCH-03",
        make: OverrideHarness::factory::<Lists<ListsOnlyWithFilter>>,
    },
    Mutant {
        name: "the image is ignored",
        violates: "LAUNCH-04",
        make: OverrideHarness::factory::<IgnoresTheImage>,
    },
    Mutant {
        name: "the type is ignored",
        violates: "LAUNCH-04",
        make: OverrideHarness::factory::<IgnoresTheType>,
    },
    Mutant {
        name: "user data is truncated at a line end",
        violates: "LAUNCH-05",
        make: OverrideHarness::factory::<CutsUserData>,
    },
    Mutant {
        name: "user data is re-encoded as text",
        violates: "LAUNCH-05",
        make: OverrideHarness::factory::<ReencodesUserData>,
    },
    Mutant {
        name: "the disk size is ignored",
        violates: "LAUNCH-06",
        make: OverrideHarness::factory::<IgnoresTheDiskSize>,
    },
    Mutant {
        name: "an unknown image is replaced by the default image",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<ReplacesUnknownImages>,
    },
    Mutant {
        name: "an unknown image fails as unavailable",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<UnknownImageIsAnOutage>,
    },
    Mutant {
        name: "the image is checked after the instance was created",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<ValidatesAfterCreating>,
    },
    Mutant {
        name: "user data that is too long is truncated",
        violates: "LAUNCH-08",
        make: OverrideHarness::factory::<CutsTooMuchUserData>,
    },
    Mutant {
        name: "user data of the declared size is refused",
        violates: "LAUNCH-08",
        make: OverrideHarness::factory::<AcceptsOneByteLess>,
    },
    Mutant {
        name: "the zone is ignored",
        violates: "LAUNCH-09",
        make: OverrideHarness::factory::<IgnoresTheZone>,
    },
    Mutant {
        name: "the zone is not reported",
        violates: "LAUNCH-09",
        make: OverrideHarness::factory::<Lists<HidesTheZone>>,
    },
    Mutant {
        name: "a placement field that is not declared is dropped",
        violates: "LAUNCH-09",
        make: || OverrideHarness::factory_on::<IgnoresThePublicAddress>(without_public_address),
    },
    Mutant {
        name: "a launch returns running while describe returns pending",
        violates: "LAUNCH-10",
        make: OverrideHarness::factory::<ReturnsRunning>,
    },
];

#[derive(Default)]
struct ReturnsStopped;

#[async_trait]
impl Override for ReturnsStopped {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        info.state = CloudInstanceState::Stopped;
        Ok(info)
    }
}

/// Gives an instance the id of one that was terminated.
#[derive(Default)]
struct ReusesIds(Mutex<Option<InstanceId>>);

#[async_trait]
impl Override for ReusesIds {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        info.id = free.take().unwrap_or(info.id);
        Ok(info)
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.terminate_instance(id).await?;
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *free = Some(id.clone());
        Ok(())
    }
}

/// Returns an invented id and launches nothing.
#[derive(Default)]
struct LaunchesNothing;

#[async_trait]
impl Override for LaunchesNothing {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        _: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let id = at.harness.unknown_id();
        Ok(InstanceInfo::new(id, CloudInstanceState::Pending))
    }
}

#[derive(Default)]
struct ListsOnlyWithFilter;

#[async_trait]
impl Relist for ListsOnlyWithFilter {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        list.retain(|_| !filter.tags.is_empty());
        Ok(list)
    }
}

/// Launches the config after `change`.
async fn launch_changed(
    at: CallContext<'_>,
    config: &InstanceConfig,
    change: impl FnOnce(&mut InstanceConfig) + Send,
) -> Result<InstanceInfo> {
    let mut config = config.clone();
    change(&mut config);
    at.inner.launch_instance(&config).await
}

#[derive(Default)]
struct IgnoresTheImage;

#[async_trait]
impl Override for IgnoresTheImage {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let pinned = ImageId::new("contract-image-2").ok();
        launch_changed(at, config, |config| match pinned {
            Some(pinned) if !unknown_image(at, config) => config.image = pinned,
            _ => {}
        })
        .await
    }
}

#[derive(Default)]
struct IgnoresTheType;

#[async_trait]
impl Override for IgnoresTheType {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let pinned: InstanceType = at.harness.config().instance_type;
        launch_changed(at, config, |config| config.instance_type = pinned).await
    }
}

#[derive(Default)]
struct CutsUserData;

#[async_trait]
impl Override for CutsUserData {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let cut = |data: UserData| UserData::new(data.as_bytes().trim_ascii_end()).ok();
        launch_changed(at, config, |config| {
            config.user_data = config.user_data.take().and_then(cut);
        })
        .await
    }
}

/// Treats the bytes as text.
#[derive(Default)]
struct ReencodesUserData;

#[async_trait]
impl Override for ReencodesUserData {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let as_text = |data: UserData| {
            let text = String::from_utf8_lossy(data.as_bytes()).into_owned();
            UserData::new(text).ok()
        };
        launch_changed(at, config, |config| {
            config.user_data = config.user_data.take().and_then(as_text);
        })
        .await
    }
}

#[derive(Default)]
struct IgnoresTheDiskSize;

#[async_trait]
impl Override for IgnoresTheDiskSize {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_changed(at, config, |config| config.disk_size_gb = None).await
    }
}

/// Returns whether the cloud does not have the config's image.
fn unknown_image(at: CallContext<'_>, config: &InstanceConfig) -> bool {
    at.harness.unknown_image().as_ref() == Some(&config.image)
}

/// Launches the default image in place of an unknown one.
#[derive(Default)]
struct ReplacesUnknownImages;

#[async_trait]
impl Override for ReplacesUnknownImages {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_changed(at, config, |config| {
            if unknown_image(at, config) {
                config.image = at.harness.config().image;
            }
        })
        .await
    }
}

#[derive(Default)]
struct UnknownImageIsAnOutage;

#[async_trait]
impl Override for UnknownImageIsAnOutage {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        if unknown_image(at, config) {
            let call = at.call(Operation::LaunchInstance);
            return Err(call.unavailable(Effect::None, "the image service did not respond"));
        }
        at.inner.launch_instance(config).await
    }
}

/// Checks the image after the instance was created.
#[derive(Default)]
struct ValidatesAfterCreating;

#[async_trait]
impl Override for ValidatesAfterCreating {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = ReplacesUnknownImages.launch_instance(at, config).await?;
        if unknown_image(at, config) {
            let instead = "choose another".to_owned();
            return Err(invalid("image", Problem::NotOffered { instead }));
        }
        Ok(info)
    }
}

/// Returns the refusal of a launch for the value of a field.
pub(super) fn invalid(field: &str, problem: Problem) -> ProvisionError {
    Call::new("memory", Operation::LaunchInstance).invalid(InvalidValue::new(field, problem))
}

#[derive(Default)]
struct CutsTooMuchUserData;

#[async_trait]
impl Override for CutsTooMuchUserData {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let most = at.inner.capabilities().max_user_data_bytes;
        let cut = |data: UserData| {
            let bytes = data.as_bytes();
            UserData::new(&bytes[..bytes.len().min(most)]).ok()
        };
        launch_changed(at, config, |config| {
            config.user_data = config.user_data.take().and_then(cut);
        })
        .await
    }
}

#[derive(Default)]
struct AcceptsOneByteLess;

#[async_trait]
impl Override for AcceptsOneByteLess {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let most = at.inner.capabilities().max_user_data_bytes;
        if let Some(data) = &config.user_data {
            let checked = data.check(most - 1);
            checked.map_err(|value| invalid("user data", value.problem().clone()))?;
        }
        at.inner.launch_instance(config).await
    }
}

#[derive(Default)]
struct IgnoresTheZone;

#[async_trait]
impl Override for IgnoresTheZone {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_changed(at, config, |config| config.placement.zone = None).await
    }
}

#[derive(Default)]
struct HidesTheZone;

#[async_trait]
impl Relist for HidesTheZone {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.placement.zone = None;
        }
        Ok(list)
    }
}

fn without_public_address() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.without_placement(PlacementField::PublicAddress))
}

#[derive(Default)]
struct IgnoresThePublicAddress;

#[async_trait]
impl Override for IgnoresThePublicAddress {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        launch_changed(at, config, |config| config.placement.public_address = None).await
    }
}

#[derive(Default)]
struct ReturnsRunning;

#[async_trait]
impl Override for ReturnsRunning {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let mut info = at.inner.launch_instance(config).await?;
        info.state = CloudInstanceState::Running;
        Ok(info)
    }
}
