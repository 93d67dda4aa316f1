//! The engine of the emulated subscriptions: virtual machines, their resources, operations, time.
//!
//! Owns the true state. Everything here is synchronous; the wire handles requests, faults and lost
//! responses. Operations end as events in a queue. The next call processes those that are due, so
//! nothing runs in the background, and the cost of a call does not grow with the fleet.
//!
//! | file | purpose |
//! | --- | --- |
//! | `resource_table` | resources of one kind, and the versions that a lagging read may still return |
//! | `vm`, `body_checks`, `plan`, `disk_plan` | a virtual machine, the checks of its document, the plan of its creation |
//! | `create`, `update`, `immutable`, `power` | creating and changing virtual machines, immutable properties, power |
//! | `task`, `completion` | operations: how one begins, and what happens at its end |
//! | `nic`, `nic_put`, `attach`, `public_ip` | interfaces, separate and of virtual machines; public addresses |
//! | `disk`, `image` | disks, images |
//! | `limits`, `tags` | capacity and quota; the rules of tags |
//! | `operator` | external actions, past the wire |

mod attach;
mod body_checks;
mod completion;
pub(crate) mod create;
pub(crate) mod disk;
mod disk_plan;
pub(crate) mod image;
mod immutable;
#[cfg(test)]
mod invariants;
mod limits;
pub(crate) mod nic;
mod nic_put;
pub(crate) mod operator;
mod plan;
mod power;
pub(crate) mod public_ip;
pub(crate) mod resource_table;
mod tags;
pub(crate) mod task;
mod update;
pub(crate) mod vm;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright_chaos::Clock;

pub(crate) use limits::quota_text;

use self::{
    disk::Disk, image::Image, nic::Nic, public_ip::PublicIp, resource_table::ResourceTable,
    task::Task, vm::Vm,
};
use super::{
    catalog::same,
    error::Refusal,
    knobs::{Knobs, Market},
    wire::id::Id,
};
use crate::cloud::{
    self, address_pool::AddressPool, capacity::CapacityUsage, engine::EngineCore, ids::IdGenerator,
    index::Seq, lag::ReadLag,
};

/// The state of all subscriptions.
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: EngineCore<Knobs, Event>,
    names: IdGenerator,
    pub(crate) vms: ResourceTable<Vm>,
    pub(crate) nics: ResourceTable<Nic>,
    pub(crate) ips: ResourceTable<PublicIp>,
    pub(crate) disks: ResourceTable<Disk>,
    pub(crate) images: ResourceTable<Image>,
    pub(crate) tasks: BTreeMap<u64, Task>,
    task_ids: HashMap<String, u64>,
    /// Virtual machines, which quota counts whether they are allocated or not, by location.
    existing: BTreeMap<String, CapacityUsage>,
    pools: BTreeMap<String, AddressPool>,
}

/// An event in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An operation ends.
    End(u64),
    /// An operation expires.
    Expire(u64),
}

impl cloud::CloudEngine for Engine {
    type Knobs = Knobs;

    fn new(knobs: Knobs, clock: Arc<dyn Clock>) -> Self {
        let seed = knobs.seed;
        Self {
            names: IdGenerator::new(seed),
            vms: ResourceTable::default(),
            nics: ResourceTable::default(),
            ips: ResourceTable::default(),
            disks: ResourceTable::default(),
            images: ResourceTable::default(),
            tasks: BTreeMap::new(),
            task_ids: HashMap::new(),
            existing: BTreeMap::new(),
            pools: BTreeMap::new(),
            core: EngineCore::new(knobs, clock),
        }
    }

    fn knobs(&self) -> &Knobs {
        &self.core.knobs
    }

    fn set_knobs(&mut self, knobs: Knobs) {
        self.core.knobs = knobs;
    }

    fn catch_up(&mut self) {
        while let Some(event) = self.core.schedule.due() {
            match event {
                Event::End(task) => self.end(task),
                Event::Expire(task) => self.expire(task),
            }
        }
    }

    fn request_id(&mut self) -> String {
        self.core.request_id()
    }
}

