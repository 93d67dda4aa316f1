//! Layers that are each broken in one way, as people write them around a sound backend.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Effect, ErrorKind, ImageId, InstanceConfig, InstanceId, InstanceInfo, InstanceStatus, Market,
    Operation, ProvisionError, Reboot, Result, Scope, SnapshotRequest,
};
use tokio::time::{sleep, timeout};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// One for each layer, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "retry: launch without a token repeated after a lost reply",
        violates: "CRASH-07",
        make: OverrideHarness::factory::<RepeatsBlindly>,
    },
    Mutant {
        name: "retry: reboot repeated after a lost reply",
        violates: "CRASH-07",
        make: OverrideHarness::factory::<RebootsAgain>,
    },
    Mutant {
        name: "retry: throttled call repeated at once",
        violates: "ERRORS-12",
        make: OverrideHarness::factory::<RepeatsAtOnce>,
    },
    Mutant {
        name: "timeout: launch that was cut off has no effect",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<CutOffHasNoEffect>,
    },
    Mutant {
        name: "limit: dropped call keeps its place",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<KeepsPlaces>,
    },
    Mutant {
        name: "coalesce: answers handed out in another order",
        violates: "CONCURRENCY-05",
        make: OverrideHarness::factory::<MixesAnswersUp>,
    },
    Mutant {
        name: "coalesce: one caller's failure fails all",
        violates: "CONCURRENCY-05",
        make: OverrideHarness::factory::<FailsTogether>,
    },
    Mutant {
        name: "fallback: moves on while an attempt is unknown",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<MovesOnBlindly>,
    },
    Mutant {
        name: "fallback: quota taken for want of capacity",
        violates: "ERRORS-01",
        make: OverrideHarness::factory::<QuotaIsCapacity>,
    },
    Mutant {
        name: "trace: config written into the error",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<TellsTheConfig>,
    },
    Mutant {
        name: "metrics: call forgotten, so that it is not passed on",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<ForgetsACall>,
    },
];

/// Whether nobody knows what became of the call.
fn is_unknown<T>(answer: &Result<T>) -> bool {
    matches!(answer, Err(error) if error.effect() == Effect::Unknown)
}

/// Repeats every launch that went unanswered, whether it has a token or not.
#[derive(Default)]
struct RepeatsBlindly;

#[async_trait]
impl Override for RepeatsBlindly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        if is_unknown(&answer) {
            return at.inner.launch_instance(config).await;
        }
        answer
    }
}

/// Takes a reboot for one of the calls that may be repeated.
#[derive(Default)]
struct RebootsAgain;

#[async_trait]
impl Override for RebootsAgain {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        let answer = at.inner.reboot_instance(id, how).await;
        if is_unknown(&answer) {
            return at.inner.reboot_instance(id, how).await;
        }
        answer
    }
}

/// Has a backoff of its own, and does not look at what the cloud asks for.
#[derive(Default)]
struct RepeatsAtOnce;

#[async_trait]
impl Override for RepeatsAtOnce {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut answer = at.inner.describe_instance(id).await;
        for _ in 0..3 {
            match &answer {
                Err(error) if error.kind() == ErrorKind::Throttled => {
                    sleep(Duration::from_millis(100)).await;
                    answer = at.inner.describe_instance(id).await;
                }
                Ok(_) | Err(_) => break,
            }
        }
        answer
    }
}

/// Believes that what it has not waited for has not happened.
#[derive(Default)]
struct CutOffHasNoEffect;

#[async_trait]
impl Override for CutOffHasNoEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let launch = at.inner.launch_instance(config);
        match timeout(Duration::from_secs(60), launch).await {
            Ok(answer) => answer,
            Err(_) => Err(at.call(Operation::LaunchInstance).timeout(Effect::None)),
        }
    }
}

/// Counts the calls under way up and down, and one that is dropped never down.
#[derive(Default)]
struct KeepsPlaces(AtomicUsize);

