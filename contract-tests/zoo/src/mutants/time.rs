//! Backends and waiters that break the family time.

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

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a wait succeeds at its deadline",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<OkAtDeadline>>,
    },
    Mutant {
        name: "a wait names no instance at its deadline",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<NamesNoInstance>>,
    },
    Mutant {
        name: "a wait ends long after its deadline",
        violates: "TIME-01",
        make: OverrideHarness::factory::<WaitsWith<EndsLate>>,
    },
    Mutant {
        name: "a wait continues although its state is unreachable",
        violates: "TIME-02",
        make: OverrideHarness::factory::<WaitsWith<IgnoresFailure>>,
    },
    Mutant {
        name: "a wait polls without a pause",
        violates: "TIME-03",
        make: OverrideHarness::factory::<WaitsWith<BusyPolls>>,
    },
    Mutant {
        name: "a wait polls slightly faster than the declared interval",
        violates: "TIME-03",
        make: OverrideHarness::factory::<WaitsWith<PollsTooFast>>,
    },
    Mutant {
        name: "a batch of descriptions makes one call for each id",
        violates: "TIME-03",
        make: OverrideHarness::factory::<DescribesOneByOne>,
    },
    Mutant {
        name: "the declared poll interval is zero",
        violates: "TIME-04",
        make: OverrideHarness::factory::<ZeroPollInterval>,
    },
    Mutant {
        name: "the declared page size changes after the first list",
        violates: "TIME-04",
        make: OverrideHarness::factory::<LearnsPageSize>,
    },
    Mutant {
        name: "the backend sleeps on the wall clock",
        violates: "TIME-05",
        make: OverrideHarness::factory::<SleepsOnWallClock>,
    },
    Mutant {
        name: "instances boot only when they are read",
        violates: "TIME-05",
        make: OverrideHarness::factory::<BootsWhenRead>,
    },
    Mutant {
        name: "an instance does not boot while another one is read",
        violates: "TIME-05",
        make: OverrideHarness::factory::<BootsOneAtATime>,
    },
];

/// A correct backend with another waiter.
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
struct PollsTooFast;

#[async_trait]
impl StateWaiter for PollsTooFast {
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
struct NamesNoInstance;

#[async_trait]
impl StateWaiter for NamesNoInstance {
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

/// Ends a minute after the deadline.
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
        let mut results = Vec::new();
        for id in ids {
            results.extend(at.inner.describe_instances(std::slice::from_ref(id)).await);
        }
        results
    }
}

#[derive(Default)]
struct ZeroPollInterval;

impl Override for ZeroPollInterval {
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

/// Instances boot at the second read of any instance, not by time.
#[derive(Default)]
struct BootsWhenRead(AtomicUsize);

#[async_trait]
impl Override for BootsWhenRead {
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

/// An instance does not boot while another one is read, until it is read itself. The map has whether an
/// instance was left behind.
#[derive(Default)]
struct BootsOneAtATime(Mutex<BTreeMap<InstanceId, bool>>);

#[async_trait]
impl Override for BootsOneAtATime {
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
        let was_delayed = left.remove(id).unwrap_or_default();
        left.values_mut().for_each(|other| *other = true);
        if was_delayed && status.state == CloudInstanceState::Running {
            status.state = CloudInstanceState::Pending;
        }
        Ok(status)
    }
}

/// Reports an instance as running only after it has booted by the wall clock. The second read returns the
/// truth.
#[derive(Default)]
struct SleepsOnWallClock(Mutex<BTreeMap<InstanceId, std::time::Instant>>);

#[async_trait]
impl Override for SleepsOnWallClock {
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
        let wall_time = launched.remove(id).map(|at| at.elapsed());
        let runs = status.state == CloudInstanceState::Running;
        if runs && wall_time.is_some_and(|elapsed| elapsed < Duration::from_secs(3600)) {
            status.state = CloudInstanceState::Pending;
        }
        Ok(status)
    }
}
