//! Backends that break the family time, and ways of waiting that do.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Capabilities, CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceProvisioner, InstanceStatus, Result,
    wait::{WaitCause, WaitError, WaitPolicy, for_state},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};
use fleetwright_contract_tests::StateWaiter;

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "wait times out with Ok",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<OkAtDeadline>>,
    },
    Mutant {
        name: "wait names nobody at its deadline",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<NamesNobody>>,
    },
    Mutant {
        name: "wait ends long after its deadline",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<EndsLate>>,
    },
    Mutant {
        name: "wait ignores a terminal failure",
        violates: "TIME-02",
        make: OverrideHarness::factory::<WaitsWith<IgnoresFailure>>,
    },
    Mutant {
        name: "wait busy-polls",
        violates: "TIME-03",
        make: OverrideHarness::factory::<WaitsWith<BusyPolls>>,
    },
    Mutant {
        name: "wait polls a little faster than the tick",
        violates: "TIME-03",
        make: OverrideHarness::factory::<WaitsWith<PollsHastily>>,
    },
    Mutant {
        name: "batch describe is a loop",
        violates: "TIME-03",
        make: OverrideHarness::factory::<DescribesOneByOne>,
    },
    Mutant {
        name: "poll tick of zero",
        violates: "TIME-04",
        make: OverrideHarness::factory::<NoTick>,
    },
    Mutant {
        name: "page size learned from the first answer",
        violates: "TIME-04",
        make: OverrideHarness::factory::<LearnsPageSize>,
    },
    Mutant {
        name: "std sleep instead of the injected clock",
        violates: "TIME-05",
        make: OverrideHarness::factory::<SleepsForReal>,
    },
    Mutant {
        name: "instances boot by being looked at",
        violates: "TIME-05",
        make: OverrideHarness::factory::<BootsByLooks>,
    },
    Mutant {
        name: "instance boots only while no other is looked at",
        violates: "TIME-05",
        make: OverrideHarness::factory::<WaitsForItsTurn>,
    },
];

/// A sound backend that is waited for in another way.
#[derive(Default)]
struct WaitsWith<W>(W);

#[async_trait]
impl<W: StateWaiter + Clone + 'static> Override for WaitsWith<W> {
    fn state_waiter(&self) -> Option<Arc<dyn StateWaiter>> {
        Some(Arc::new(self.0.clone()))
    }
}

type Waited = std::result::Result<Vec<InstanceStatus>, WaitError>;

#[derive(Clone, Default)]
struct OkAtDeadline;

#[async_trait]
impl StateWaiter for OkAtDeadline {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        match for_state(provisioner, ids, goal, policy).await {
            Err(error) if matches!(error.cause, WaitCause::Deadline) => Ok(error
                .not_reached
                .into_iter()
                .filter_map(|one| one.last)
                .collect()),
            waited => waited,
        }
    }
}

#[derive(Clone, Default)]
struct IgnoresFailure;

#[async_trait]
impl StateWaiter for IgnoresFailure {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        let deadline = Instant::now() + policy.timeout;
        let mut waited = for_state(provisioner, ids, goal, policy).await;
        if let Err(error) = &mut waited {
            sleep_until(deadline).await;
            error.cause = WaitCause::Deadline;
        }
        waited
    }
}

#[derive(Clone, Default)]
struct BusyPolls;

#[async_trait]
impl StateWaiter for BusyPolls {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        let pause = Duration::from_millis(1);
        poll_every(pause, provisioner, ids, goal, policy).await
    }
}

/// Waits with this pause between two polls, whatever the backend declares.
async fn poll_every(
    pause: Duration,
    provisioner: &dyn InstanceProvisioner,
    ids: &[InstanceId],
    goal: CloudInstanceState,
    policy: &WaitPolicy,
) -> Waited {
    let deadline = Instant::now() + policy.timeout;
    let once = policy.clone().max_polls(NonZeroU32::MIN);
    loop {
        match for_state(provisioner, ids, goal, &once).await {
            Err(mut error) if matches!(error.cause, WaitCause::PollLimit) => {
                if Instant::now() >= deadline {
                    error.cause = WaitCause::Deadline;
                    return Err(error);
                }
            }
            waited => return waited,
        }
        sleep(pause).await;
    }
}

