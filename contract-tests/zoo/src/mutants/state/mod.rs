//! Backends that break the family state.

mod ends;
mod late;
mod patient;

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState::{self, Pending, Running, Stopped, Stopping, Terminated},
    InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, Result,
};
use tokio::time::Instant;

use self::ends::{
    DoesNotDescribeTerminating, DropsTheReason, ForgetsFailedLaunches, ListsNoReasons,
    PendingAfterReplay, StaysPending, StoppedAfterTerminate, UnreadableAfterStop,
};
use self::late::{
    DescribesNoKinds, ForgetsTheCode, ForgetsWhy, ListsNoKinds, MarksEveryEnd, SpendsFailedTokens,
};
use self::patient::{
    RefusesCapacityAsUnexpected, RefusesInWords, RefusesWithUnknownEffect, RefusesWithoutReason,
};
use super::{Mutant, Override, list::Lists, token::lock};
use crate::{CallContext, OverrideHarness};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a pending instance is reported as stopped for a moment",
        violates: "STATE-01",
        make: OverrideHarness::factory::<BootsAsStopped>,
    },
    Mutant {
        name: "a stopping instance is reported as running for a moment",
        violates: "STATE-01",
        make: OverrideHarness::factory::<StopsAsRunning>,
    },
    Mutant {
        name: "a stop is reported only when it is complete",
        violates: "STATE-01",
        make: OverrideHarness::factory::<ShowsStopsLate>,
    },
    Mutant {
        name: "a terminating instance cannot be described",
        violates: "STATE-01",
        make: OverrideHarness::factory::<DoesNotDescribeTerminating>,
    },
    Mutant {
        name: "a terminated instance cannot be described after a stop",
        violates: "STATE-02",
        make: OverrideHarness::factory::<UnreadableAfterStop>,
    },
    Mutant {
        name: "a terminated instance is listed as stopped later",
        violates: "STATE-02",
        make: OverrideHarness::factory::<StoppedAfterTerminate>,
    },
    Mutant {
        name: "a replay makes a terminated instance pending",
        violates: "STATE-02",
        make: OverrideHarness::factory::<PendingAfterReplay>,
    },
    Mutant {
        name: "an unknown native state is reported as running",
        violates: "STATE-03",
        make: OverrideHarness::factory::<UnknownIsRunning>,
    },
    Mutant {
        name: "an unknown native state is reported as terminated",
        violates: "STATE-03",
        make: OverrideHarness::factory::<UnknownIsTerminated>,
    },
    Mutant {
        name: "the name of an unknown native state is dropped",
        violates: "STATE-03",
        make: OverrideHarness::factory::<UnknownIsNameless>,
    },
    Mutant {
        name: "the reason of a late failure is dropped",
        violates: "STATE-04",
        make: OverrideHarness::factory::<DropsTheReason>,
    },
    Mutant {
        name: "the reason of a late failure is not listed",
        violates: "STATE-04",
        make: OverrideHarness::factory::<ListsNoReasons>,
    },
    Mutant {
        name: "a launch that failed late stays pending",
        violates: "STATE-04",
        make: OverrideHarness::factory::<StaysPending>,
    },
    Mutant {
        name: "a launch that failed late is not found",
        violates: "STATE-04",
        make: OverrideHarness::factory::<ForgetsFailedLaunches>,
    },
    Mutant {
        name: "a failed launch is refused without the reason",
        violates: "STATE-04",
        make: OverrideHarness::factory::<RefusesWithoutReason>,
    },
    Mutant {
        name: "a failed launch is refused with its code in the message only",
        violates: "STATE-04",
        make: OverrideHarness::factory::<RefusesInWords>,
    },
    Mutant {
        name: "a failed launch is refused with unknown effect",
        violates: "STATE-04",
        make: OverrideHarness::factory::<RefusesWithUnknownEffect>,
    },
    Mutant {
        name: "a stop loses the private address in lists",
        violates: "STATE-05",
        make: OverrideHarness::factory::<LosesAddressByStop>,
    },
    Mutant {
        name: "a list returns the private address of the next item",
        violates: "STATE-06",
        make: OverrideHarness::factory::<JoinsWrongRows>,
    },
    Mutant {
        name: "a launch that failed late is not marked",
        violates: "STATE-07",
        make: OverrideHarness::factory::<ForgetsWhy>,
    },
    Mutant {
        name: "a launch that failed late is marked without the cloud's code",
        violates: "STATE-07",
        make: OverrideHarness::factory::<ForgetsTheCode>,
    },
    Mutant {
        name: "every terminated instance is marked as a failed launch",
        violates: "STATE-07",
        make: OverrideHarness::factory::<MarksEveryEnd>,
    },
    Mutant {
        name: "a launch that failed late spends its token",
        violates: "STATE-07",
        make: OverrideHarness::factory::<SpendsFailedTokens>,
    },
    Mutant {
        name: "a launch that failed late for capacity is described as unexpected",
        violates: "STATE-08",
        make: OverrideHarness::factory::<DescribesNoKinds>,
    },
    Mutant {
        name: "a launch that failed late for capacity is listed as unexpected",
        violates: "STATE-08",
        make: OverrideHarness::factory::<Lists<ListsNoKinds>>,
    },
    Mutant {
        name: "a launch that failed late for capacity is refused as unexpected",
        violates: "STATE-08",
        make: OverrideHarness::factory::<RefusesCapacityAsUnexpected>,
    },
];

