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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "terminating is shown as stopping",
        violates: "TERMINATE-01",
        make: OverrideHarness::factory::<TerminatingIsStopping>,
    },
    Mutant {
        name: "a terminating instance is not found",
        violates: "TERMINATE-01",
        make: OverrideHarness::factory::<TerminatingIsNotFound>,
    },
    Mutant {
        name: "second terminate errors",
        violates: "TERMINATE-02",
        make: OverrideHarness::factory::<SecondTerminateErrors>,
    },
    Mutant {
        name: "unknown id terminates Ok",
        violates: "TERMINATE-03",
        make: OverrideHarness::factory::<TerminatesUnknown>,
    },
    Mutant {
        name: "prefix match kills a sibling",
        violates: "TERMINATE-04",
        make: OverrideHarness::factory::<KillsByPrefix>,
    },
    Mutant {
        name: "terminate takes the whole batch",
        violates: "TERMINATE-04",
        make: OverrideHarness::factory::<KillsTheBatch>,
    },
    Mutant {
        name: "terminate of stopped errors",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<StoppedCannotEnd>,
    },
    Mutant {
        name: "terminate of stopped put off until its next start",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<PutsOffUntilStart>,
    },
    Mutant {
        name: "terminate during a stop is a conflict",
        violates: "TERMINATE-05",
        make: OverrideHarness::factory::<StoppingCannotEnd>,
    },
    Mutant {
        name: "a start under way swallows the terminate",
        violates: "TERMINATE-06",
        make: OverrideHarness::factory::<StartSwallowsTerminate>,
    },
    Mutant {
        name: "a start that comes after the terminate is an outage",
        violates: "TERMINATE-06",
        make: OverrideHarness::factory::<LateStartIsAnOutage>,
    },
    Mutant {
        name: "terminate takes an outage for an unknown id",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<OutageIsNotFound>,
    },
    Mutant {
        name: "terminate's error swallowed",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<SwallowsErrors>,
    },
    Mutant {
        name: "terminate takes missing rights for success",
        violates: "TERMINATE-07",
        make: OverrideHarness::factory::<SwallowsForbidden>,
    },
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Its cloud has one native word for both.
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
        let over = CloudInstanceState::Terminated;
        if at.state(id) == Some(over) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.wrong_state(id, over, "pending, running or stopped"));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Takes an error of `kind` for "it is gone, and that is what was asked for".
async fn terminate_forgiving(at: CallContext<'_>, id: &InstanceId, kind: ErrorKind) -> Result<()> {
    match at.inner.terminate_instance(id).await {
        Err(error) if error.kind() == kind => Ok(()),
        answer => answer,
    }
}

#[derive(Default)]
struct TerminatesUnknown;

#[async_trait]
impl Override for TerminatesUnknown {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_forgiving(at, id, ErrorKind::NotFound).await
    }
}

/// Names its machines by token, and destroys what begins with a name.
#[derive(Default)]
struct KillsByPrefix(Mutex<BTreeMap<InstanceId, LaunchToken>>);

#[async_trait]
impl Override for KillsByPrefix {
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

/// Destroys by the token that it tagged its instances with.
#[derive(Default)]
struct KillsTheBatch;

#[async_trait]
impl Override for KillsTheBatch {
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
struct StoppedCannotEnd;

#[async_trait]
impl Override for StoppedCannotEnd {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let stopped = CloudInstanceState::Stopped;
        if at.state(id) == Some(stopped) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.wrong_state(id, stopped, "running"));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Says yes to a terminate of a stopped instance, and carries it out when that wakes up.
#[derive(Default)]
struct PutsOffUntilStart(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for PutsOffUntilStart {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        let put_off = lock(&self.0).remove(id);
        if put_off {
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
struct StoppingCannotEnd;

#[async_trait]
impl Override for StoppingCannotEnd {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Stopping) {
            let call = at.call(Operation::TerminateInstance);
            return Err(call.conflict("the instance is busy", RetryAdvice::SameToken));
        }
        at.inner.terminate_instance(id).await
    }
}

/// Says yes to a terminate of an instance that it is starting, and goes on starting it.
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
        terminate_forgiving(at, id, ErrorKind::Unavailable).await
    }
}

#[derive(Default)]
struct SwallowsForbidden;

#[async_trait]
impl Override for SwallowsForbidden {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        terminate_forgiving(at, id, ErrorKind::Forbidden).await
    }
}

#[derive(Default)]
struct LateStartIsAnOutage;

#[async_trait]
impl Override for LateStartIsAnOutage {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let answer = at.inner.start_instance(id).await;
        answer.map_err(|error| {
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
        let answer = at.inner.terminate_instance(id).await;
        answer.map_err(|error| {
            if error.kind() == ErrorKind::Unavailable {
                return at.call(Operation::TerminateInstance).not_found(id);
            }
            error
        })
    }
}
