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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "new token on each retry",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<NewTokenOnRetry>,
    },
    Mutant {
        name: "look-up knows only launches that were answered",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<FindsAnsweredLaunchesOnly>,
    },
    Mutant {
        name: "launch whose reply was lost is answered under another id",
        violates: "CRASH-01",
        make: OverrideHarness::factory::<RenamesLostLaunches>,
    },
    Mutant {
        name: "look-up believes its own notes",
        violates: "CRASH-02",
        make: OverrideHarness::factory::<BelievesItsNotes>,
    },
    Mutant {
        name: "stop without an answer blocks the start",
        violates: "CRASH-03",
        make: OverrideHarness::factory::<UnansweredStopBlocks>,
    },
    Mutant {
        name: "lease outlives its process",
        violates: "CRASH-04",
        make: OverrideHarness::factory::<LeaseOutlivesProcess>,
    },
    Mutant {
        name: "launch that was never answered is not listed",
        violates: "CRASH-05",
        make: OverrideHarness::factory::<ListsAnsweredLaunchesOnly>,
    },
    Mutant {
        name: "config not compared while stopped",
        violates: "CRASH-06",
        make: OverrideHarness::factory::<ForgetsConfigOfStopped>,
    },
    Mutant {
        name: "token spent by own terminates only",
        violates: "CRASH-06",
        make: OverrideHarness::factory::<SpentByOwnTerminatesOnly>,
    },
];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries again by itself, as another launch.
#[derive(Default)]
struct NewTokenOnRetry;

#[async_trait]
impl Override for NewTokenOnRetry {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        match answer {
            Err(error) if error.effect() == Effect::Unknown => {
                let mut again = config.clone();
                again.launch_token = config.launch_token.as_ref().map(|token| token.item(1));
                at.inner.launch_instance(&again).await
            }
            answer => answer,
        }
    }
}

/// Writes a launch down when its answer has come.
#[derive(Default)]
struct FindsAnsweredLaunchesOnly(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for FindsAnsweredLaunchesOnly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        if let (Err(error), Some(token)) = (&answer, &config.launch_token) {
            if error.kind() == ErrorKind::Timeout {
                locked(&self.0).insert(token.clone());
            }
        }
        answer
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        if locked(&self.0).contains(token) {
            return Ok(LaunchRecord::NotFound);
        }
        at.inner.find_launch(token).await
    }
}

/// Answers the replay of a launch without an answer under an id that it makes up.
#[derive(Default)]
struct RenamesLostLaunches(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for RenamesLostLaunches {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        let lost = matches!(&answer, Err(error) if error.kind() == ErrorKind::Timeout);
        let mut tokens = locked(&self.0);
        tokens.extend(config.launch_token.clone().filter(|_| lost));
        let renamed = config
            .launch_token
            .as_ref()
            .filter(|token| tokens.contains(token));
        answer.map(|mut info| {
            if renamed.is_some() {
                info.id = InstanceId::new(info.id.as_str().to_uppercase()).unwrap_or(info.id);
            }
            info
        })
    }
}

/// Writes a launch down before it is sent, and takes that for proof.
#[derive(Default)]
struct BelievesItsNotes(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for BelievesItsNotes {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        let sent = !matches!(&answer, Err(error) if error.effect() == Effect::None);
        locked(&self.0).extend(config.launch_token.clone().filter(|_| sent));
        answer
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

/// Waits for the answer of a stop that never comes.
#[derive(Default)]
struct UnansweredStopBlocks(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for UnansweredStopBlocks {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let answer = at.inner.stop_instance(id).await;
        if matches!(&answer, Err(error) if error.effect() == Effect::Unknown) {
            locked(&self.0).insert(id.clone());
        }
        answer
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        if locked(&self.0).contains(id) {
            let call = Call::new("memory", Operation::StartInstance);
            return Err(call.conflict("a stop is under way", RetryAdvice::Never));
        }
        at.inner.start_instance(id).await
    }
}

/// Lets no other handle work on an instance while one does, though that one be dead.
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
        let answer = at.inner.stop_instance(id).await;
        locked(&self.0).remove(id);
        answer
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        self.lease(at, id, Operation::StartInstance).await?;
        let answer = at.inner.start_instance(id).await;
        locked(&self.0).remove(id);
        answer
    }
}

/// Lists from its own table, in which launches under way have no place yet.
#[derive(Default)]
struct ListsAnsweredLaunchesOnly(Mutex<BTreeSet<LaunchToken>>);

#[async_trait]
impl Override for ListsAnsweredLaunchesOnly {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        locked(&self.0).extend(config.launch_token.clone());
        let answer = at.inner.launch_instance(config).await;
        if let Some(token) = &config.launch_token {
            locked(&self.0).remove(token);
        }
        answer
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

/// Compares the config with that of a running machine only.
#[derive(Default)]
struct ForgetsConfigOfStopped;

#[async_trait]
impl Override for ForgetsConfigOfStopped {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        let (Err(error), Some(token)) = (&answer, &config.launch_token) else {
            return answer;
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
        answer
    }
}

/// Counts a launch as gone when it has terminated it itself.
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
        let answer = at.inner.launch_instance(config).await;
        let (Err(error), Some(token)) = (&answer, &config.launch_token) else {
            return answer;
        };
        if error.kind() != ErrorKind::TokenSpent {
            return answer;
        }
        let all = at.harness.cloud().oracle().instances();
        let mut ours = all
            .iter()
            .filter(|truth| truth.token.as_ref() == Some(token));
        if ours.any(|truth| locked(&self.0).contains(&truth.info.id)) {
            return answer;
        }
        let mut anew = config.clone();
        anew.launch_token = Some(token.item(1));
        at.inner.launch_instance(&anew).await
    }
}