/// Describes `id` and changes the result.
async fn described(
    at: CallContext<'_>,
    id: &InstanceId,
    change: impl FnOnce(&mut InstanceStatus) + Send,
) -> Result<InstanceStatus> {
    let mut status = at.inner.describe_instance(id).await?;
    change(&mut status);
    Ok(status)
}

/// Since when each instance has been observed in its state.
#[derive(Default)]
struct FirstObserved(Mutex<HashMap<InstanceId, (CloudInstanceState, Instant)>>);

impl FirstObserved {
    /// Describes an instance that has been in one state for a second as in another one.
    async fn show_later(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        [real, shown]: [CloudInstanceState; 2],
    ) -> Result<InstanceStatus> {
        described(at, id, |status| {
            let mut observed = lock(&self.0);
            let now = (status.state, Instant::now());
            let first = observed.entry(id.clone()).or_insert(now);
            if first.0 != status.state {
                *first = now;
            }
            if status.state == real && first.1.elapsed() > Duration::from_secs(1) {
                status.state = shown;
            }
        })
        .await
    }
}

/// Reports a pending instance as stopped for a moment before it runs.
#[derive(Default)]
struct BootsAsStopped(FirstObserved);

#[async_trait]
impl Override for BootsAsStopped {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        self.0.show_later(at, id, [Pending, Stopped]).await
    }
}

#[derive(Default)]
struct StopsAsRunning(FirstObserved);

#[async_trait]
impl Override for StopsAsRunning {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        self.0.show_later(at, id, [Stopping, Running]).await
    }
}

#[derive(Default)]
struct ShowsStopsLate;

#[async_trait]
impl Override for ShowsStopsLate {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let change = |status: &mut InstanceStatus| {
            if status.state == Stopping {
                status.state = Running;
            }
        };
        described(at, id, change).await
    }
}

/// The native states of the memory cloud.
const KNOWN: [&str; 7] = [
    "PROVISIONING",
    "REIMAGING",
    "ACTIVE",
    "HALTING",
    "HALTED",
    "DELETING",
    "DELETED",
];

fn is_unknown(native: Option<&str>) -> bool {
    native.is_some_and(|word| !KNOWN.contains(&word))
}

/// Describes an unknown state as `state`.
async fn unknown_as(
    at: CallContext<'_>,
    id: &InstanceId,
    state: CloudInstanceState,
) -> Result<InstanceStatus> {
    let change = |status: &mut InstanceStatus| {
        if is_unknown(status.native_state.as_deref()) {
            status.state = state;
        }
    };
    described(at, id, change).await
}

#[derive(Default)]
struct UnknownIsRunning;

#[async_trait]
impl Override for UnknownIsRunning {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        unknown_as(at, id, Running).await
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
        unknown_as(at, id, Terminated).await
    }
}

#[derive(Default)]
struct UnknownIsNameless;

#[async_trait]
impl Override for UnknownIsNameless {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.native_state
                .take_if(|word| is_unknown(Some(word.as_str())));
        }
        Ok(list)
    }
}

/// Lists instances that were stopped once without their private address.
#[derive(Default)]
struct LosesAddressByStop(Mutex<HashSet<InstanceId>>);

#[async_trait]
impl Override for LosesAddressByStop {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        lock(&self.0).insert(id.clone());
        at.inner.stop_instance(id).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let stopped = lock(&self.0);
        for info in &mut list {
            if info.state == Running && stopped.contains(&info.id) {
                info.private_ip = None;
            }
        }
        Ok(list)
    }
}

/// Lists each instance with the private address of the next one.
#[derive(Default)]
struct JoinsWrongRows;

#[async_trait]
impl Override for JoinsWrongRows {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let mut addresses: Vec<_> = list.iter().map(|info| info.private_ip).collect();
        let turned = addresses.len().min(1);
        addresses.rotate_left(turned);
        for (info, address) in list.iter_mut().zip(addresses) {
            info.private_ip = address;
        }
        Ok(list)
    }
}
