//! Backends that lose a field of the config, or report another value than the instance has.
//!
//! Launches with a token are another path of these backends, and a correct one, so that replays of
//! changed configs do not detect them, too.

use std::{marker::PhantomData, num::NonZeroU32};

use async_trait::async_trait;
use chrono::TimeDelta;
use fleetwright::{
    Capabilities, ImageId, InstanceConfig, InstanceFilter, InstanceInfo, InstanceType,
    LaunchRecord, LaunchToken, Result,
};
use fleetwright_memory::MemoryCloudBuilder;

use crate::{
    CallContext, MemoryHarness, OverrideHarness,
    mutants::{
        Mutant, Override,
        list::{Lists, Relist},
    },
};

/// A change of a config on its way to the cloud.
pub(in crate::mutants) trait Change: Send + Sync {
    fn change(config: &mut InstanceConfig, declared: &Capabilities);
}

/// Changes the config of launches of one instance.
pub(in crate::mutants) struct Single<C>(PhantomData<C>);

/// Changes the config of batch launches.
pub(in crate::mutants) struct Batch<C>(PhantomData<C>);

impl<C> Default for Single<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<C> Default for Batch<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

fn changed<C: Change>(at: CallContext<'_>, config: &InstanceConfig) -> InstanceConfig {
    let mut config = config.clone();
    if config.launch_token.is_none() {
        C::change(&mut config, at.inner.capabilities());
    }
    config
}

#[async_trait]
impl<C: Change> Override for Single<C> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(&changed::<C>(at, config)).await
    }
}

#[async_trait]
impl<C: Change> Override for Batch<C> {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = changed::<C>(at, config);
        at.inner.launch_instances(&config, count).await
    }
}

macro_rules! change {
    ($name:ident, $doc:literal, $change:expr) => {
        #[doc = $doc]
        pub(in crate::mutants) struct $name;

        impl Change for $name {
            fn change(config: &mut InstanceConfig, _: &Capabilities) {
                let change: fn(&mut InstanceConfig) = $change;
                change(config);
            }
        }
    };
}

change!(NoUserData, "Drops the user data.", |config| config
    .user_data =
    None);
change!(NoDisk, "Drops the size of the disk.", |config| config
    .disk_size_gb =
    None);
change!(NoZone, "Drops the zone.", |config| config.placement.zone =
    None);
change!(NoNetwork, "Drops the network.", |config| config
    .placement
    .network =
    None);
change!(NoGroups, "Drops the security groups.", |config| config
    .placement
    .security_groups
    .clear());
change!(OneGroup, "Keeps the first security group.", |config| {
    let first = config.placement.security_groups.pop_first();
    config.placement.security_groups = first.into_iter().collect();
});
change!(NoMarket, "Launches on demand.", |config| config
    .placement
    .market = None);
change!(
    NoPublicAddress,
    "Leaves the public address to the cloud.",
    |config| config.placement.public_address = None
);
change!(OneType, "Launches one type only.", |config| {
    let small = InstanceType::new("contract-small");
    config.instance_type = small.unwrap_or_else(|_| config.instance_type.clone());
});
change!(OneImage, "Launches one image only.", |config| {
    let first = ImageId::new("contract-image");
    config.image = first.unwrap_or_else(|_| config.image.clone());
});
change!(
    NoDiskBesideNetwork,
    "Drops the size of the disk if a network is given.",
    |config| {
        if config.placement.network.is_some() {
            config.disk_size_gb = None;
        }
    }
);

/// Launches without public addresses, unless a config requests one.
pub(in crate::mutants) fn private() -> MemoryHarness {
    MemoryHarness::with(MemoryCloudBuilder::public_addresses_on_request)
}

/// LAUNCH-11 and LAUNCH-13.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the network is ignored",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<NoNetwork>>,
    },
    Mutant {
        name: "the security groups are ignored",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<NoGroups>>,
    },
    Mutant {
        name: "network and security groups of every launch are ignored",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<NeverPlaces>,
    },
    Mutant {
        name: "only the first security group is used",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<OneGroup>>,
    },
    Mutant {
        name: "spot instances are launched on demand",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<NoMarket>>,
    },
    Mutant {
        name: "a public address is assigned to an instance that must have none",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<NoPublicAddress>>,
    },
    Mutant {
        name: "a requested public address is not assigned",
        violates: "LAUNCH-11",
        make: || OverrideHarness::factory_on::<Single<NoPublicAddress>>(private),
    },
    Mutant {
        name: "the disk size is ignored beside a network",
        violates: "LAUNCH-11",
        make: OverrideHarness::factory::<Single<NoDiskBesideNetwork>>,
    },
    Mutant {
        name: "launch times in lists are in another time zone",
        violates: "LAUNCH-13",
        make: OverrideHarness::factory::<Lists<ShiftsLaunchTimes>>,
    },
    Mutant {
        name: "a lookup by token returns no public address",
        violates: "LAUNCH-13",
        make: OverrideHarness::factory::<FindsNoAddress>,
    },
];

/// Drops network and groups of all launches: with and without a token, of one instance and of many. Reads and the
/// oracle show neither, so nothing contradicts the config.
#[derive(Default)]
struct NeverPlaces;

impl NeverPlaces {
    fn unplaced(config: &InstanceConfig) -> InstanceConfig {
        let mut config = config.clone();
        config.placement.network = None;
        config.placement.security_groups.clear();
        config
    }
}

#[async_trait]
impl Override for NeverPlaces {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        at.inner.launch_instance(&Self::unplaced(config)).await
    }

    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let config = Self::unplaced(config);
        at.inner.launch_instances(&config, count).await
    }
}

#[derive(Default)]
struct ShiftsLaunchTimes;

#[async_trait]
impl Relist for ShiftsLaunchTimes {
    async fn relist(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.launch_time = info.launch_time.map(|time| time - TimeDelta::hours(1));
        }
        Ok(list)
    }
}

#[derive(Default)]
struct FindsNoAddress;

#[async_trait]
impl Override for FindsNoAddress {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut record = at.inner.find_launch(token).await?;
        if let LaunchRecord::Found(infos) = &mut record {
            for info in infos {
                info.public_ip = None;
            }
        }
        Ok(record)
    }
}
