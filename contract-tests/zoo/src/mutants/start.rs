//! Backends that break the family start.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InstanceStatus,
    Operation, Result, RetryAdvice, Tags,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "start gives a new id",
        violates: "START-01",
        make: OverrideHarness::factory::<AnswersAnotherId>,
    },
    Mutant {
        name: "start answers before it has begun",
        violates: "START-01",
        make: OverrideHarness::factory::<AnswersStopped>,
    },
    Mutant {
        name: "start of running errors",
        violates: "START-02",
        make: OverrideHarness::factory::<StartOfRunningErrors>,
    },
    Mutant {
        name: "start of running boots it again",
        violates: "START-02",
        make: OverrideHarness::factory::<StartOfRunningBoots>,
    },
    Mutant {
        name: "stale address after start",
        violates: "START-03",
        make: OverrideHarness::factory::<AnswersOldAddress>,
    },
    Mutant {
        name: "describe keeps the address of the launch",
        violates: "START-03",
        make: OverrideHarness::factory::<DescribesOldAddress>,
    },
    Mutant {
        name: "start on terminated Ok",
        violates: "START-04",
        make: OverrideHarness::factory::<StartsTerminated>,
    },
    Mutant {
        name: "start of an unknown id Ok",
        violates: "START-05",
        make: OverrideHarness::factory::<StartsUnknown>,
    },
    Mutant {
        name: "start answers without tags",
        violates: "START-06",
        make: OverrideHarness::factory::<AnswersWithoutTags>,
    },
    Mutant {
        name: "start answers without its launch time",
        violates: "START-06",
        make: OverrideHarness::factory::<AnswersWithoutLaunchTime>,
    },
    Mutant {
        name: "start of stopping does not say when to retry",
        violates: "START-07",
        make: OverrideHarness::factory::<ConflictWithoutATime>,
    },
    Mutant {
        name: "start of stopping can never be retried",
        violates: "START-07",
        make: OverrideHarness::factory::<StoppingIsWrongState>,
    },
    Mutant {
        name: "start of stopping is forgotten",
        violates: "START-07",
        make: OverrideHarness::factory::<StoppingIsForgotten>,
    },
];

/// Answers the id of the boot instead of the instance's.
#[derive(Default)]
struct AnswersAnotherId;

#[async_trait]
impl Override for AnswersAnotherId {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.id = InstanceId::new(format!("{id}-2")).unwrap_or(info.id);
        Ok(info)
    }
}

/// Looks first and starts then.
#[derive(Default)]
struct AnswersStopped;

#[async_trait]
impl Override for AnswersStopped {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let before = at.state(id);
        let mut info = at.inner.start_instance(id).await?;
        info.state = before.unwrap_or(info.state);
        Ok(info)
    }
}

#[derive(Default)]
struct StartOfRunningErrors;

#[async_trait]
impl Override for StartOfRunningErrors {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let running = CloudInstanceState::Running;
        if at.state(id) == Some(running) {
            let call = at.call(Operation::StartInstance);
            return Err(call.wrong_state(id, running, "stopped"));
        }
        at.inner.start_instance(id).await
    }
}

/// Boots whatever it is given, from the image it has.
#[derive(Default)]
struct StartOfRunningBoots;

#[async_trait]
impl Override for StartOfRunningBoots {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        if let (CloudInstanceState::Running, Some(image)) = (info.state, &info.image) {
            at.inner.reimage_instance(id, image).await?;
        }
        Ok(info)
    }
}

/// The addresses that instances were launched with.
#[derive(Default)]
struct Launched(Mutex<BTreeMap<InstanceId, IpAddr>>);

impl Launched {
    fn map(&self) -> MutexGuard<'_, BTreeMap<InstanceId, IpAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn launch(&self, at: CallContext<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let known = info.public_ip.map(|address| (info.id.clone(), address));
        self.map().extend(known);
        Ok(info)
    }

    fn of(&self, id: &InstanceId) -> Option<IpAddr> {
        self.map().get(id).copied()
    }
}

/// Answers a start from what it cached at the launch.
#[derive(Default)]
struct AnswersOldAddress(Launched);

#[async_trait]
impl Override for AnswersOldAddress {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0.launch(at, config).await
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.public_ip = self.0.of(id).or(info.public_ip);
        Ok(info)
    }
}

/// Describes a running instance with what it cached at the launch.
#[derive(Default)]
struct DescribesOldAddress(Launched);

#[async_trait]
impl Override for DescribesOldAddress {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0.launch(at, config).await
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if status.state == CloudInstanceState::Running {
            status.public_ip = self.0.of(id).or(status.public_ip);
        }
        Ok(status)
    }
}

/// Takes an error of `kind` for a start that is under way.
async fn start_forgiving(
    at: CallContext<'_>,
    id: &InstanceId,
    kind: ErrorKind,
) -> Result<InstanceInfo> {
    match at.inner.start_instance(id).await {
        Err(error) if error.kind() == kind => {
            Ok(InstanceInfo::new(id.clone(), CloudInstanceState::Pending))
        }
        answer => answer,
    }
}

#[derive(Default)]
struct StartsTerminated;

#[async_trait]
impl Override for StartsTerminated {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_forgiving(at, id, ErrorKind::WrongState).await
    }
}

#[derive(Default)]
struct StartsUnknown;

#[async_trait]
impl Override for StartsUnknown {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_forgiving(at, id, ErrorKind::NotFound).await
    }
}

#[derive(Default)]
struct AnswersWithoutTags;

#[async_trait]
impl Override for AnswersWithoutTags {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.tags = Tags::new();
        Ok(info)
    }
}

#[derive(Default)]
struct AnswersWithoutLaunchTime;

#[async_trait]
impl Override for AnswersWithoutLaunchTime {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.launch_time = None;
        Ok(info)
    }
}

#[derive(Default)]
struct StoppingIsWrongState;

#[async_trait]
impl Override for StoppingIsWrongState {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        match at.inner.start_instance(id).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let call = at.call(Operation::StartInstance);
                Err(call.wrong_state(id, CloudInstanceState::Stopping, "stopped"))
            }
            answer => answer,
        }
    }
}

#[derive(Default)]
struct StoppingIsForgotten;

#[async_trait]
impl Override for StoppingIsForgotten {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_forgiving(at, id, ErrorKind::Conflict).await
    }
}

#[derive(Default)]
struct ConflictWithoutATime;

#[async_trait]
impl Override for ConflictWithoutATime {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let answer = at.inner.start_instance(id).await;
        answer.map_err(|error| {
            if error.kind() == ErrorKind::Conflict {
                let call = at.call(Operation::StartInstance);
                return call.conflict("it is stopping", RetryAdvice::SameToken);
            }
            error
        })
    }
}
