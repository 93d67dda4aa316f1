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

/// At least one for each layer.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "retry layer: resends a launch without a token after a lost response",
        violates: "CRASH-07",
        make: OverrideHarness::factory::<ResendsLaunches>,
    },
    Mutant {
        name: "retry layer: resends a reboot after a lost response",
        violates: "CRASH-07",
        make: OverrideHarness::factory::<ResendsReboots>,
    },
    Mutant {
        name: "retry layer: resends a throttled call at once",
        violates: "ERRORS-12",
        make: OverrideHarness::factory::<RetriesAtOnce>,
    },
    Mutant {
        name: "timeout layer: reports a launch that timed out as without effect",
        violates: "ERRORS-08",
        make: OverrideHarness::factory::<TimeoutHasNoEffect>,
    },
    Mutant {
        name: "limit layer: a dropped call keeps its permit",
        violates: "CANCELLATION-02",
        make: OverrideHarness::factory::<KeepsPermits>,
    },
    Mutant {
        name: "coalesce layer: returns results to the wrong callers",
        violates: "CONCURRENCY-05",
        make: OverrideHarness::factory::<MixesResultsUp>,
    },
    Mutant {
        name: "coalesce layer: the error of one caller fails all",
        violates: "CONCURRENCY-05",
        make: OverrideHarness::factory::<FailsTogether>,
    },
    Mutant {
        name: "fallback layer: launches the next offering although the first outcome is unknown",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<LaunchesNextOffering>,
    },
    Mutant {
        name: "fallback layer: reports quota as capacity",
        violates: "ERRORS-01",
        make: OverrideHarness::factory::<QuotaIsCapacity>,
    },
    Mutant {
        name: "trace layer: writes the config into the error",
        violates: "ERRORS-10",
        make: OverrideHarness::factory::<ShowsConfigInError>,
    },
    Mutant {
        name: "metrics layer: does not forward one call",
        violates: "VERBS-07",
        make: OverrideHarness::factory::<DoesNotForwardACall>,
    },
];

/// Returns whether the effect of the call is unknown.
fn is_unknown<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if error.effect() == Effect::Unknown)
}

/// Resends every launch with an unknown effect, whether it has a token or not.
#[derive(Default)]
struct ResendsLaunches;

#[async_trait]
impl Override for ResendsLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if is_unknown(&result) {
            return at.inner.launch_instance(config).await;
        }
        result
    }
}

/// Treats a reboot as a call that may be resent.
#[derive(Default)]
struct ResendsReboots;

#[async_trait]
impl Override for ResendsReboots {
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        let result = at.inner.reboot_instance(id, how).await;
        if is_unknown(&result) {
            return at.inner.reboot_instance(id, how).await;
        }
        result
    }
}

/// Uses a delay of its own and ignores the one that the cloud demands.
#[derive(Default)]
struct RetriesAtOnce;

#[async_trait]
impl Override for RetriesAtOnce {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut result = at.inner.describe_instance(id).await;
        for _ in 0..3 {
            match &result {
                Err(error) if error.kind() == ErrorKind::Throttled => {
                    sleep(Duration::from_millis(100)).await;
                    result = at.inner.describe_instance(id).await;
                }
                Ok(_) | Err(_) => break,
            }
        }
        result
    }
}

/// Assumes that a call that timed out was not carried out.
#[derive(Default)]
struct TimeoutHasNoEffect;

#[async_trait]
impl Override for TimeoutHasNoEffect {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let launch = at.inner.launch_instance(config);
        match timeout(Duration::from_secs(60), launch).await {
            Ok(result) => result,
            Err(_) => Err(at.call(Operation::LaunchInstance).timeout(Effect::None)),
        }
    }
}

/// Counts the calls in progress, and never releases the permit of a call that is dropped.
#[derive(Default)]
struct KeepsPermits(AtomicUsize);

#[async_trait]
impl Override for KeepsPermits {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        const PLACES: usize = 2;
        if self.0.fetch_add(1, Ordering::SeqCst) >= PLACES {
            self.0.fetch_sub(1, Ordering::SeqCst);
            let call = at.call(Operation::StopInstance);
            return Err(call.throttled(Duration::from_secs(1)));
        }
        let result = at.inner.stop_instance(id).await;
        self.0.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

/// The concurrent callers, in the order in which they called.
#[derive(Default)]
struct Waiters(Mutex<BTreeMap<usize, InstanceId>>);

impl Waiters {
    fn with<T>(&self, see: impl FnOnce(&mut BTreeMap<usize, InstanceId>) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a caller, until the returned value is dropped.
    fn join(&self, id: &InstanceId) -> Waiter<'_> {
        let number = self.with(|all| {
            let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
            all.insert(number, id.clone());
            number
        });
        Waiter(self, number)
    }
}

struct Waiter<'a>(&'a Waiters, usize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.with(|all| all.remove(&self.1));
    }
}

/// Returns to each of several concurrent callers the result of the one before it.
#[derive(Default)]
struct MixesResultsUp(Waiters);

#[async_trait]
impl Override for MixesResultsUp {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let member = self.0.join(id);
        // All concurrent callers are in the same batch.
        sleep(Duration::from_millis(1)).await;
        let before = self
            .0
            .with(|all| all.range(..member.1).next_back().map(|(_, id)| id.clone()));
        let result = at.inner.start_instance(id).await?;
        match before {
            Some(other) if at.truth(&other).is_some() => at.inner.start_instance(&other).await,
            _ => Ok(result),
        }
    }
}

/// Returns the error of one caller to all concurrent callers.
#[derive(Default)]
struct FailsTogether {
    waiters: Waiters,
    failed: Mutex<BTreeMap<InstanceId, ProvisionError>>,
}

#[async_trait]
impl Override for FailsTogether {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let _member = self.waiters.join(id);
        let result = at.inner.stop_instance(id).await;
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Err(error) => {
                failed.insert(id.clone(), error.clone());
                Err(error)
            }
            Ok(()) => {
                let is_concurrent = self.waiters.with(|all| all.len() > 1);
                let unknown = at.harness.cloud().oracle().instance(id).is_some();
                match failed.values().next().filter(|_| is_concurrent && unknown) {
                    Some(error) if error.kind() == ErrorKind::NotFound => Err(error.clone()),
                    Some(_) | None => Ok(()),
                }
            }
        }
    }
}

/// Launches the next offering with another token when the effect of a launch is unknown.
#[derive(Default)]
struct LaunchesNextOffering;

#[async_trait]
impl Override for LaunchesNextOffering {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let (true, Some(token)) = (is_unknown(&result), &config.launch_token) else {
            return result;
        };
        let mut other = config.clone();
        other.placement.market = Some(Market::Spot);
        other.launch_token = Some(token.item(1));
        at.inner.launch_instance(&other).await
    }
}

/// Reports missing capacity, whatever error the offerings returned.
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
            result => result,
        }
    }
}

/// Adds the config with its user data to the error of a failed launch.
#[derive(Default)]
struct ShowsConfigInError;

#[async_trait]
impl Override for ShowsConfigInError {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        result.map_err(|error| match &config.user_data {
            Some(data) => {
                let text = String::from_utf8_lossy(data.as_bytes());
                error.with_native_code(format!("with user data {text}"))
            }
            None => error,
        })
    }
}

/// A wrapper that was written before the call was added to the trait: it uses the default method.
#[derive(Default)]
struct DoesNotForwardACall;

#[async_trait]
impl Override for DoesNotForwardACall {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        _: &InstanceId,
        _: &SnapshotRequest,
    ) -> Result<ImageId> {
        Err(at.call(Operation::SnapshotImage).unsupported())
    }
}
