//! Backends that break the family leaks.
//!
//! A leak that stays is seen by the look for leftovers that ends every clause. To be seen by the
//! clauses of this family alone, most mutants tidy up too late: when their next process starts.

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

/// One for each clause of the family, or more.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "disk left behind",
        violates: "LEAKS-01",
        make: OverrideHarness::factory::<LeavesDisk>,
    },
    Mutant {
        name: "network card left behind until the next start",
        violates: "LEAKS-01",
        make: OverrideHarness::factory::<LeavesCard>,
    },
    Mutant {
        name: "network card of a refused launch left behind",
        violates: "LEAKS-02",
        make: OverrideHarness::factory::<LeavesCardOfRefused>,
    },
    Mutant {
        name: "refused launch tells of a survivor",
        violates: "LEAKS-02",
        make: OverrideHarness::factory::<TellsOfSurvivor>,
    },
    Mutant {
        name: "disk of a launch that failed late left behind",
        violates: "LEAKS-03",
        make: OverrideHarness::factory::<LeavesDiskOfFailed>,
    },
    Mutant {
        name: "address of an instance that ended while stopped left behind",
        violates: "LEAKS-04",
        make: OverrideHarness::factory::<LeavesAddressOfStopped>,
    },
];

/// What a broken backend has left behind.
#[derive(Clone, Default)]
struct Left(Arc<Mutex<BTreeSet<String>>>);

impl Left {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, what: &str, of: &str) {
        self.lock().insert(format!("{what} of {of}"));
    }

    /// Lists; in a process that was started later, it tidies up first.
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

    fn seen_by(&self, sound: Arc<dyn Oracle>, extra: fn(&Truth) -> bool) -> Arc<dyn Oracle> {
        let left = self.clone();
        Arc::new(Sees { sound, left, extra })
    }
}

/// An oracle that sees what was left behind, and a disk of every instance that `extra` picks.
struct Sees {
    sound: Arc<dyn Oracle>,
    left: Left,
    extra: fn(&Truth) -> bool,
}

#[async_trait]
impl Oracle for Sees {
    async fn instances(&self, tags: &Tags) -> Vec<Truth> {
        self.sound.instances(tags).await
    }
    async fn leftovers(&self, tags: &Tags) -> Vec<String> {
        let all = self.sound.instances(tags).await;
        let picked = all.iter().filter(|truth| (self.extra)(truth));
        let disks = picked.map(|truth| format!("disk of {}", truth.info.id));
        let mut left: Vec<_> = disks.chain(self.left.lock().iter().cloned()).collect();
        left.extend(self.sound.leftovers(tags).await);
        left
    }
    async fn calls(&self) -> u64 {
        self.sound.calls().await
    }
}

fn is_terminated(truth: &Truth) -> bool {
    truth.info.state == CloudInstanceState::Terminated
}

#[derive(Default)]
struct LeavesDisk(Left);

impl Override for LeavesDisk {
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.seen_by(sound, is_terminated)
    }
}

#[derive(Default)]
struct LeavesCard(Left);

#[async_trait]
impl Override for LeavesCard {
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
        self.0.seen_by(sound, |_| false)
    }
}

/// Makes the card first, and does not look back when the machine is refused.
#[derive(Default)]
struct LeavesCardOfRefused(Left);

#[async_trait]
impl Override for LeavesCardOfRefused {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        if let Err(error) = &answer {
            if error.kind() == ErrorKind::Capacity {
                self.0.add("network card", "a refused launch");
            }
        }
        answer
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.0.list(at, filter).await
    }
    fn oracle(&self, sound: Arc<dyn Oracle>) -> Arc<dyn Oracle> {
        self.0.seen_by(sound, |_| false)
    }
}

#[derive(Default)]
struct TellsOfSurvivor;

#[async_trait]
impl Override for TellsOfSurvivor {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        answer.map_err(|error| {
            let id = at.harness.unknown_id();
            let made_up = InstanceInfo::new(id, CloudInstanceState::Pending);
            error.with_survivors(vec![made_up])
        })
    }
}

/// Deletes the disk when it is asked to terminate, and nobody asks for what failed by itself.
#[derive(Default)]
struct LeavesDiskOfFailed(Left);

#[async_trait]
impl Override for LeavesDiskOfFailed {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        let over = status.state == CloudInstanceState::Terminated;
        if over && status.state_reason.as_deref() != Some("terminated") {
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
        self.0.seen_by(sound, |_| false)
    }
}

/// Forgets the address that a stopped instance keeps for itself.
#[derive(Default)]
struct LeavesAddressOfStopped(Left);

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
        self.0.seen_by(sound, |_| false)
    }
}
