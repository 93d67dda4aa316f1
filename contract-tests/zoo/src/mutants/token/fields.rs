//! Backends that do not compare a field of the config, or compare it with the instance as it is now.

use std::{collections::HashMap, marker::PhantomData, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{InstanceConfig, InstanceId, InstanceInfo, LaunchToken, Result, UserData};

use super::{conflict, lock, mutant};
use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override},
};

/// TOKEN-20 and TOKEN-21.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    mutant(
        "TOKEN-20",
        "a replay does not compare the image",
        OverrideHarness::factory::<Forgives<Image>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay does not compare the network",
        OverrideHarness::factory::<Forgives<Network>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay does not compare the security groups",
        OverrideHarness::factory::<Forgives<Groups>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay does not compare the market",
        OverrideHarness::factory::<Forgives<TheMarket>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay compares the first kilobyte of user data",
        OverrideHarness::factory::<Forgives<Tail>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay compares the size of user data",
        OverrideHarness::factory::<Forgives<LastByte>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay compares the values of tags without their keys",
        OverrideHarness::factory::<Forgives<Exchanged>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay of a batch does not compare the user data",
        OverrideHarness::factory::<ForgivesBatches<Data>>,
    ),
    mutant(
        "TOKEN-20",
        "a replay of a batch does not compare the tags",
        OverrideHarness::factory::<ForgivesBatches<AllTags>>,
    ),
    mutant(
        "TOKEN-21",
        "a replay compares the config with the current type",
        OverrideHarness::factory::<ComparesCurrent<Type>>,
    ),
    mutant(
        "TOKEN-21",
        "a replay compares the config with the current image",
        OverrideHarness::factory::<ComparesCurrent<Image>>,
    ),
    mutant(
        "TOKEN-21",
        "a replay accepts the current type",
        OverrideHarness::factory::<AcceptsCurrentType>,
    ),
];

/// Copies what is not compared from the first config of a token.
trait Forgotten: Send + Sync {
    fn copy(first: &InstanceConfig, replay: &mut InstanceConfig);
}

macro_rules! forgotten {
    ($name:ident, $copy:expr) => {
        struct $name;

        impl Forgotten for $name {
            fn copy(first: &InstanceConfig, replay: &mut InstanceConfig) {
                let copy: fn(&InstanceConfig, &mut InstanceConfig) = $copy;
                copy(first, replay);
            }
        }
    };
}

forgotten!(Image, |first, replay| replay.image.clone_from(&first.image));
forgotten!(Type, |first, replay| replay
    .instance_type
    .clone_from(&first.instance_type));
forgotten!(Network, |first, replay| replay
    .placement
    .network
    .clone_from(&first.placement.network));
forgotten!(Groups, |first, replay| replay
    .placement
    .security_groups
    .clone_from(&first.placement.security_groups));
forgotten!(TheMarket, |first, replay| replay.placement.market =
    first.placement.market);
forgotten!(Data, |first, replay| replay
    .user_data
    .clone_from(&first.user_data));
forgotten!(AllTags, |first, replay| replay.tags.clone_from(&first.tags));
forgotten!(Tail, |first, replay| {
    let head = |config: &InstanceConfig| {
        let bytes = config.user_data.as_ref().map(UserData::as_bytes);
        bytes.map(|bytes| bytes[..bytes.len().min(1024)].to_vec())
    };
    if head(first) == head(replay) {
        replay.user_data.clone_from(&first.user_data);
    }
});
forgotten!(LastByte, |first, replay| {
    let size =
        |config: &InstanceConfig| config.user_data.as_ref().map(|data| data.as_bytes().len());
    let large = size(first).is_some_and(|size| size > 100);
    if large && size(first) == size(replay) {
        replay.user_data.clone_from(&first.user_data);
    }
});
forgotten!(Exchanged, |first, replay| {
    let values = |config: &InstanceConfig| {
        let values = config.tags.iter().map(|(_, value)| value.to_owned());
        let mut values: Vec<_> = values.collect();
        values.sort();
        values
    };
    if values(first) == values(replay) {
        replay.tags.clone_from(&first.tags);
    }
});

