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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "dropped launch leaks",
        violates: "CANCELLATION-01",
        make: OverrideHarness::factory::<DroppedLaunchLeaks>,
    },
    Mutant {
        name: "dropped launch is under way for ever",
        violates: "CANCELLATION-01",
        make: OverrideHarness::factory::<DroppedLaunchGoesOn>,
    },
    Mutant {
        name: "dropped stop is under way for ever",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedStopGoesOn>,
    },
    Mutant {
        name: "dropped start is under way for ever",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedStartGoesOn>,
    },
    Mutant {
        name: "dropped terminate is in the way of the next",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<DroppedTerminateIsInTheWay>,
    },
    Mutant {
        name: "caller that shares a call fails when the other is dropped",
        violates: "CANCELLATION-03",
        make: OverrideHarness::factory::<FollowerFailsWithLeader>,
    },
];

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes down which native token stands for the caller's when the answer has come, whatever it is;
/// not when the caller has gone.
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
        let answer = at.inner.launch_instance(&sent).await;
        if !matches!(&answer, Err(error) if error.effect() == Effect::None) {
            locked(&self.native).insert(token.clone(), native);
        }
        answer
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let native = self.native(token);
        at.inner.find_launch(native.as_ref().unwrap_or(token)).await
    }
}

/// Counts the launches under way, and finds nothing before they end; one that is dropped never does.
#[derive(Default)]
struct DroppedLaunchGoesOn(Mutex<BTreeMap<LaunchToken, u32>>);

#[async_trait]
impl Override for DroppedLaunchGoesOn {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        *locked(&self.0).entry(token.clone()).or_default() += 1;
        let answer = at.inner.launch_instance(config).await;
        *locked(&self.0).entry(token.clone()).or_default() -= 1;
        answer
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

/// Takes a stop for one that is under way already; one that was dropped is so for ever.
#[derive(Default)]
struct DroppedStopGoesOn(Mutex<BTreeSet<(usize, InstanceId)>>);

#[async_trait]
impl Override for DroppedStopGoesOn {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let first = locked(&self.0).insert((at.handle, id.clone()));
        if !first && !at.inner.describe_instance(id).await?.state.is_ending() {
            return Ok(());
        }
        let answer = at.inner.stop_instance(id).await;
        locked(&self.0).remove(&(at.handle, id.clone()));
        answer
    }
}

/// Looks twice before it starts an instance, and takes a start for one that is under way already.
#[derive(Default)]
struct DroppedStartGoesOn(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for DroppedStartGoesOn {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        for _ in 0..2 {
            at.inner.describe_instance(id).await?;
        }
        let first = locked(&self.0).insert(id.clone());
        if let Some(truth) = at.truth(id).filter(|_| !first) {
            return Ok(truth.info);
        }
        let answer = at.inner.start_instance(id).await;
        locked(&self.0).remove(id);
        answer
    }
}

/// Tidies up after a terminate, and refuses another one until that is done.
#[derive(Default)]
struct DroppedTerminateIsInTheWay(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for DroppedTerminateIsInTheWay {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if locked(&self.0).contains(id) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("a terminate is under way", RetryAdvice::SameToken));
        }
        at.inner.terminate_instance(id).await?;
        locked(&self.0).insert(id.clone());
        sleep(Duration::from_millis(1)).await;
        locked(&self.0).remove(id);
        Ok(())
    }
}

type Shared = watch::Receiver<Option<Result<InstanceInfo>>>;

/// Makes one call of equal launches under way, which the first caller drives.
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
        let (lead, shared) = watch::channel(None);
        let leader = {
            let mut under_way = locked(&self.0);
            let live = |(_, call): &(_, Shared)| call.has_changed().is_ok();
            let found = under_way.get(token).filter(|one| live(one)).cloned();
            if found.is_none() {
                under_way.insert(token.clone(), (config.clone(), shared));
            }
            found.filter(|(asked, _)| asked == config)
        };
        let Some((_, mut leader)) = leader else {
            let answer = at.inner.launch_instance(config).await;
            lead.send_replace(Some(answer.clone()));
            return answer;
        };
        let led = leader.wait_for(Option::is_some).await;
        let answer = led.ok().and_then(|answer| answer.clone());
        let call = Call::new("memory", Operation::LaunchInstance);
        answer.unwrap_or_else(|| Err(call.unexpected(Effect::Unknown, "cancelled")))
    }
}
