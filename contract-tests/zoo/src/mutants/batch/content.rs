//! Batch launches that lose fields of the config or instances of a token, and batches of nothing.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Mutex};

use async_trait::async_trait;
use fleetwright::{
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, LaunchRecord,
    LaunchToken, Operation, Result,
};

use crate::{
    CallContext, OverrideHarness,
    mutants::{
        Mutant, Override,
        launch::fields::{
            Batch, NoDisk, NoGroups, NoMarket, NoNetwork, NoPublicAddress, NoUserData, NoZone,
            OneImage, OneType, private,
        },
        token::lock,
    },
};

/// BATCH-13, BATCH-14 and BATCH-17.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    lost(
        "a batch launch drops the user data",
        OverrideHarness::factory::<Batch<NoUserData>>,
    ),
    lost(
        "a batch launch drops the disk size",
        OverrideHarness::factory::<Batch<NoDisk>>,
    ),
    lost(
        "a batch launch drops the zone",
        OverrideHarness::factory::<Batch<NoZone>>,
    ),
    lost(
        "a batch launch drops the network",
        OverrideHarness::factory::<Batch<NoNetwork>>,
    ),
    lost(
        "a batch launch drops the security groups",
        OverrideHarness::factory::<Batch<NoGroups>>,
    ),
    lost(
        "a batch launch drops the market",
        OverrideHarness::factory::<Batch<NoMarket>>,
    ),
    lost(
        "a batch launch drops the type",
        OverrideHarness::factory::<Batch<OneType>>,
    ),
    lost(
        "a batch launch drops the image",
        OverrideHarness::factory::<Batch<OneImage>>,
    ),
    lost("a batch launch drops a requested public address", || {
        OverrideHarness::factory_on::<Batch<NoPublicAddress>>(private)
    }),
    lost(
        "only the first instance of a batch has the disk size",
        OverrideHarness::factory::<OneDisk>,
    ),
    Mutant {
        name: "a batch of no terminations terminates everything",
        violates: "BATCH-14",
        make: OverrideHarness::factory::<TerminatesAll>,
    },
    Mutant {
        name: "a batch of no stops stops everything",
        violates: "BATCH-14",
        make: OverrideHarness::factory::<StopsAll>,
    },
    Mutant {
        name: "a batch of no starts starts everything",
        violates: "BATCH-14",
        make: OverrideHarness::factory::<StartsAll>,
    },
    Mutant {
        name: "a batch of no descriptions describes everything",
        violates: "BATCH-14",
        make: OverrideHarness::factory::<DescribesAll>,
    },
    Mutant {
        name: "a batch of no stops is refused",
        violates: "BATCH-14",
        make: OverrideHarness::factory::<RefusesNothing>,
    },
    Mutant {
        name: "another handle finds one instance of a batch",
        violates: "BATCH-17",
        make: OverrideHarness::factory::<FindsOneOfABatch>,
    },
    Mutant {
        name: "a stopped instance of a batch is not found by its token",
        violates: "BATCH-17",
        make: OverrideHarness::factory::<FindsNoStoppedOfABatch>,
    },
    Mutant {
        name: "a batch of one has another native token than a launch of one",
        violates: "BATCH-17",
        make: OverrideHarness::factory::<TokensOfBatchesOfOne>,
    },
];

const fn lost(name: &'static str, make: fn() -> crate::Factory) -> Mutant {
    let violates = "BATCH-13";
    Mutant {
        name,
        violates,
        make,
    }
}

#[derive(Default)]
struct OneDisk;

#[async_trait]
impl Override for OneDisk {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let others = NonZeroU32::new(count.get() - 1);
        let (None, Some(others)) = (&config.launch_token, others) else {
            return at.inner.launch_instances(config, count).await;
        };
        let mut infos = at.inner.launch_instances(config, NonZeroU32::MIN).await?;
        let mut without = config.clone();
        without.disk_size_gb = None;
        infos.extend(at.inner.launch_instances(&without, others).await?);
        Ok(infos)
    }
}

/// Returns all instances if no ids are given.
async fn or_all(at: CallContext<'_>, ids: &[InstanceId]) -> Vec<InstanceId> {
    if !ids.is_empty() {
        return ids.to_vec();
    }
    let all = at.inner.list_instances(&InstanceFilter::new()).await;
    all.unwrap_or_default()
        .into_iter()
        .map(|info| info.id)
        .collect()
}

/// Makes a batch without ids one of all instances, and returns nothing for them.
macro_rules! all_without_ids {
    ($name:ident, $call:ident, $result:ty) => {
        #[derive(Default)]
        struct $name;

        #[async_trait]
        impl Override for $name {
            async fn $call(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<$result>> {
                let mut results = at.inner.$call(&or_all(at, ids).await).await;
                results.truncate(ids.len());
                results
            }
        }
    };
}

all_without_ids!(TerminatesAll, terminate_instances, ());
all_without_ids!(StopsAll, stop_instances, ());
all_without_ids!(StartsAll, start_instances, InstanceInfo);

#[derive(Default)]
struct DescribesAll;

#[async_trait]
impl Override for DescribesAll {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        at.inner.describe_instances(&or_all(at, ids).await).await
    }
}

/// Returns a refusal for a batch without items.
#[derive(Default)]
struct RefusesNothing;

#[async_trait]
impl Override for RefusesNothing {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        if ids.is_empty() {
            return vec![Err(at.call(Operation::StopInstances).unsupported())];
        }
        at.inner.stop_instances(ids).await
    }
}

/// Finds one instance of a batch of three, except through the first handle.
#[derive(Default)]
struct FindsOneOfABatch;

#[async_trait]
impl Override for FindsOneOfABatch {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut record = at.inner.find_launch(token).await?;
        if let LaunchRecord::Found(infos) = &mut record {
            if infos.len() > 2 && at.handle > 1 {
                infos.truncate(1);
            }
        }
        Ok(record)
    }
}

#[derive(Default)]
struct FindsNoStoppedOfABatch;

#[async_trait]
impl Override for FindsNoStoppedOfABatch {
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let mut record = at.inner.find_launch(token).await?;
        if let LaunchRecord::Found(infos) = &mut record {
            if infos.len() > 2 {
                infos.retain(|info| info.state < fleetwright::CloudInstanceState::Stopping);
            }
        }
        Ok(record)
    }
}

/// Has a native token of its own for a batch of one, after a launch of one with the same token.
#[derive(Default)]
struct TokensOfBatchesOfOne(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for TokensOfBatchesOfOne {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        lock(&self.0).extend(config.launch_token.clone());
        at.inner.launch_instance(config).await
    }
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut config = config.clone();
        let single = |token: &LaunchToken| lock(&self.0).contains(token);
        if count == NonZeroU32::MIN && config.launch_token.as_ref().is_some_and(single) {
            let token = config.launch_token.take();
            config.launch_token = token.map(|token| LaunchToken::from(token.derive("batch")));
        }
        at.inner.launch_instances(&config, count).await
    }
}
