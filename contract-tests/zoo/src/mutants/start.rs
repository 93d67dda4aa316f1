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

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a start returns a new id",
        violates: "START-01",
        make: OverrideHarness::factory::<ReturnsAnotherId>,
    },
    Mutant {
        name: "a start returns the instance as stopped",
        violates: "START-01",
        make: OverrideHarness::factory::<ReturnsStopped>,
    },
    Mutant {
        name: "a start of a running instance fails",
        violates: "START-02",
        make: OverrideHarness::factory::<StartOfRunningErrors>,
    },
    Mutant {
        name: "a start of a running instance boots it again",
        violates: "START-02",
        make: OverrideHarness::factory::<StartOfRunningBoots>,
    },
    Mutant {
        name: "a start returns the old address",
        violates: "START-03",
        make: OverrideHarness::factory::<ReturnsOldAddress>,
    },
    Mutant {
        name: "describe returns the address of the launch after a start",
        violates: "START-03",
        make: OverrideHarness::factory::<DescribesOldAddress>,
    },
    Mutant {
        name: "a start of a terminated instance succeeds",
        violates: "START-04",
        make: OverrideHarness::factory::<StartsTerminated>,
    },
    Mutant {
        name: "a start of an unknown id succeeds",
        violates: "START-05",
        make: OverrideHarness::factory::<StartsUnknown>,
    },
    Mutant {
        name: "a start returns no tags",
        violates: "START-06",
        make: OverrideHarness::factory::<ReturnsNoTags>,
    },
    Mutant {
        name: "a start returns no launch time",
        violates: "START-06",
        make: OverrideHarness::factory::<ReturnsNoLaunchTime>,
    },
    Mutant {
        name: "a start of a stopping instance is a conflict without a retry delay",
        violates: "START-07",
        make: OverrideHarness::factory::<ConflictWithoutDelay>,
    },
    Mutant {
        name: "a start of a stopping instance is a wrong state",
        violates: "START-07",
        make: OverrideHarness::factory::<StoppingIsWrongState>,
    },
    Mutant {
        name: "a start of a stopping instance succeeds and has no effect",
        violates: "START-07",
        make: OverrideHarness::factory::<IgnoresStartOfStopping>,
    },
];

/// Returns the id of the boot instead of the instance's.
#[derive(Default)]
struct ReturnsAnotherId;

#[async_trait]
impl Override for ReturnsAnotherId {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.id = InstanceId::new(format!("{id}-2")).unwrap_or(info.id);
        Ok(info)
    }
}

/// Returns from a start the state from before it.
#[derive(Default)]
struct ReturnsStopped;

#[async_trait]
impl Override for ReturnsStopped {
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

/// Boots every instance that it is given, also a running one.
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

/// The addresses that instances had after their launch.
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

/// Returns from a start the address that it cached at the launch.
#[derive(Default)]
struct ReturnsOldAddress(Launched);

#[async_trait]
impl Override for ReturnsOldAddress {
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

/// Describes a running instance with the address that it cached at the launch.
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

/// Starts an instance and treats an error of `kind` as success.
async fn start_ignoring(
    at: CallContext<'_>,
    id: &InstanceId,
    kind: ErrorKind,
) -> Result<InstanceInfo> {
    match at.inner.start_instance(id).await {
        Err(error) if error.kind() == kind => {
            Ok(InstanceInfo::new(id.clone(), CloudInstanceState::Pending))
        }
        result => result,
    }
}

#[derive(Default)]
struct StartsTerminated;

#[async_trait]
impl Override for StartsTerminated {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_ignoring(at, id, ErrorKind::WrongState).await
    }
}

#[derive(Default)]
struct StartsUnknown;

#[async_trait]
impl Override for StartsUnknown {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_ignoring(at, id, ErrorKind::NotFound).await
    }
}

#[derive(Default)]
struct ReturnsNoTags;

#[async_trait]
impl Override for ReturnsNoTags {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let mut info = at.inner.start_instance(id).await?;
        info.tags = Tags::new();
        Ok(info)
    }
}

#[derive(Default)]
struct ReturnsNoLaunchTime;

#[async_trait]
impl Override for ReturnsNoLaunchTime {
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
            result => result,
        }
    }
}

#[derive(Default)]
struct IgnoresStartOfStopping;

#[async_trait]
impl Override for IgnoresStartOfStopping {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        start_ignoring(at, id, ErrorKind::Conflict).await
    }
}

#[derive(Default)]
struct ConflictWithoutDelay;

#[async_trait]
impl Override for ConflictWithoutDelay {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let result = at.inner.start_instance(id).await;
        result.map_err(|error| {
            if error.kind() == ErrorKind::Conflict {
                let call = at.call(Operation::StartInstance);
                return call.conflict("it is stopping", RetryAdvice::SameToken);
            }
            error
        })
    }
}
