//! Backends that break the family batch. This file has batch launches.

pub(super) mod content;
pub(super) mod interrupted;
mod items;
pub(super) mod partial;
mod single;
pub(super) mod states;

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    BatchLaunch, Capabilities, Effect, InstanceConfig, InstanceInfo, LaunchToken, Result, TagChange,
};

use self::items::{
    DescribesInItsOrder, DescribesOneBatch, FailsWholeDescriptions, FailsWholeStarts,
    FailsWholeStartsByState, FailsWholeStopsByState, FailsWholeTerminations, LeavesMissingOut,
    StartsAllOrNothing, StopsUntilFailure, UnknownStartEffect,
};
use self::single::{
    HidesAddressesBesideTheEnded, NamesNoNativeStates, SkipsWhatListsOmit, StartsWithoutAddress,
    StartsWithoutTags, StartsWithoutTime, StartsWithoutType, StartsWithoutZone,
    TerminatesForItself,
};
use super::{Mutant, Override, token::lock};
use crate::{CallContext, MemoryHarness, OverrideHarness};
use fleetwright_contract_tests::SCOPE_TAG;

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a batch launch creates one instance too few",
        violates: "BATCH-01",
        make: OverrideHarness::factory::<LaunchesOneTooFew>,
    },
    Mutant {
        name: "only the first instance of a batch is tagged",
        violates: "BATCH-01",
        make: OverrideHarness::factory::<TagsTheFirst>,
    },
    Mutant {
        name: "a batch launch ignores its token",
        violates: "BATCH-02",
        make: OverrideHarness::factory::<IgnoresTheToken>,
    },
    Mutant {
        name: "a replay of a batch returns its first instance only",
        violates: "BATCH-02",
        make: OverrideHarness::factory::<ReplaysTheFirst>,
    },
    Mutant {
        name: "a replay of a batch returns its first instance for each",
        violates: "BATCH-02",
        make: OverrideHarness::factory::<ReplaysTheFirstForEach>,
    },
    Mutant {
        name: "the count of a batch is not compared",
        violates: "BATCH-03",
        make: OverrideHarness::factory::<IgnoresTheCount>,
    },
    Mutant {
        name: "only the handle that launched a batch knows its count",
        violates: "BATCH-03",
        make: OverrideHarness::factory::<RemembersOwnCounts>,
    },
    Mutant {
        name: "the survivors of a partial failure are not reported",
        violates: "BATCH-04",
        make: || OverrideHarness::factory_on::<ForgetsSurvivors>(partial),
    },
    Mutant {
        name: "all or nothing is declared, but a part is left",
        violates: "BATCH-04",
        make: || OverrideHarness::factory_on::<DeclaresAllOrNothing>(partial),
    },
    Mutant {
        name: "all or nothing is declared, but the effect is unknown",
        violates: "BATCH-04",
        make: OverrideHarness::factory::<UnknownBatchEffect>,
    },
    Mutant {
        name: "one missing instance fails a whole batch of descriptions",
        violates: "BATCH-05",
        make: OverrideHarness::factory::<FailsWholeDescriptions>,
    },
    Mutant {
        name: "a missing instance is left out of a batch of descriptions",
        violates: "BATCH-05",
        make: OverrideHarness::factory::<LeavesMissingOut>,
    },
    Mutant {
        name: "a batch of descriptions is returned in another order",
        violates: "BATCH-05",
        make: OverrideHarness::factory::<DescribesInItsOrder>,
    },
    Mutant {
        name: "one unknown id fails a whole batch of terminations",
        violates: "BATCH-06",
        make: OverrideHarness::factory::<FailsWholeTerminations>,
    },
    Mutant {
        name: "a batch of stops ends at the first failure",
        violates: "BATCH-07",
        make: OverrideHarness::factory::<StopsUntilFailure>,
    },
    Mutant {
        name: "one unknown id fails a whole batch of starts",
        violates: "BATCH-07",
        make: OverrideHarness::factory::<FailsWholeStarts>,
    },
    Mutant {
        name: "only the first native batch is described",
        violates: "BATCH-08",
        make: || OverrideHarness::factory_on::<DescribesOneBatch>(batches_of_ten),
    },
    Mutant {
        name: "a batch launch is truncated to the native batch size",
        violates: "BATCH-08",
        make: || OverrideHarness::factory_on::<LaunchesOneBatch>(batches_of_ten),
    },
    Mutant {
        name: "the last item of a native batch is returned for the first of the next",
        violates: "BATCH-08",
        make: || OverrideHarness::factory_on::<DoublesAtTheBoundary>(batches_of_ten),
    },
    Mutant {
        name: "one start without capacity fails a whole batch of starts",
        violates: "BATCH-09",
        make: OverrideHarness::factory::<StartsAllOrNothing>,
    },
    Mutant {
        name: "a start without capacity has an unknown effect",
        violates: "BATCH-09",
        make: OverrideHarness::factory::<UnknownStartEffect>,
    },
    Mutant {
        name: "one terminated instance fails a whole batch of stops",
        violates: "BATCH-10",
        make: OverrideHarness::factory::<FailsWholeStopsByState>,
    },
    Mutant {
        name: "one terminated instance fails a whole batch of starts",
        violates: "BATCH-10",
        make: OverrideHarness::factory::<FailsWholeStartsByState>,
    },
    Mutant {
        name: "a batch with a terminated instance has no addresses",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<HidesAddressesBesideTheEnded>,
    },
    Mutant {
        name: "a batch of descriptions has no native states",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<NamesNoNativeStates>,
    },
    Mutant {
        name: "a batch of starts returns no tags",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<StartsWithoutTags>,
    },
    Mutant {
        name: "a batch of starts returns no type",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<StartsWithoutType>,
    },
    Mutant {
        name: "a batch of starts returns no zone",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<StartsWithoutZone>,
    },
    Mutant {
        name: "a batch of starts returns no launch time",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<StartsWithoutTime>,
    },
    Mutant {
        name: "a batch of starts returns no public address",
        violates: "BATCH-11",
        make: OverrideHarness::factory::<StartsWithoutAddress>,
    },
    Mutant {
        name: "a batch terminates only what a list shows",
        violates: "BATCH-12",
        make: || OverrideHarness::factory_on::<SkipsWhatListsOmit>(stale),
    },
    Mutant {
        name: "the last termination of a batch is only remembered",
        violates: "BATCH-12",
        make: OverrideHarness::factory::<TerminatesForItself>,
    },
];