impl Engine {
    const fn next_seq(&mut self) -> Seq {
        self.core.next_seq()
    }

    /// Returns the current time.
    pub(crate) const fn now(&self) -> Duration {
        self.core.now()
    }

    /// Returns the calendar date at a time.
    pub(crate) fn date(&self, moment: Duration) -> DateTime<Utc> {
        self.core.date(moment)
    }

    /// Returns the date at a time as Azure writes it.
    pub(crate) fn timestamp(&self, moment: Duration) -> String {
        let date = self.date(moment);
        date.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
    }

    /// Returns the time whose state a read returns, or `None` if that is before the start.
    pub(crate) fn moment(&mut self, read_lag: ReadLag) -> Option<Duration> {
        let now = self.now();
        self.core
            .knobs
            .lag
            .read_time(now, read_lag, &mut self.core.rng)
    }

    /// Refuses a resource group that does not exist.
    pub(crate) fn check_group(&self, group: &str) -> Result<(), Refusal> {
        let known = self.core.knobs.resource_groups.iter();
        if known.map(|known| &known.name).any(|name| same(name, group)) {
            return Ok(());
        }
        Err(Refusal::group_not_found(group))
    }

    /// Finds the virtual machine that a call names; a lagging call does not find a new one yet.
    pub(crate) fn find_vm(&mut self, id: &Id) -> Result<Seq, Refusal> {
        self.check_group(&id.group)?;
        self.core.records_read += 1;
        let seq = self.vms.seq(id).ok_or_else(|| self.vm_not_found(id))?;
        let created = self.vms.created_at(seq).unwrap_or_default();
        let now = self.now();
        if self.core.knobs.lag.hides(created, now, &mut self.core.rng) {
            return Err(id.not_found());
        }
        Ok(seq)
    }

    /// The words for a virtual machine that is not there: others soon after it went.
    pub(crate) fn vm_not_found(&self, id: &Id) -> Refusal {
        let retention = self.core.knobs.timing.deleted_retention;
        let recently = |deleted: Duration| self.now() < deleted.saturating_add(retention);
        if self.vms.deleted_at(id).is_some_and(recently) {
            Refusal::provider_not_found()
        } else {
            id.not_found()
        }
    }

    /// Changes a virtual machine.
    fn edit_vm(&mut self, seq: Seq, change: impl FnOnce(&mut Vm)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.vms.edit(seq, now, window, |vm| {
            vm.version += 1;
            vm.changed = now;
            change(vm);
        });
    }

    /// Adds a line to the console of a virtual machine.
    fn log(&mut self, seq: Seq, message: &str) {
        let line = format!("[{}] {message}", self.timestamp(self.now()));
        self.edit_vm(seq, |vm| Arc::make_mut(&mut vm.console).push(line));
    }

    /// Reserves a machine for a virtual machine.
    fn allocate(&mut self, seq: Seq) {
        let Some(vm) = self.vms.get(seq).filter(|vm| !vm.allocated) else {
            return;
        };
        self.core.usage.reserve(vm.kind());
        self.edit_vm(seq, |vm| vm.allocated = true);
    }

    /// Releases the machine of a virtual machine.
    fn release(&mut self, seq: Seq) {
        let Some(vm) = self.vms.get(seq).filter(|vm| vm.allocated) else {
            return;
        };
        self.core.usage.release(&vm.kind());
        self.edit_vm(seq, |vm| vm.allocated = false);
    }

    /// What quota counts: how many cores exist of what a choice is about.
    fn cores_of(&self, location: &str, choice: impl Fn(&str, Market) -> bool) -> u64 {
        let Some(existing) = self.existing.get(location) else {
            return 0;
        };
        let counted = existing
            .in_use()
            .filter(|((size, _, market), _)| choice(size, *market));
        counted
            .map(|((size, ..), count)| count.saturating_mul(u64::from(self.cores(size))))
            .sum()
    }

    fn cores(&self, size: &str) -> u32 {
        let spec = self
            .core
            .knobs
            .sizes
            .iter()
            .find(|spec| same(&spec.name, size));
        spec.map_or(0, |spec| spec.cores)
    }
}
