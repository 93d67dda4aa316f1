//! Backends that break the family crash.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    LaunchRecord, LaunchToken, Operation, Result, RetryAdvice,
};
use tokio::time::{Instant, sleep};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the backend retries a launch with a new token",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<NewTokenOnRetry>,
    },
    Mutant {
        name: "find_launch finds only launches whose response arrived",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<FindsCompletedLaunchesOnly>,
    },
    Mutant {
        name: "the replay of a launch whose response was lost returns another id",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<RenamesLostLaunches>,
    },
    Mutant {
        name: "find_launch reports a launch that never arrived as terminated",
        violates: "CRASH-02",
        make: OverrideHarness::factory::<ReportsUnsentLaunches>,
    },
    Mutant {
        name: "a stop whose response was lost blocks the start",
        violates: "CRASH-03",
        make: OverrideHarness::factory::<LostStopBlocks>,
    },
    Mutant {
        name: "the lock of a dead process is never released",
        violates: "CRASH-04",
        make: OverrideHarness::factory::<LeaseOutlivesProcess>,
    },
    Mutant {
        name: "a launch whose response was lost is not listed",
        violates: "CRASH-05",
        make: OverrideHarness::factory::<ListsCompletedLaunchesOnly>,
    },
    Mutant {
        name: "config not compared while stopped",
        violates: "CRASH-06",
        make: OverrideHarness::factory::<ForgetsConfigOfStopped>,
    },
    Mutant {
        name: "a token is spent only if the backend itself terminated the instance",
        violates: "CRASH-06",
        make: OverrideHarness::factory::<SpentByOwnTerminatesOnly>,
    },
];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Retries a launch by itself with another token.
#[derive(Default)]
struct NewTokenOnRetry;

#[async_trait]
impl Override for NewTokenOnRetry {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        match result {
            Err(error) if error.effect() == Effect::Unknown => {
                let mut again = config.clone();
                again.launch_token = config.launch_token.as_ref().map(|token| token.item(1));
                at.inner.launch_instance(&again).await
            }
            result => result,
        }
    }
}

/// Stores a launch when its result has arrived, and finds only stored launches.
#[derive(Default)]
struct FindsCompletedLaunchesOnly(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for FindsCompletedLaunchesOnly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if let (Err(error), Some(token)) = (&result, &config.launch_token) {
            if error.kind() == ErrorKind::Timeout {
                locked(&self.0).insert(token.clone());
            }
        }
        result
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        if locked(&self.0).contains(token) {
            return Ok(LaunchRecord::NotFound);
        }
        at.inner.find_launch(token).await
    }
}

/// Returns an invented id from the replay of a launch whose response was lost.
#[derive(Default)]
struct RenamesLostLaunches(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for RenamesLostLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let lost = matches!(&result, Err(error) if error.kind() == ErrorKind::Timeout);
        let mut tokens = locked(&self.0);
        tokens.extend(config.launch_token.clone().filter(|_| lost));
        let renamed = config
            .launch_token
            .as_ref()
            .filter(|token| tokens.contains(token));
        result.map(|mut info| {
            if renamed.is_some() {
                info.id = InstanceId::new(info.id.as_str().to_uppercase()).unwrap_or(info.id);
            }
            info
        })
    }
}

/// Stores every launch that may have been carried out, and reports a stored launch that the cloud does
/// not find as terminated.
#[derive(Default)]
struct ReportsUnsentLaunches(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for ReportsUnsentLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let sent = !matches!(&result, Err(error) if error.effect() == Effect::None);
        locked(&self.0).extend(config.launch_token.clone().filter(|_| sent));
        result
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        let found = at.inner.find_launch(token).await?;
        let noted = locked(&self.0).contains(token);
        if noted && found == LaunchRecord::NotFound {
            return Ok(LaunchRecord::Terminated(Vec::new()));
        }
        Ok(found)
    }
}

/// Refuses a start until the response of the stop has arrived.
#[derive(Default)]
struct LostStopBlocks(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for LostStopBlocks {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.stop_instance(id).await;
        if matches!(&result, Err(error) if error.effect() == Effect::Unknown) {
            locked(&self.0).insert(id.clone());
        }
        result
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        if locked(&self.0).contains(id) {
            let call = Call::new("memory", Operation::StartInstance);
            return Err(call.conflict("a stop is in progress", RetryAdvice::Never));
        }
        at.inner.start_instance(id).await
    }
}

/// Locks an instance for one handle, and never releases the lock of a handle that is dead.
#[derive(Default)]
struct LeaseOutlivesProcess(Mutex<BTreeMap<InstanceId, usize>>);

impl LeaseOutlivesProcess {
    async fn lease(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        operation: Operation,
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let holder = *locked(&self.0).entry(id.clone()).or_insert(at.handle);
            if holder == at.handle {
                return Ok(());
            }
            if began.elapsed() > Duration::from_secs(60) {
                let call = Call::new("memory", operation);
                return Err(call.conflict("another process works on it", RetryAdvice::Never));
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}

#[async_trait]
impl Override for LeaseOutlivesProcess {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        self.lease(at, id, Operation::StopInstance).await?;
        let result = at.inner.stop_instance(id).await;
        locked(&self.0).remove(id);
        result
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        self.lease(at, id, Operation::StartInstance).await?;
        let result = at.inner.start_instance(id).await;
        locked(&self.0).remove(id);
        result
    }
}

/// Lists only instances whose launch has returned.
#[derive(Default)]
struct ListsCompletedLaunchesOnly(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for ListsCompletedLaunchesOnly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        locked(&self.0).extend(config.launch_token.clone());
        let result = at.inner.launch_instance(config).await;
        if let Some(token) = &config.launch_token {
            locked(&self.0).remove(token);
        }
        result
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let open = locked(&self.0).clone();
        for truth in at.harness.cloud().oracle().instances() {
            if truth.token.is_some_and(|token| open.contains(&token)) {
                list.retain(|info| info.id != truth.info.id);
            }
        }
        Ok(list)
    }
}

/// Does not compare the config of a replay while the instance is stopped.
#[derive(Default)]
struct ForgetsConfigOfStopped;

#[async_trait]
impl Override for ForgetsConfigOfStopped {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let (Err(error), Some(token)) = (&result, &config.launch_token) else {
            return result;
        };
        if error.kind() == ErrorKind::TokenConflict {
            let all = at.harness.cloud().oracle().instances();
            let mut ours = all
                .into_iter()
                .filter(|truth| truth.token.as_ref() == Some(token));
            if let Some(truth) =
                ours.find(|truth| truth.info.private_ip.is_some() && !truth.holds_machine)
            {
                return Ok(truth.info);
            }
        }
        result
    }
}

/// Treats a token as spent only if it terminated the instance itself.
#[derive(Default)]
struct SpentByOwnTerminatesOnly(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for SpentByOwnTerminatesOnly {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        locked(&self.0).insert(id.clone());
        at.inner.terminate_instance(id).await
    }
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        locked(&self.0).extend(ids.iter().cloned());
        at.inner.terminate_instances(ids).await
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        let (Err(error), Some(token)) = (&result, &config.launch_token) else {
            return result;
        };
        if error.kind() != ErrorKind::TokenSpent {
            return result;
        }
        let all = at.harness.cloud().oracle().instances();
        let mut ours = all
            .iter()
            .filter(|truth| truth.token.as_ref() == Some(token));
        if ours.any(|truth| locked(&self.0).contains(&truth.info.id)) {
            return result;
        }
        let mut second = config.clone();
        second.launch_token = Some(token.item(1));
        at.inner.launch_instance(&second).await
    }
}
