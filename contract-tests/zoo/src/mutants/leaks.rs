//! Backends that break the family leaks.
//!
//! The check for leftovers at the end of every clause would detect a permanent leak. So that only the
//! clauses of this family detect them, most mutants clean up too late: when their next process starts.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use fleetwright::{
    CloudInstanceState, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceStatus, Result, Tags,
};

use super::{Mutant, Override};
use crate::{CallContext, OverrideHarness};
use fleetwright_contract_tests::{Harness as _, Oracle, Truth};

/// At least one for each clause of the family.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "disk left behind",
        violates: "LEAKS-01",
        make: OverrideHarness::factory::<LeavesDisk>,
    },
    Mutant {
        name: "the network interface is left behind until the next process starts",
        violates: "LEAKS-01",
        make: OverrideHarness::factory::<LeavesInterface>,
    },
    Mutant {
        name: "the network interface of a refused launch is left behind",
        violates: "LEAKS-02",
        make: OverrideHarness::factory::<LeavesInterfaceOfRefused>,
    },
    Mutant {
        name: "a refused launch reports a survivor",
        violates: "LEAKS-02",
        make: OverrideHarness::factory::<ReportsSurvivor>,
    },
    Mutant {
        name: "the disk of a launch that failed late is left behind",
        violates: "LEAKS-03",
        make: OverrideHarness::factory::<LeavesDiskOfFailed>,
    },
    Mutant {
        name: "the address of an instance that was terminated while stopped is left behind",
        violates: "LEAKS-04",
        make: OverrideHarness::factory::<LeavesAddressOfStopped>,
    },
];

/// The resources that a broken backend has left behind.
#[derive(Clone, Default)]
pub(super) struct Leftovers(Arc<Mutex<BTreeSet<String>>>);

impl Leftovers {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, what: &str, owner: &str) {
        self.lock().insert(format!("{what} of {owner}"));
    }

    /// Lists. A process that was started later cleans up first.
    async fn list(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        if at.handle > 1 {
            self.lock().clear();
        }
        at.inner.list_instances(filter).await
    }

    pub(super) fn reported_by(
        &self,
        sound: Arc<dyn Oracle>,
        extra: fn(&Truth) -> bool,
    ) -> Arc<dyn Oracle> {
        let left = self.clone();
        Arc::new(OracleWithLeftovers { sound, left, extra })
    }
}

/// An oracle that also reports the leftovers, and a disk of every instance that `extra` selects.
struct OracleWithLeftovers {
    sound: Arc<dyn Oracle>,
    left: Leftovers,
    extra: fn(&Truth) -> bool,
}

#[async_trait]
impl Oracle for OracleWithLeftovers {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        self.sound.instances(tags).await
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let all = self.sound.instances(tags).await;
        let selected = all.iter().filter(|truth| (self.extra)(truth));
        let disks = selected.map(|truth| format!("disk of {}", truth.info.id));
        let mut left: Vec<_> = disks.chain(self.left.lock().iter().cloned()).collect();
        left.extend(self.sound.leftovers(tags).await);
        left
    }
    async fn images(&self, tags: &Tags) -> Option<Vec<String>> {
        self.sound.images(tags).await
    }
    async fn calls(&self) -> u64 {
        self.sound.calls().await
    }
}

fn is_terminated(truth: &Truth) -> bool {
    truth.info.state == CloudInstanceState::Terminated
}

#[derive(Default)]
struct LeavesDisk(Leftovers);

impl Override for LeavesDisk {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, is_terminated)
    }
}

#[derive(Default)]
struct LeavesInterface(Leftovers);

#[async_trait]
impl Override for LeavesInterface {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.terminate_instance(id).await?;
        self.0.add("network card", id.as_str());
        Ok(())
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.list(at, filter).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, |_| false)
    }
}

/// Creates the network interface first and does not delete it when the machine is refused.
#[derive(Default)]
struct LeavesInterfaceOfRefused(Leftovers);

#[async_trait]
impl Override for LeavesInterfaceOfRefused {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if let Err(error) = &result {
            if error.kind() == ErrorKind::Capacity {
                self.0.add("network card", "a refused launch");
            }
        }
        result
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.list(at, filter).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, |_| false)
    }
}

#[derive(Default)]
struct ReportsSurvivor;

#[async_trait]
impl Override for ReportsSurvivor {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        result.map_err(|error| {
            let id = at.harness.unknown_id();
            let invented = InstanceInfo::new(id, CloudInstanceState::Pending);
            error.with_survivors(vec![invented])
        })
    }
}

/// Deletes the disk in `terminate_instance`, which is not called for a launch that failed late.
#[derive(Default)]
struct LeavesDiskOfFailed(Leftovers);

#[async_trait]
impl Override for LeavesDiskOfFailed {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        let terminated = status.state == CloudInstanceState::Terminated;
        if terminated && status.state_reason.as_deref() != Some("terminated") {
            self.0.add("disk", id.as_str());
        }
        Ok(status)
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.list(at, filter).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, |_| false)
    }
}

/// Does not release the address of an instance that is terminated while it is stopped.
#[derive(Default)]
struct LeavesAddressOfStopped(Leftovers);

#[async_trait]
impl Override for LeavesAddressOfStopped {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let stopped = |id: &&InstanceId| at.state(id) == Some(CloudInstanceState::Stopped);
        for id in ids.iter().filter(stopped).filter(|_| at.handle == 1) {
            self.0.add("address", id.as_str());
        }
        at.inner.terminate_instances(ids).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.list(at, filter).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.reported_by(sound, |_| false)
    }
}
