//! Backends that break the family stop.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceStatus, Operation, Result, TagChange, Tags,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};
use fleetwright_contract_tests::{Oracle, SCOPE_TAG, Truth};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "stopping is reported as running",
        violates: "STOP-01",
        make: OverrideHarness::factory::<StoppingIsRunning>,
    },
    Mutant {
        name: "a stop of a stopped instance fails",
        violates: "STOP-02",
        make: OverrideHarness::factory::<StopOfStoppedErrors>,
    },
    Mutant {
        name: "a stop of a stopping instance fails",
        violates: "STOP-02",
        make: OverrideHarness::factory::<StopOfStoppingErrors>,
    },
    Mutant {
        name: "a stopped instance is reported with its old address",
        violates: "STOP-03",
        make: OverrideHarness::factory::<ShowsOldAddress>,
    },
    Mutant {
        name: "a stop loses the tags",
        violates: "STOP-04",
        make: OverrideHarness::factory::<StopDropsTags>,
    },
    Mutant {
        name: "a stop deletes the disk",
        violates: "STOP-04",
        make: OverrideHarness::factory::<StopDiscardsDisk>,
    },
    Mutant {
        name: "a stop does not release the machine",
        violates: "STOP-05",
        make: OverrideHarness::factory::<KeepsMachine>,
    },
    Mutant {
        name: "a stop of an instance that was powered off does not release the machine",
        violates: "STOP-05",
        make: OverrideHarness::factory::<KeepsMachineThatWasOff>,
    },
    Mutant {
        name: "a stop of a terminated instance succeeds",
        violates: "STOP-06",
        make: OverrideHarness::factory::<StopsTerminated>,
    },
    Mutant {
        name: "a stop of an unknown id succeeds",
        violates: "STOP-07",
        make: OverrideHarness::factory::<StopsUnknown>,
    },
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maps the native state of stopping to running.
#[derive(Default)]
struct StoppingIsRunning;

#[async_trait]
impl Override for StoppingIsRunning {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        if status.state == CloudInstanceState::Stopping {
            status.state = CloudInstanceState::Running;
        }
        Ok(status)
    }
}

/// Refuses to stop an instance that is in `state` already.
async fn stop_unless(
    at: CallContext<'_>,
    id: &InstanceId,
    state: CloudInstanceState,
) -> Result<()> {
    if at.state(id) == Some(state) {
        let call = at.call(Operation::StopInstance);
        return Err(call.wrong_state(id, state, "running"));
    }
    at.inner.stop_instance(id).await
}

#[derive(Default)]
struct StopOfStoppedErrors;

#[async_trait]
impl Override for StopOfStoppedErrors {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        stop_unless(at, id, CloudInstanceState::Stopped).await
    }
}

#[derive(Default)]
struct StopOfStoppingErrors;

#[async_trait]
impl Override for StopOfStoppingErrors {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        stop_unless(at, id, CloudInstanceState::Stopping).await
    }
}

/// Caches the address of the launch and reports it while the cloud reports none.
#[derive(Default)]
struct ShowsOldAddress(Mutex<BTreeMap<InstanceId, IpAddr>>);

impl ShowsOldAddress {
    fn old(&self, id: &InstanceId, state: CloudInstanceState) -> Option<IpAddr> {
        let stopped = state == CloudInstanceState::Stopped;
        stopped.then(|| lock(&self.0).get(id).copied()).flatten()
    }
}

#[async_trait]
impl Override for ShowsOldAddress {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let known = info.public_ip.map(|address| (info.id.clone(), address));
        lock(&self.0).extend(known);
        Ok(info)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        status.public_ip = status.public_ip.or(self.old(id, status.state));
        Ok(status)
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.public_ip = info.public_ip.or(self.old(&info.id, info.state));
        }
        Ok(list)
    }
}

#[derive(Default)]
struct StopDropsTags;

#[async_trait]
impl Override for StopDropsTags {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.stop_instance(id).await?;
        let tags = at.truth(id).map(|truth| truth.info.tags);
        let tags = tags.unwrap_or_default();
        let keys = tags.iter().filter(|(key, _)| *key != SCOPE_TAG);
        let mut change = TagChange::new();
        change.remove = keys.map(|(key, _)| key.to_owned()).collect();
        at.harness.cloud().external_actor().update_tags(id, &change)
    }
}

/// An oracle that reports what a broken backend did to its instances.
pub(super) struct AlteredOracle<F> {
    pub(super) sound: Arc<dyn Oracle>,
    pub(super) change: F,
}

#[async_trait]
impl<F: Fn(&mut Truth) + Send + Sync> Oracle for AlteredOracle<F> {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        let mut all = self.sound.instances(tags).await;
        all.iter_mut().for_each(&self.change);
        all
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        self.sound.leftovers(tags).await
    }
    async fn calls(&self) -> u64 {
        self.sound.calls().await
    }
}

fn is_stopped(truth: &Truth) -> bool {
    truth.info.state == CloudInstanceState::Stopped
}

#[derive(Default)]
struct StopDiscardsDisk;

impl Override for StopDiscardsDisk {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        let change = |truth: &mut Truth| {
            truth.disk_size_gb = truth.disk_size_gb.filter(|_| !is_stopped(truth));
        };
        Arc::new(AlteredOracle { sound, change })
    }
}

/// Powers the machine off without releasing it.
#[derive(Default)]
struct KeepsMachine;

impl Override for KeepsMachine {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        let change = |truth: &mut Truth| truth.holds_machine |= is_stopped(truth);
        Arc::new(AlteredOracle { sound, change })
    }
}

/// Does nothing for a machine that is powered off, which the cloud continues to bill.
#[derive(Default)]
struct KeepsMachineThatWasOff(Arc<Mutex<BTreeSet<InstanceId>>>);

#[async_trait]
impl Override for KeepsMachineThatWasOff {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        if at.state(id) == Some(CloudInstanceState::Stopped) {
            return Ok(());
        }
        lock(&self.0).insert(id.clone());
        at.inner.stop_instance(id).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        let released = Arc::clone(&self.0);
        let change = move |truth: &mut Truth| {
            let kept = is_stopped(truth) && !lock(&released).contains(&truth.info.id);
            truth.holds_machine |= kept;
        };
        Arc::new(AlteredOracle { sound, change })
    }
}

/// Stops an instance and treats an error of `kind` as success.
async fn stop_ignoring(at: CallContext<'_>, id: &InstanceId, kind: ErrorKind) -> Result<()> {
    match at.inner.stop_instance(id).await {
        Err(error) if error.kind() == kind => Ok(()),
        result => result,
    }
}

#[derive(Default)]
struct StopsTerminated;

#[async_trait]
impl Override for StopsTerminated {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        stop_ignoring(at, id, ErrorKind::WrongState).await
    }
}

#[derive(Default)]
struct StopsUnknown;

#[async_trait]
impl Override for StopsUnknown {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        stop_ignoring(at, id, ErrorKind::NotFound).await
    }
}
