//! Backends that break the family cancellation.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, InstanceConfig, InstanceId, InstanceInfo, LaunchRecord, LaunchToken, Operation,
    Result, RetryAdvice,
};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::sleep,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a dropped launch is not found by its token",
        violates: "CANCELLATION-01",
        make: OverrideHarness::factory::<DroppedLaunchLeaks>,
    },
    Mutant {
        name: "a dropped launch counts as in progress forever",
        violates: "CANCELLATION-01",
        make: OverrideHarness::factory::<DroppedLaunchStaysInProgress>,
    },
    Mutant {
        name: "a dropped stop counts as in progress forever",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedStopStaysInProgress>,
    },
    Mutant {
        name: "a dropped start counts as in progress forever",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedStartStaysInProgress>,
    },
    Mutant {
        name: "a dropped terminate blocks the next one",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedTerminateBlocks>,
    },
    Mutant {
        name: "a shared call fails when its first caller is dropped",
        violates: "CANCELLATION-03",
        make: OverrideHarness::factory::<FollowerFailsWithLeader>,
    },
];

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores the native token of a launch when its result has arrived, and not if the caller drops the
/// launch before.
#[derive(Default)]
struct DroppedLaunchLeaks {
    native: Mutex<BTreeMap<LaunchToken, LaunchToken>>,
    attempts: AtomicU32,
    one_by_one: Mutex<BTreeMap<LaunchToken, Arc<AsyncMutex<()>>>>,
}

impl DroppedLaunchLeaks {
    fn native(&self, token: &LaunchToken) -> Option<LaunchToken> {
        locked(&self.native).get(token).cloned()
    }
}

#[async_trait]
impl Override for DroppedLaunchLeaks {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let turn = Arc::clone(locked(&self.one_by_one).entry(token.clone()).or_default());
        let _turn = turn.lock().await;
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
        let native = self.native(token).unwrap_or_else(|| token.item(attempt));
        let mut sent = config.clone();
        sent.launch_token = Some(native.clone());
        let result = at.inner.launch_instance(&sent).await;
        if !matches!(&result, Err(error) if error.effect() == Effect::None) {
            locked(&self.native).insert(token.clone(), native);
        }
        result
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let native = self.native(token);
        at.inner.find_launch(native.as_ref().unwrap_or(token)).await
    }
}

/// Finds no launch of a token while one is in progress. A dropped launch stays in progress.
#[derive(Default)]
struct DroppedLaunchStaysInProgress(Mutex<BTreeMap<LaunchToken, u32>>);

#[async_trait]
impl Override for DroppedLaunchStaysInProgress {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        *locked(&self.0).entry(token.clone()).or_default() += 1;
        let result = at.inner.launch_instance(config).await;
        *locked(&self.0).entry(token.clone()).or_default() -= 1;
        result
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        if locked(&self.0)
            .get(token)
            .is_some_and(|under_way| *under_way > 0)
        {
            return Ok(LaunchRecord::NotFound);
        }
        at.inner.find_launch(token).await
    }
}

/// Refuses a stop while another one is in progress. A dropped stop stays in progress.
#[derive(Default)]
struct DroppedStopStaysInProgress(Mutex<BTreeSet<(usize, InstanceId)>>);

#[async_trait]
impl Override for DroppedStopStaysInProgress {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let first = locked(&self.0).insert((at.handle, id.clone()));
        if !first && !at.inner.describe_instance(id).await?.state.is_ending() {
            return Ok(());
        }
        let result = at.inner.stop_instance(id).await;
        locked(&self.0).remove(&(at.handle, id.clone()));
        result
    }
}

/// Refuses a start while another one is in progress. A dropped start stays in progress.
#[derive(Default)]
struct DroppedStartStaysInProgress(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for DroppedStartStaysInProgress {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        for _ in 0..2 {
            at.inner.describe_instance(id).await?;
        }
        let first = locked(&self.0).insert(id.clone());
        if let Some(truth) = at.truth(id).filter(|_| !first) {
            return Ok(truth.info);
        }
        let result = at.inner.start_instance(id).await;
        locked(&self.0).remove(id);
        result
    }
}

/// Cleans up after a terminate, and refuses another one until the cleanup is done.
#[derive(Default)]
struct DroppedTerminateBlocks(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for DroppedTerminateBlocks {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if locked(&self.0).contains(id) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("a terminate is in progress", RetryAdvice::SameToken));
        }
        at.inner.terminate_instance(id).await?;
        locked(&self.0).insert(id.clone());
        sleep(Duration::from_millis(1)).await;
        locked(&self.0).remove(id);
        Ok(())
    }
}

type Shared = watch::Receiver<Option<Result<InstanceInfo>>>;

/// Combines concurrent launches with one token into one call, which the first caller polls.
#[derive(Default)]
struct FollowerFailsWithLeader(Mutex<BTreeMap<LaunchToken, (InstanceConfig, Shared)>>);

#[async_trait]
impl Override for FollowerFailsWithLeader {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        let (sender, shared) = watch::channel(None);
        let leader = {
            let mut under_way = locked(&self.0);
            let live = |(_, call): &(_, Shared)| call.has_changed().is_ok();
            let found = under_way.get(token).filter(|one| live(one)).cloned();
            if found.is_none() {
                under_way.insert(token.clone(), (config.clone(), shared));
            }
            found.filter(|(other, _)| other == config)
        };
        let Some((_, mut leader)) = leader else {
            let result = at.inner.launch_instance(config).await;
            sender.send_replace(Some(result.clone()));
            return result;
        };
        let received = leader.wait_for(Option::is_some).await;
        let result = received.ok().and_then(|result| result.clone());
        let call = Call::new("memory", Operation::LaunchInstance);
        result.unwrap_or_else(|| Err(call.unexpected(Effect::Unknown, "cancelled")))
    }
}
