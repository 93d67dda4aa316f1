//! Batches that cannot be completed after a call was dropped or a process died.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Mutex,
};

use async_trait::async_trait;
use fleetwright::{
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, LaunchToken, Operation, Result,
    RetryAdvice,
};

use super::partial;
use crate::{
    CallContext, OverrideHarness,
    mutants::{Mutant, Override, token::lock},
};

/// BATCH-18 and BATCH-19.
pub(in crate::mutants) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a dropped batch launch stays in progress",
        violates: "BATCH-18",
        make: OverrideHarness::factory::<LaunchStaysInProgress>,
    },
    Mutant {
        name: "a dropped batch of terminations is taken for one in progress",
        violates: "BATCH-18",
        make: OverrideHarness::factory::<TerminationStaysInProgress>,
    },
    Mutant {
        name: "a dropped batch of stops is taken for one in progress",
        violates: "BATCH-18",
        make: OverrideHarness::factory::<StopStaysInProgress>,
    },
    Mutant {
        name: "the token of a batch is stored after its instances were launched",
        violates: "BATCH-19",
        make: || OverrideHarness::factory_on::<StoresTokensAfterwards>(partial),
    },
    Mutant {
        name: "a batch that a dead process began is launched again",
        violates: "BATCH-19",
        make: OverrideHarness::factory::<RepeatsUnfinished>,
    },
];

/// Refuses a batch launch while the same handle makes it. A dropped call remains registered.
#[derive(Default)]
struct LaunchStaysInProgress(Mutex<BTreeSet<(usize, LaunchToken)>>);

#[async_trait]
impl Override for LaunchStaysInProgress {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let key = (at.handle, token.clone());
        if !lock(&self.0).insert(key.clone()) {
            let call = at.call(Operation::LaunchInstances);
            return Err(call.conflict("the batch is being launched", RetryAdvice::Never));
        }
        let result = at.inner.launch_instances(config, count).await;
        lock(&self.0).remove(&key);
        result
    }
}

/// The items that a handle is changing. A dropped call leaves them here.
#[derive(Default)]
struct InProgress(Mutex<BTreeSet<(usize, InstanceId)>>);

impl InProgress {
    /// Returns the items that are not being changed, and registers them.
    fn begin(&self, handle: usize, ids: &[InstanceId]) -> Vec<InstanceId> {
        let mut known = lock(&self.0);
        let new = ids
            .iter()
            .filter(|id| known.insert((handle, (*id).clone())));
        new.cloned().collect()
    }

    fn end(&self, handle: usize, ids: &[InstanceId]) {
        let mut known = lock(&self.0);
        for id in ids {
            known.remove(&(handle, id.clone()));
        }
    }
}

/// Returns the results of `new` in the order of `ids`, and success for the others.
fn in_order(ids: &[InstanceId], new: &[InstanceId], results: Vec<Result<()>>) -> Vec<Result<()>> {
    let results: BTreeMap<_, _> = new.iter().zip(results).collect();
    let of = |id| results.get(id).cloned().unwrap_or(Ok(()));
    ids.iter().map(of).collect()
}

#[derive(Default)]
struct TerminationStaysInProgress(InProgress);

#[async_trait]
impl Override for TerminationStaysInProgress {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let new = self.0.begin(at.handle, ids);
        let results = at.inner.terminate_instances(&new).await;
        self.0.end(at.handle, &new);
        in_order(ids, &new, results)
    }
}

#[derive(Default)]
struct StopStaysInProgress(InProgress);

#[async_trait]
impl Override for StopStaysInProgress {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        let new = self.0.begin(at.handle, ids);
        let results = at.inner.stop_instances(&new).await;
        self.0.end(at.handle, &new);
        in_order(ids, &new, results)
    }
}

/// Launches the instances of a batch one by one and then stores its token.
#[derive(Default)]
struct StoresTokensAfterwards(Mutex<BTreeMap<LaunchToken, Vec<InstanceId>>>);

#[async_trait]
impl Override for StoresTokensAfterwards {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let known = lock(&self.0).get(token).cloned();
        if let Some(ids) = known {
            let all = at.inner.list_instances(&InstanceFilter::new()).await?;
            return Ok(all
                .into_iter()
                .filter(|info| ids.contains(&info.id))
                .collect());
        }
        let mut item = config.clone();
        item.launch_token = None;
        let mut infos = Vec::new();
        for _ in 0..count.get() {
            infos.push(at.inner.launch_instance(&item).await?);
        }
        let ids = infos.iter().map(|info| info.id.clone()).collect();
        lock(&self.0).insert(token.clone(), ids);
        Ok(infos)
    }
}

/// Launches a batch again that another handle has begun and not finished.
#[derive(Default)]
struct RepeatsUnfinished(Mutex<BTreeMap<LaunchToken, usize>>);

#[async_trait]
impl Override for RepeatsUnfinished {
    async fn launch_instances(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instances(config, count).await;
        };
        let begun = *lock(&self.0).entry(token.clone()).or_insert(at.handle);
        let mut config = config.clone();
        if begun != 0 && begun != at.handle {
            config.launch_token = Some(LaunchToken::from(token.derive("again")));
        }
        let result = at.inner.launch_instances(&config, count).await;
        // Finished: no handle has this number.
        lock(&self.0).insert(token.clone(), 0);
        result
    }
}
