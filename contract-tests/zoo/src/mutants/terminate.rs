//! Backends that break the family terminate.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceId, InstanceInfo,
    InstanceStatus, LaunchToken, Operation, Result, RetryAdvice,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "terminating is reported as stopping",
        violates: "TERMINATE-01",
        make: OverrideHarness::factory::<TerminatingIsStopping>,
    },
    Mutant {
        name: "a terminating instance is not found",
        violates: "TERMINATE-01",
        make: OverrideHarness::factory::<TerminatingIsNotFound>,
    },
    Mutant {
        name: "a second terminate fails",
        violates: "TERMINATE-02",
        make: OverrideHarness::factory::<SecondTerminateErrors>,
    },
    Mutant {
        name: "a terminate of an unknown id succeeds",
        violates: "TERMINATE-03",
        make: OverrideHarness::factory::<TerminatesUnknown>,
    },
    Mutant {
        name: "a terminate also terminates the instance of a longer token",
        violates: "TERMINATE-04",
        make: OverrideHarness::factory::<TerminatesByPrefix>,
    },
    Mutant {
        name: "a terminate terminates the whole batch",
        violates: "TERMINATE-04",
        make: OverrideHarness::factory::<TerminatesTheBatch>,
    },
    Mutant {
        name: "a terminate of a stopped instance fails",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<StoppedCannotTerminate>,
    },
    Mutant {
        name: "a terminate of a stopped instance is applied at its next start",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<DelaysUntilStart>,
    },
    Mutant {
        name: "a terminate during a stop is a conflict",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<StoppingCannotTerminate>,
    },
    Mutant {
        name: "a terminate during a start succeeds and has no effect",
        violates: "TERMINATE-06",
        make: OverrideHarness::factory::<StartSwallowsTerminate>,
    },
    Mutant {
        name: "a start after the terminate fails as unavailable",
        violates: "TERMINATE-06",
        make: OverrideHarness::factory::<LateStartIsAnOutage>,
    },
    Mutant {
        name: "a terminate reports an outage as not found",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<OutageIsNotFound>,
    },
    Mutant {
        name: "a terminate returns success for a server error",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<SwallowsErrors>,
    },
    Mutant {
        name: "a terminate returns success without permission",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<SwallowsForbidden>,
    },
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maps the native states of stopping and terminating to stopping.
#[derive(Default)]
struct TerminatingIsStopping;

#[async_trait]
impl Override for TerminatingIsStopping {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if status.state == CloudInstanceState::Terminating {
            status.state = CloudInstanceState::Stopping;
        }
        Ok(status)
    }
}

#[derive(Default)]
struct TerminatingIsNotFound;

#[async_trait]
impl Override for TerminatingIsNotFound {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if status.state == CloudInstanceState::Terminating {
            return Err(at.call(Operation::DescribeInstance).not_found(id));
        }
        Ok(status)
    }
}

/// Refuses to terminate an instance that is terminated.
#[derive(Default)]
struct SecondTerminateErrors;

#[async_trait]
impl Override for SecondTerminateErrors {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let terminated = CloudInstanceState::Terminated;
        if at.state(id) == Some(terminated) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.wrong_state(id, terminated, "pending, running or stopped"));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Terminates an instance and treats an error of `kind` as success.
async fn terminate_ignoring(at: CallContext<'_>, id: &InstanceId, kind: ErrorKind) -> Result<()> {
    match at.inner.terminate_instance(id).await {
        Err(error) if error.kind() == kind => Ok(()),
        result => result,
    }
}

#[derive(Default)]
struct TerminatesUnknown;

#[async_trait]
impl Override for TerminatesUnknown {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_ignoring(at, id, ErrorKind::NotFound).await
    }
}

/// Terminates every instance whose token begins with that of the target.
#[derive(Default)]
struct TerminatesByPrefix(Mutex<BTreeMap<InstanceId, LaunchToken>>);

#[async_trait]
impl Override for TerminatesByPrefix {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let token = config.launch_token.clone();
        lock(&self.0).extend(token.map(|token| (info.id.clone(), token)));
        Ok(info)
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let names = lock(&self.0).clone();
        if let Some(name) = names.get(id) {
            let hit = |(_, other): &(_, &LaunchToken)| other.as_str().starts_with(name.as_str());
            for (sibling, _) in names.iter().filter(hit) {
                at.inner.terminate_instance(sibling).await?;
            }
        }
        at.inner.terminate_instance(id).await
    }
}

/// Terminates every instance that has the token of the target.
#[derive(Default)]
struct TerminatesTheBatch;

#[async_trait]
impl Override for TerminatesTheBatch {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let token = at.truth(id).and_then(|truth| truth.token);
        let all = at.harness.cloud().oracle().instances();
        let batch = all.iter().filter(|_| token.is_some());
        for sibling in batch.filter(|truth| truth.token == token) {
            at.inner.terminate_instance(&sibling.info.id).await?;
        }
        at.inner.terminate_instance(id).await
    }
}

#[derive(Default)]
struct StoppedCannotTerminate;

#[async_trait]
impl Override for StoppedCannotTerminate {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let stopped = CloudInstanceState::Stopped;
        if at.state(id) == Some(stopped) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.wrong_state(id, stopped, "running"));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Accepts a terminate of a stopped instance and carries it out when the instance is started.
#[derive(Default)]
struct DelaysUntilStart(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for DelaysUntilStart {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        let was_delayed = lock(&self.0).remove(id);
        if was_delayed {
            at.inner.terminate_instance(id).await?;
        }
        Ok(info)
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Stopped) {
            lock(&self.0).insert(id.clone());
            return Ok(());
        }
        at.inner.terminate_instance(id).await
    }
}

#[derive(Default)]
struct StoppingCannotTerminate;

#[async_trait]
impl Override for StoppingCannotTerminate {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Stopping) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("the instance is busy", RetryAdvice::SameToken));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Accepts a terminate of an instance that is starting, and ignores it.
#[derive(Default)]
struct StartSwallowsTerminate(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for StartSwallowsTerminate {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        lock(&self.0).insert(id.clone());
        Ok(info)
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let started = lock(&self.0).contains(id);
        if started && at.state(id) == Some(CloudInstanceState::Pending) {
            return Ok(());
        }
        at.inner.terminate_instance(id).await
    }
}

#[derive(Default)]
struct SwallowsErrors;

#[async_trait]
impl Override for SwallowsErrors {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_ignoring(at, id, ErrorKind::Unavailable).await
    }
}

#[derive(Default)]
struct SwallowsForbidden;

#[async_trait]
impl Override for SwallowsForbidden {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_ignoring(at, id, ErrorKind::Forbidden).await
    }
}

#[derive(Default)]
struct LateStartIsAnOutage;

#[async_trait]
impl Override for LateStartIsAnOutage {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let result = at.inner.start_instance(id).await;
        result.map_err(|error| {
            if error.kind() == ErrorKind::WrongState {
                let call = at.call(Operation::StartInstance);
                return call.unavailable(Effect::None, "no such disk");
            }
            error
        })
    }
}

#[derive(Default)]
struct OutageIsNotFound;

#[async_trait]
impl Override for OutageIsNotFound {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.terminate_instance(id).await;
        result.map_err(|error| {
            if error.kind() == ErrorKind::Unavailable {
                return at.call(Operation::TerminateInstance).not_found(id);
            }
            error
        })
    }
}
