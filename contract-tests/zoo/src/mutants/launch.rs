//! Backends that break the family launch.

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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "launch answers a stopped instance",
        violates: "LAUNCH-01",
        make: OverrideHarness::factory::<AnswersStopped>,
    },
    Mutant {
        name: "id reused after terminate",
        violates: "LAUNCH-02",
        make: OverrideHarness::factory::<ReusesIds>,
    },
    Mutant {
        name: "launch ok but never visible",
        violates: "LAUNCH-03",
        make: OverrideHarness::factory::<LaunchesNothing>,
    },
    Mutant {
        name: "a list without a filter shows nothing",
        violates: "LAUNCH-03",
        make: OverrideHarness::factory::<Lists<NeedsATag>>,
    },
    Mutant {
        name: "image ignored",
        violates: "LAUNCH-04",
        make: OverrideHarness::factory::<IgnoresTheImage>,
    },
    Mutant {
        name: "type ignored",
        violates: "LAUNCH-04",
        make: OverrideHarness::factory::<IgnoresTheType>,
    },
    Mutant {
        name: "user data cut at a line end",
        violates: "LAUNCH-05",
        make: OverrideHarness::factory::<CutsUserData>,
    },
    Mutant {
        name: "user data re-encoded",
        violates: "LAUNCH-05",
        make: OverrideHarness::factory::<ReencodesUserData>,
    },
    Mutant {
        name: "disk size ignored",
        violates: "LAUNCH-06",
        make: OverrideHarness::factory::<IgnoresTheDiskSize>,
    },
    Mutant {
        name: "an unknown image is replaced",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<ReplacesUnknownImages>,
    },
    Mutant {
        name: "an unknown image is an outage",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<UnknownImageIsAnOutage>,
    },
    Mutant {
        name: "validates after creating",
        violates: "LAUNCH-07",
        make: OverrideHarness::factory::<ValidatesAfterCreating>,
    },
    Mutant {
        name: "too much user data is cut",
        violates: "LAUNCH-08",
        make: OverrideHarness::factory::<CutsTooMuchUserData>,
    },
    Mutant {
        name: "user data of the declared size is refused",
        violates: "LAUNCH-08",
        make: OverrideHarness::factory::<TakesOneByteLess>,
    },
    Mutant {
        name: "zone ignored",
        violates: "LAUNCH-09",
        make: OverrideHarness::factory::<IgnoresTheZone>,
    },
    Mutant {
        name: "zone not shown",
        violates: "LAUNCH-09",
        make: OverrideHarness::factory::<Lists<HidesTheZone>>,
    },
    Mutant {
        name: "a placement field that is not declared is dropped",
        violates: "LAUNCH-09",
        make: || OverrideHarness::factory_on::<IgnoresThePublicAddress>(without_public_address),
    },
    Mutant {
        name: "launch reply says running while describe says pending",
        violates: "LAUNCH-10",
        make: OverrideHarness::factory::<AnswersRunning>,
    },
];

#[derive(Default)]
struct AnswersStopped;

#[async_trait]
impl Override for AnswersStopped {
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

/// Names the next instance after one that was terminated.
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

/// Makes the id up and sends nothing.
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
struct NeedsATag;

#[async_trait]
impl Relist for NeedsATag {
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

/// Launches what `change` makes of the config.
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

/// Takes the bytes for text.
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

/// Whether the cloud does not have the config's image.
fn unknown_image(at: CallContext<'_>, config: &InstanceConfig) -> bool {
    at.harness.unknown_image().as_ref() == Some(&config.image)
}

/// Falls back to the default image.
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
            return Err(call.unavailable(Effect::None, "no answer from the images"));
        }
        at.inner.launch_instance(config).await
    }
}

/// Has the instance before it looks at the image.
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

/// A launch that is refused for the value of a field.
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
struct TakesOneByteLess;

#[async_trait]
impl Override for TakesOneByteLess {
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
struct AnswersRunning;

#[async_trait]
impl Override for AnswersRunning {
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
