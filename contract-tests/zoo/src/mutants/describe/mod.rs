//! Backends that break the family describe.

mod lag;

use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    Call, Capabilities,
    CloudInstanceState::{self, Pending, Running, Terminated, Terminating},
    Effect, ErrorKind, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, Operation, Result,
};
use fleetwright_memory::WireCall;

use self::lag::{
    DeclaresHalfTheLag, DescribesStopsLate, HidesFreshLaunches, ListsStartsLate,
    NotFoundIsAnOutage, ReadsUntilFresh,
};
use super::{Mutant, Override, token::lock};
use crate::{CallContext, MemoryHarness, OverrideHarness};
use fleetwright_contract_tests::Harness as _;

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "describe returns another id",
        violates: "DESCRIBE-01",
        make: OverrideHarness::factory::<AnotherId>,
    },
    Mutant {
        name: "the launching handle does not find a recent launch",
        violates: "DESCRIBE-01",
        make: || OverrideHarness::factory_on::<ForgetsOwnLaunches>(lagging),
    },
    Mutant {
        name: "unknown id describes as empty",
        violates: "DESCRIBE-02",
        make: OverrideHarness::factory::<UnknownIsEmpty>,
    },
    Mutant {
        name: "an unknown id is described as terminated",
        violates: "DESCRIBE-02",
        make: OverrideHarness::factory::<UnknownIsTerminated>,
    },
    Mutant {
        name: "cached descriptions never expire",
        violates: "DESCRIBE-03",
        make: OverrideHarness::factory::<CacheNeverExpires>,
    },
    Mutant {
        name: "a terminated instance is not found",
        violates: "DESCRIBE-04",
        make: OverrideHarness::factory::<TerminatedIsNotFound>,
    },
    Mutant {
        name: "a terminated instance is forgotten earlier than declared",
        violates: "DESCRIBE-04",
        make: || {
            let short = || MemoryHarness::with(|c| c.terminated_visible(Duration::from_secs(2500)));
            OverrideHarness::factory_on::<DeclaresAnHour>(short)
        },
    },
    Mutant {
        name: "another handle's reads lag although no window is declared",
        violates: "DESCRIBE-05",
        make: OverrideHarness::factory::<HidesFreshLaunches<1>>,
    },
    Mutant {
        name: "another handle's reads lag longer than declared",
        violates: "DESCRIBE-05",
        make: || OverrideHarness::factory_on::<HidesFreshLaunches<10>>(lagging),
    },
    Mutant {
        name: "another handle gets unavailable for a recent launch",
        violates: "DESCRIBE-05",
        make: || OverrideHarness::factory_on::<NotFoundIsAnOutage>(lagging),
    },
    Mutant {
        name: "reads lag twice as long as declared",
        violates: "DESCRIBE-06",
        make: || OverrideHarness::factory_on::<DeclaresHalfTheLag>(lagging),
    },
    Mutant {
        name: "a started instance is listed as stopped for too long",
        violates: "DESCRIBE-06",
        make: OverrideHarness::factory::<ListsStartsLate>,
    },
    Mutant {
        name: "a stopped instance is described as running for too long",
        violates: "DESCRIBE-06",
        make: OverrideHarness::factory::<DescribesStopsLate>,
    },
    Mutant {
        name: "reads lag longer than declared in the worst case",
        violates: "DESCRIBE-06",
        make: || OverrideHarness::factory_on::<ReadsUntilFresh>(lagging),
    },
    Mutant {
        name: "a terminating instance is listed as running",
        violates: "DESCRIBE-06",
        make: OverrideHarness::factory::<ListsEndingAsRunning>,
    },
    Mutant {
        name: "describe fails for a terminating instance",
        violates: "DESCRIBE-06",
        make: OverrideHarness::factory::<DoesNotDescribeEnding>,
    },
];

fn lagging() -> MemoryHarness {
    MemoryHarness::with(|cloud| cloud.read_lag(Duration::from_secs(5)))
}

#[derive(Default)]
struct AnotherId;

#[async_trait]
impl Override for AnotherId {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        status.id = InstanceId::new(id.as_str().to_uppercase()).unwrap_or(status.id);
        Ok(status)
    }
}

/// Reads through a handle of its own, which has launched nothing.
#[derive(Default)]
struct ForgetsOwnLaunches;

#[async_trait]
impl Override for ForgetsOwnLaunches {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        at.harness.open().await.describe_instance(id).await
    }
}

/// Describes an instance that is not found as `state`.
async fn missing_as(
    at: CallContext<'_>,
    id: &InstanceId,
    state: CloudInstanceState,
) -> Result<InstanceStatus> {
    match at.inner.describe_instance(id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(InstanceStatus::new(id.clone(), state))
        }
        result => result,
    }
}

#[derive(Default)]
struct UnknownIsEmpty;

#[async_trait]
impl Override for UnknownIsEmpty {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        missing_as(at, id, Pending).await
    }
}

#[derive(Default)]
struct UnknownIsTerminated;

#[async_trait]
impl Override for UnknownIsTerminated {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        missing_as(at, id, Terminated).await
    }
}

/// Caches descriptions of running instances until a call of its own changes something.
#[derive(Default)]
struct CacheNeverExpires(Mutex<HashMap<InstanceId, (u64, InstanceStatus)>>);

#[async_trait]
impl Override for CacheNeverExpires {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let reads = [
            WireCall::Describe,
            WireCall::ListPage,
            WireCall::FindLaunch,
            WireCall::ConsoleOutput,
        ];
        let calls = at.harness.cloud().oracle().calls();
        let changes = calls.iter().filter(|(call, _)| !reads.contains(call));
        let changes: u64 = changes.map(|(_, count)| count).sum();
        let kept = lock(&self.0).get(id).cloned();
        if let Some((_, status)) = kept.filter(|(at, _)| *at == changes) {
            return Ok(status);
        }
        let status = at.inner.describe_instance(id).await?;
        if status.state == Running {
            lock(&self.0).insert(id.clone(), (changes, status.clone()));
        }
        Ok(status)
    }
}

#[derive(Default)]
struct TerminatedIsNotFound;

#[async_trait]
impl Override for TerminatedIsNotFound {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if status.state == Terminated {
            return Err(Call::new("memory", Operation::DescribeInstance).not_found(id));
        }
        Ok(status)
    }
}

/// Declares an hour on a cloud that keeps terminated instances for a shorter time.
#[derive(Default)]
struct DeclaresAnHour;

impl Override for DeclaresAnHour {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.terminated_visible = Duration::from_secs(3600);
        declared
    }
}

#[derive(Default)]
struct ListsEndingAsRunning;

#[async_trait]
impl Override for ListsEndingAsRunning {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            if info.state == Terminating {
                info.state = Running;
            }
        }
        Ok(list)
    }
}

/// Does not know the native states of terminating and terminated, and fails to describe them.
#[derive(Default)]
struct DoesNotDescribeEnding;

#[async_trait]
impl Override for DoesNotDescribeEnding {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if status.state.is_ending() {
            let call = at.call(Operation::DescribeInstance);
            return Err(call.unexpected(Effect::None, "no such state"));
        }
        Ok(status)
    }
}