#[async_trait]
impl Override for KeepsPlaces {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        const PLACES: usize = 2;
        if self.0.fetch_add(1, Ordering::SeqCst) >= PLACES {
            self.0.fetch_sub(1, Ordering::SeqCst);
            let call = at.call(Operation::StopInstance);
            return Err(call.throttled(Duration::from_secs(1)));
        }
        let answer = at.inner.stop_instance(id).await;
        self.0.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

/// Who asks at the same time, in the order they came.
#[derive(Default)]
struct Crowd(Mutex<BTreeMap<usize, InstanceId>>);

impl Crowd {
    fn with<T>(&self, see: impl FnOnce(&mut BTreeMap<usize, InstanceId>) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Joins, and leaves when the answer is dropped.
    fn join(&self, id: &InstanceId) -> Member<'_> {
        let number = self.with(|all| {
            let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
            all.insert(number, id.clone());
            number
        });
        Member(self, number)
    }
}

struct Member<'a>(&'a Crowd, usize);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.with(|all| all.remove(&self.1));
    }
}

/// Gives each of several callers the answer of the one before it.
#[derive(Default)]
struct MixesAnswersUp(Crowd);

#[async_trait]
impl Override for MixesAnswersUp {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let member = self.0.join(id);
        // Everybody who asks in this moment is in the same batch.
        sleep(Duration::from_millis(1)).await;
        let before = self
            .0
            .with(|all| all.range(..member.1).next_back().map(|(_, id)| id.clone()));
        let answer = at.inner.start_instance(id).await?;
        match before {
            Some(other) if at.truth(&other).is_some() => at.inner.start_instance(&other).await,
            _ => Ok(answer),
        }
    }
}

/// Answers everybody who asks at the same time with the error of the one that fails.
#[derive(Default)]
struct FailsTogether {
    crowd: Crowd,
    failed: Mutex<BTreeMap<InstanceId, ProvisionError>>,
}

#[async_trait]
impl Override for FailsTogether {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let _member = self.crowd.join(id);
        let answer = at.inner.stop_instance(id).await;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Err(error) => {
                failed.insert(id.clone(), error.clone());
                Err(error)
            }
            Ok(()) => {
                let beside = self.crowd.with(|all| all.len() > 1);
                let unknown = at.harness.cloud().oracle().instance(id).is_some();
                match failed.values().next().filter(|_| beside && unknown) {
                    Some(error) if error.kind() == ErrorKind::NotFound => Err(error.clone()),
                    Some(_) | None => Ok(()),
                }
            }
        }
    }
}

/// Launches the next alternative, under a token of its own, when no answer came.
#[derive(Default)]
struct MovesOnBlindly;

#[async_trait]
impl Override for MovesOnBlindly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        let (true, Some(token)) = (is_unknown(&answer), &config.launch_token) else {
            return answer;
        };
        let mut other = config.clone();
        other.placement.market = Some(Market::Spot);
        other.launch_token = Some(token.item(1));
        at.inner.launch_instance(&other).await
    }
}

/// Tells of every alternative that none had capacity, whatever they said.
#[derive(Default)]
struct QuotaIsCapacity;

#[async_trait]
impl Override for QuotaIsCapacity {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        match at.inner.launch_instance(config).await {
            Err(error) if error.kind() == ErrorKind::Quota => {
                let call = at.call(Operation::LaunchInstance);
                Err(call.capacity(Scope::Region, "no alternative is left"))
            }
            answer => answer,
        }
    }
}

/// Wants to help with what it shows of a launch that failed.
#[derive(Default)]
struct TellsTheConfig;

#[async_trait]
impl Override for TellsTheConfig {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        answer.map_err(|error| match &config.user_data {
            Some(data) => {
                let text = String::from_utf8_lossy(data.as_bytes());
                error.with_native_code(format!("with user data {text}"))
            }
            None => error,
        })
    }
}

/// A wrapper that was written before the call was added to the trait.
#[derive(Default)]
struct ForgetsACall;

#[async_trait]
impl Override for ForgetsACall {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        _: &InstanceId,
        _: &SnapshotRequest,
    ) -> Result<ImageId> {
        Err(at.call(Operation::SnapshotImage).unsupported())
    }
}
