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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "lock held across await",
        violates: "CONCURRENCY-01",
        make: OverrideHarness::factory::<LockHeldAcrossAwait>,
    },
    Mutant {
        name: "lists wait for the launches under way",
        violates: "CONCURRENCY-01",
        make: OverrideHarness::factory::<ListsWaitForLaunches>,
    },
    Mutant {
        name: "equal launches under way are merged whatever their tokens",
        violates: "CONCURRENCY-02",
        make: OverrideHarness::factory::<MergesEqualLaunches>,
    },
    Mutant {
        name: "terminate gives way to a start under way",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<TerminateGivesWay>,
    },
    Mutant {
        name: "what was started comes back after its end",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<StartedComesBack>,
    },
    Mutant {
        name: "terminate beside a start is told as a conflict",
        violates: "CONCURRENCY-03",
        make: OverrideHarness::factory::<TerminateIsToldAsConflict>,
    },
    Mutant {
        name: "config not compared with that of a launch under way",
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

/// Shows a list when nothing is being added to it.
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

/// Waits for what a call under way answers; nothing if its caller has gone.
async fn follow(mut call: Shared) -> Option<Result<InstanceInfo>> {
    let answer = call.wait_for(Option::is_some).await;
    answer.ok().and_then(|answer| answer.clone())
}

/// Saves calls: launches with tokens and equal configs that are under way become one.
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
            let found = others.find(|(asked, ..)| *asked == bare);
            let found = found.map(|(_, _, call)| call.clone());
            under_way.push((bare, token, shared));
            found
        };
        if let Some(leader) = leader {
            if let Some(answer) = follow(leader).await {
                return answer;
            }
        }
        let answer = at.inner.launch_instance(config).await;
        lead.send_replace(Some(answer.clone()));
        answer
    }
}

/// Takes a terminate for done while a start of the same instance is under way.
#[derive(Default)]
struct TerminateGivesWay(Mutex<BTreeSet<InstanceId>>);

/// A start, for as long as somebody waits for it.
struct UnderWay<'a>(&'a Mutex<BTreeSet<InstanceId>>, &'a InstanceId);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        locked(self.0).remove(self.1);
    }
}

#[async_trait]
impl Override for TerminateGivesWay {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        locked(&self.0).insert(id.clone());
        let _until_then = UnderWay(&self.0, id);
        at.inner.start_instance(id).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if locked(&self.0).contains(id) {
            return Ok(());
        }
        at.inner.terminate_instance(id).await
    }
}

/// Tells once of the end of an instance that it has started, and then what it remembers.
#[derive(Default)]
struct StartedComesBack(Mutex<BTreeMap<InstanceId, CloudInstanceState>>);

#[async_trait]
impl Override for StartedComesBack {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let answer = at.inner.start_instance(id).await;
        locked(&self.0).insert(id.clone(), CloudInstanceState::Terminated);
        answer
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

/// Terminates whatever is under way, and says that it does not.
#[derive(Default)]
struct TerminateIsToldAsConflict(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for TerminateIsToldAsConflict {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        locked(&self.0).insert(id.clone());
        let _until_then = UnderWay(&self.0, id);
        at.inner.start_instance(id).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let beside = locked(&self.0).contains(id);
        at.inner.terminate_instance(id).await?;
        if beside {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("a start is under way", RetryAdvice::SameToken));
        }
        Ok(())
    }
}

/// Answers a launch with what a launch with the same token is about to be answered.
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
            if let Some(answer) = follow(leader).await {
                return answer;
            }
        }
        let answer = at.inner.launch_instance(config).await;
        lead.send_replace(Some(answer.clone()));
        answer
    }
}