fn stale() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.read_lag(Duration::from_secs(5)))
}

pub(super) fn partial() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.batch_launch(BatchLaunch::Partial))
}

fn batches_of_ten() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.batch_size(NonZeroUsize::MIN.saturating_add(9)))
}

#[derive(Default)]
struct LaunchesOneTooFew;

#[async_trait]
impl Override for LaunchesOneTooFew {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let less = NonZeroU32::new(count.get() - 1).unwrap_or(count);
        at.inner.launch_instances(config, less).await
    }
}

#[derive(Default)]
struct TagsTheFirst;

#[async_trait]
impl Override for TagsTheFirst {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let launched = at.inner.launch_instances(config, count).await?;
        let mut change = TagChange::new();
        let given = config.tags.iter().map(|(key, _)| key.to_owned());
        change.remove = given.filter(|key| key != SCOPE_TAG).collect();
        for info in &launched[1..] {
            let actor = at.harness.cloud().external_actor();
            actor.update_tags(&info.id, &change)?;
        }
        Ok(launched)
    }
}

#[derive(Default)]
struct IgnoresTheToken;

#[async_trait]
impl Override for IgnoresTheToken {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut config = config.clone();
        config.launch_token = None;
        at.inner.launch_instances(&config, count).await
    }
}

/// The counts of the batches that were launched, by token.
#[derive(Default)]
struct Launched(Mutex<BTreeMap<LaunchToken, NonZeroU32>>);

impl Launched {
    /// Returns the count that a token was launched with before.
    fn count(&self, config: &InstanceConfig) -> Option<NonZeroU32> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(config.launch_token.as_ref()?).copied()
    }

    fn note(&self, config: &InstanceConfig, count: NonZeroU32) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.extend(config.launch_token.clone().map(|token| (token, count)));
    }
}

/// Finds the instances of a token and returns only the first one.
#[derive(Default)]
struct ReplaysTheFirst(Launched);

#[async_trait]
impl Override for ReplaysTheFirst {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut infos = at.inner.launch_instances(config, count).await?;
        if self.0.count(config).is_some() {
            infos.truncate(1);
        }
        self.0.note(config, count);
        Ok(infos)
    }
}

/// Finds the instances of a token and returns the first one for each.
#[derive(Default)]
struct ReplaysTheFirstForEach(Launched);

#[async_trait]
impl Override for ReplaysTheFirstForEach {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut infos = at.inner.launch_instances(config, count).await?;
        if self.0.count(config).is_some() {
            let first = infos[0].clone();
            infos.fill(first);
        }
        self.0.note(config, count);
        Ok(infos)
    }
}

#[derive(Default)]
struct IgnoresTheCount(Launched);

#[async_trait]
impl Override for IgnoresTheCount {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let count = self.0.count(config).unwrap_or(count);
        let infos = at.inner.launch_instances(config, count).await?;
        self.0.note(config, count);
        Ok(infos)
    }
}

/// Compares the count of a token with what the same handle launched, and with nothing else.
#[derive(Default)]
struct RemembersOwnCounts(Mutex<BTreeMap<LaunchToken, (usize, NonZeroU32)>>);

#[async_trait]
impl Override for RemembersOwnCounts {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let earlier = lock(&self.0).get(token).copied();
        let count = match earlier {
            Some((handle, original)) if handle != at.handle => original,
            _ => count,
        };
        let infos = at.inner.launch_instances(config, count).await?;
        let own = (at.handle, count);
        lock(&self.0).entry(token.clone()).or_insert(own);
        Ok(infos)
    }
}

#[derive(Default)]
struct ForgetsSurvivors;

#[async_trait]
impl Override for ForgetsSurvivors {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let result = at.inner.launch_instances(config, count).await;
        result.map_err(|error| error.with_survivors(Vec::new()))
    }
}

#[derive(Default)]
struct DeclaresAllOrNothing;

impl Override for DeclaresAllOrNothing {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.batch_launch = BatchLaunch::AllOrNothing;
        declared
    }
}

#[derive(Default)]
struct UnknownBatchEffect;

#[async_trait]
impl Override for UnknownBatchEffect {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let result = at.inner.launch_instances(config, count).await;
        result.map_err(|error| error.with_effect(Effect::Unknown))
    }
}

#[derive(Default)]
struct LaunchesOneBatch;

#[async_trait]
impl Override for LaunchesOneBatch {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let most = NonZeroU32::try_from(at.inner.capabilities().batch_size);
        let count = most.map_or(count, |most| count.min(most));
        at.inner.launch_instances(config, count).await
    }
}

#[derive(Default)]
struct DoublesAtTheBoundary;

#[async_trait]
impl Override for DoublesAtTheBoundary {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let mut infos = at.inner.launch_instances(config, count).await?;
        let native = at.inner.capabilities().batch_size.get();
        if infos.len() > native {
            infos[native] = infos[native - 1].clone();
        }
        Ok(infos)
    }
}