#[derive(Clone, Default)]
struct PollsHastily;

#[async_trait]
impl StateWaiter for PollsHastily {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        let pause = provisioner.capabilities().poll_interval.mul_f64(0.6);
        poll_every(pause, provisioner, ids, goal, policy).await
    }
}

#[derive(Clone, Default)]
struct NamesNobody;

#[async_trait]
impl StateWaiter for NamesNobody {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        let waited = for_state(provisioner, ids, goal, policy).await;
        waited.map_err(|mut error| {
            error.not_reached.clear();
            error
        })
    }
}

/// Looks at the time when the cloud has answered.
#[derive(Clone, Default)]
struct EndsLate;

#[async_trait]
impl StateWaiter for EndsLate {
    async fn for_state(
        &self,
        provisioner: &dyn InstanceProvisioner,
        ids: &[InstanceId],
        goal: CloudInstanceState,
        policy: &WaitPolicy,
    ) -> Waited {
        let waited = for_state(provisioner, ids, goal, policy).await;
        if matches!(&waited, Err(error) if matches!(error.cause, WaitCause::Deadline)) {
            sleep(Duration::from_secs(60)).await;
        }
        waited
    }
}

#[derive(Default)]
struct DescribesOneByOne;

#[async_trait]
impl Override for DescribesOneByOne {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut answers = Vec::new();
        for id in ids {
            answers.extend(at.inner.describe_instances(std::slice::from_ref(id)).await);
        }
        answers
    }
}

#[derive(Default)]
struct NoTick;

impl Override for NoTick {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.poll_interval = Duration::ZERO;
        declared
    }
}

#[derive(Default)]
struct LearnsPageSize(AtomicBool);

#[async_trait]
impl Override for LearnsPageSize {
    fn capabilities_later(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.page_size = declared.page_size.saturating_add(1);
        declared
    }
    fn capabilities_changed(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.store(true, Ordering::SeqCst);
        at.inner.list_instances(filter).await
    }
}

/// Goes on with its work when somebody looks at something, and lets everything boot at the second look.
#[derive(Default)]
struct BootsByLooks(AtomicUsize);

#[async_trait]
impl Override for BootsByLooks {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.0.store(0, Ordering::SeqCst);
        at.inner.launch_instance(config).await
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 && status.state == CloudInstanceState::Running
        {
            status.state = CloudInstanceState::Pending;
        }
        Ok(status)
    }
}

/// Leaves an instance for whichever is looked at, and goes on with it at its own first look. Whether one was left is
/// remembered by its id.
#[derive(Default)]
struct WaitsForItsTurn(Mutex<BTreeMap<InstanceId, bool>>);

#[async_trait]
impl Override for WaitsForItsTurn {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.insert(info.id.clone(), false);
        Ok(info)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_left = left.remove(id).unwrap_or_default();
        left.values_mut().for_each(|other| *other = true);
        if was_left && status.state == CloudInstanceState::Running {
            status.state = CloudInstanceState::Pending;
        }
        Ok(status)
    }
}

/// Believes that an instance runs only once it has booted by the wall clock; whoever looks a second
/// time is told the truth.
#[derive(Default)]
struct SleepsForReal(Mutex<BTreeMap<InstanceId, std::time::Instant>>);

#[async_trait]
impl Override for SleepsForReal {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let mut launched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        launched.insert(info.id.clone(), std::time::Instant::now());
        Ok(info)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        let mut launched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let by_the_wall = launched.remove(id).map(|at| at.elapsed());
        let runs = status.state == CloudInstanceState::Running;
        if runs && by_the_wall.is_some_and(|elapsed| elapsed < Duration::from_secs(3600)) {
            status.state = CloudInstanceState::Pending;
        }
        Ok(status)
    }
}
