//! Backends that break the family concurrency.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    LaunchToken, Operation, Result, RetryAdvice,
};
use tokio::sync::{Mutex as AsyncMutex, RwLock, watch};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a lock is held across a call",
        violates: "CONCURRENCY-01",
        make: OverrideHarness::factory::<LockHeldAcrossAwait>,
    },
    Mutant {
        name: "lists wait for launches in progress",
        violates: "CONCURRENCY-01",
        make: OverrideHarness::factory::<ListsWaitForLaunches>,
    },
    Mutant {
        name: "concurrent equal launches are merged although their tokens differ",
        violates: "CONCURRENCY-02",
        make: OverrideHarness::factory::<MergesEqualLaunches>,
    },
    Mutant {
        name: "a terminate during a start has no effect",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<TerminateYieldsToStart>,
    },
    Mutant {
        name: "a started instance is reported again after its termination",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<StartedReappears>,
    },
    Mutant {
        name: "a terminate concurrent with a start is carried out and reported as a conflict",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<TerminateReportsConflict>,
    },
    Mutant {
        name: "a replay does not compare its config with that of a launch in progress",
        violates: "CONCURRENCY-04",
        make: OverrideHarness::factory::<MergesConflictingLaunches>,
    },
];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct LockHeldAcrossAwait(AsyncMutex<()>);

#[async_trait]
impl Override for LockHeldAcrossAwait {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let _one_at_a_time = self.0.lock().await;
        at.inner.launch_instance(config).await
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let _one_at_a_time = self.0.lock().await;
        at.inner.describe_instance(id).await
    }
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let _one_at_a_time = self.0.lock().await;
        at.inner.stop_instance(id).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let _one_at_a_time = self.0.lock().await;
        at.inner.list_instances(filter).await
    }
}

/// Lists only while no launch is in progress.
#[derive(Default)]
struct ListsWaitForLaunches(RwLock<()>);

#[async_trait]
impl Override for ListsWaitForLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let _beside_others = self.0.read().await;
        at.inner.launch_instance(config).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        drop(self.0.write().await);
        at.inner.list_instances(filter).await
    }
}

type Shared = watch::Receiver<Option<Result<InstanceInfo>>>;

/// Waits for the result of a call in progress. Returns `None` if its caller was dropped.
async fn follow(mut call: Shared) -> Option<Result<InstanceInfo>> {
    let result = call.wait_for(Option::is_some).await;
    result.ok().and_then(|result| result.clone())
}

/// Combines concurrent launches with equal configs into one, although their tokens differ.
#[derive(Default)]
struct MergesEqualLaunches(Mutex<Vec<(InstanceConfig, LaunchToken, Shared)>>);

#[async_trait]
impl Override for MergesEqualLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = config.launch_token.clone() else {
            return at.inner.launch_instance(config).await;
        };
        let mut bare = config.clone();
        bare.launch_token = None;
        let (lead, shared) = watch::channel(None);
        let leader = {
            let mut under_way = locked(&self.0);
            under_way.retain(|(_, _, call)| call.has_changed().is_ok());
            let mut others = under_way.iter().filter(|(_, other, _)| *other != token);
            let found = others.find(|(other, ..)| *other == bare);
            let found = found.map(|(_, _, call)| call.clone());
            under_way.push((bare, token, shared));
            found
        };
        if let Some(leader) = leader {
            if let Some(result) = follow(leader).await {
                return result;
            }
        }
        let result = at.inner.launch_instance(config).await;
        lead.send_replace(Some(result.clone()));
        result
    }
}

/// Accepts a terminate during a start of the same instance and ignores it.
#[derive(Default)]
struct TerminateYieldsToStart(Mutex<BTreeSet<InstanceId>>);

/// Marks a start as in progress until it is dropped.
struct InProgress<'a>(&'a Mutex<BTreeSet<InstanceId>>, &'a InstanceId);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        locked(self.0).remove(self.1);
    }
}

#[async_trait]
impl Override for TerminateYieldsToStart {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        locked(&self.0).insert(id.clone());
        let _until_then = InProgress(&self.0, id);
        at.inner.start_instance(id).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if locked(&self.0).contains(id) {
            return Ok(());
        }
        at.inner.terminate_instance(id).await
    }
}

/// Reports a started instance once as terminated, and then as running again.
#[derive(Default)]
struct StartedReappears(Mutex<BTreeMap<InstanceId, CloudInstanceState>>);

#[async_trait]
impl Override for StartedReappears {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let result = at.inner.start_instance(id).await;
        locked(&self.0).insert(id.clone(), CloudInstanceState::Terminated);
        result
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if let Some(next) = locked(&self.0)
            .get_mut(id)
            .filter(|_| status.state.is_final())
        {
            status.state = std::mem::replace(next, CloudInstanceState::Running);
        }
        Ok(status)
    }
}

/// Carries out a terminate during a start and reports a conflict.
#[derive(Default)]
struct TerminateReportsConflict(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for TerminateReportsConflict {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        locked(&self.0).insert(id.clone());
        let _until_then = InProgress(&self.0, id);
        at.inner.start_instance(id).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let is_concurrent = locked(&self.0).contains(id);
        at.inner.terminate_instance(id).await?;
        if is_concurrent {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("a start is in progress", RetryAdvice::SameToken));
        }
        Ok(())
    }
}

/// Returns to a launch the result of the launch in progress with the same token, whatever its config.
#[derive(Default)]
struct MergesConflictingLaunches(Mutex<BTreeMap<LaunchToken, Shared>>);

#[async_trait]
impl Override for MergesConflictingLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let (lead, shared) = watch::channel(None);
        let leader = {
            let mut under_way = locked(&self.0);
            let live = |call: &&Shared| call.has_changed().is_ok();
            let found = under_way.get(token).filter(live).cloned();
            if found.is_none() {
                under_way.insert(token.clone(), shared);
            }
            found
        };
        if let Some(leader) = leader {
            if let Some(result) = follow(leader).await {
                return result;
            }
        }
        let result = at.inner.launch_instance(config).await;
        lead.send_replace(Some(result.clone()));
        result
    }
}