/// The first config of each token.
struct FirstConfigs<F>(Mutex<HashMap<LaunchToken, InstanceConfig>>, PhantomData<F>);

impl<F> Default for FirstConfigs<F> {
    fn default() -> Self {
        Self(Mutex::default(), PhantomData)
    }
}

impl<F: Forgotten> FirstConfigs<F> {
    /// Returns the config that is compared.
    fn compared(&self, config: &InstanceConfig) -> InstanceConfig {
        let mut compared = config.clone();
        let token = config.launch_token.as_ref();
        if let Some(first) = token.and_then(|token| lock(&self.0).get(token).cloned()) {
            F::copy(&first, &mut compared);
        }
        compared
    }

    fn note(&self, config: InstanceConfig) {
        let token = config.launch_token.clone();
        lock(&self.0).extend(token.map(|token| (token, config)));
    }
}

/// Does not compare a field of launches of one.
struct Forgives<F>(FirstConfigs<F>);

impl<F> Default for Forgives<F> {
    fn default() -> Self {
        Self(FirstConfigs::default())
    }
}

#[async_trait]
impl<F: Forgotten> Override for Forgives<F> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let config = self.0.compared(config);
        let info = at.inner.launch_instance(&config).await?;
        self.0.note(config);
        Ok(info)
    }
}

/// Does not compare a field of batches.
struct ForgivesBatches<F>(FirstConfigs<F>);

impl<F> Default for ForgivesBatches<F> {
    fn default() -> Self {
        Self(FirstConfigs::default())
    }
}

#[async_trait]
impl<F: Forgotten> Override for ForgivesBatches<F> {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = self.0.compared(config);
        let infos = at.inner.launch_instances(&config, count).await?;
        self.0.note(config);
        Ok(infos)
    }
}

/// The instance of each token.
type Instances = Mutex<HashMap<LaunchToken, InstanceId>>;

/// Returns the true config of the instance that a token launched: its current type and image.
fn current(
    at: CallContext<'_>,
    known: &Instances,
    config: &InstanceConfig,
) -> Option<InstanceConfig> {
    let id = lock(known).get(config.launch_token.as_ref()?).cloned()?;
    let info = at.truth(&id)?.info;
    let mut current = config.clone();
    current.image = info.image?;
    current.instance_type = info.instance_type?;
    Some(current)
}

/// Refuses a replay unless a field has the value that the instance has now.
struct ComparesCurrent<F>(Instances, PhantomData<F>);

impl<F> Default for ComparesCurrent<F> {
    fn default() -> Self {
        Self(Mutex::default(), PhantomData)
    }
}

#[async_trait]
impl<F: Forgotten> Override for ComparesCurrent<F> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        if let Some(current) = current(at, &self.0, config) {
            let mut compared = config.clone();
            F::copy(&current, &mut compared);
            if compared != *config {
                return Err(conflict(token));
            }
        }
        let info = at.inner.launch_instance(config).await?;
        lock(&self.0).insert(token.clone(), info.id.clone());
        Ok(info)
    }
}

/// Accepts a replay with the type that the instance has now.
#[derive(Default)]
struct AcceptsCurrentType(Instances, FirstConfigs<Type>);

#[async_trait]
impl Override for AcceptsCurrentType {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let now = current(at, &self.0, config);
        let is_current = now.is_some_and(|now| now.instance_type == config.instance_type);
        let mut config = config.clone();
        if is_current {
            config = self.1.compared(&config);
        }
        let info = at.inner.launch_instance(&config).await?;
        let token = config.launch_token.clone();
        lock(&self.0).extend(token.map(|token| (token, info.id.clone())));
        self.1.note(config);
        Ok(info)
    }
}
