//! The engine of the emulated subscriptions: virtual machines, their resources, operations, and
//! time.
//!
//! Owns the true state. It must never wait, spawn a task or parse HTTP: everything here is synchronous,
//! and the wire handles requests, faults and lost responses. A call changes the state immediately
//! where Azure does, and begins an operation for the rest. The end of an operation is an event in a
//! queue; the next call processes the events that are due. So nothing runs in the background, the
//! same calls with the same seed have the same results, and the cost of a call does not grow with
//! the fleet.
//!
//! | file | purpose |
//! | --- | --- |
//! | `resource_table` | resources of one kind, and the versions that a stale read may still return |
//! | `vm`, `body_checks`, `plan`, `disk_plan` | a virtual machine, the checks of its document, the plan of its creation |
//! | `create`, `update`, `immutable`, `power` | creating and changing virtual machines, immutable properties, power |
//! | `task`, `completion` | operations: how one begins, and what happens at its end |
//! | `nic`, `nic_put`, `attach`, `public_ip` | interfaces, separate and of virtual machines; public addresses |
//! | `disk`, `image` | disks, images |
//! | `document` | resource groups, networks, security groups, snapshots, SSH keys |
//! | `network`, `group`, `copies` | the rules of networks; the deletion of a resource group; snapshots and keys |
//! | `limits`, `tags` | capacity and quota; the rules of tags |
//! | `external_action` | external actions, which bypass the wire |

mod attach;
mod body_checks;
mod completion;
mod copies;
pub(crate) mod create;
pub(crate) mod disk;
mod disk_plan;
pub(crate) mod document;
pub(crate) mod external_action;
mod group;
pub(crate) mod image;
mod immutable;
#[cfg(test)]
mod invariants;
mod limits;
pub(crate) mod network;
pub(crate) mod nic;
mod nic_put;
mod plan;
mod power;
pub(crate) mod public_ip;
pub(crate) mod resource_table;
pub(crate) mod tags;
pub(crate) mod task;
mod update;
pub(crate) mod vm;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright_chaos::Clock;

pub(crate) use limits::quota_text;

use self::{
    disk::Disk, document::Document, image::Image, nic::Nic, public_ip::PublicIp,
    resource_table::ResourceTable, task::Task, vm::Vm,
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
///
/// Every subscription has the same catalog, and capacity, quota and public addresses are shared by
/// all of them.
#[derive(Debug)]
pub struct Engine {
    /// What all clouds have: knobs, clock, schedule, random numbers, capacity and public addresses.
    pub(crate) core: EngineCore<Knobs, Event>,
    /// The source of GUIDs and unique names.
    names: IdGenerator,
    /// The virtual machines.
    pub(crate) vms: ResourceTable<Vm>,
    /// The network interfaces.
    pub(crate) nics: ResourceTable<Nic>,
    /// The public addresses.
    pub(crate) ips: ResourceTable<PublicIp>,
    /// The managed disks.
    pub(crate) disks: ResourceTable<Disk>,
    /// The managed images.
    pub(crate) images: ResourceTable<Image>,
    /// The documents that clients wrote, by the key of their id.
    documents: BTreeMap<String, Document>,
    /// The keys of the catalog's documents that clients deleted.
    removed: BTreeSet<String>,
    /// The keys of the machines that an eviction deleted: the resource manager still knows them.
    evicted: BTreeSet<String>,
    /// The operations by their internal number, until they expire.
    pub(crate) tasks: BTreeMap<u64, Task>,
    /// The internal number of an operation by its GUID in lower case.
    task_ids: HashMap<String, u64>,
    /// All virtual machines by location, allocated or not. Quota counts these.
    existing: BTreeMap<String, CapacityUsage>,
    /// The free private addresses, by the id of the subnet in lower case.
    pools: BTreeMap<String, AddressPool>,
    /// How often a list has omitted a virtual machine.
    pub(crate) omitted: u64,
    /// How many GETs in a row have not shown a resource, by its key.
    missed_reads: HashMap<String, u8>,
}

/// An event in the schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The operation with this number ends.
    End(u64),
    /// The operation with this number expires: polling it returns 404 from now on.
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
            documents: BTreeMap::new(),
            removed: BTreeSet::new(),
            evicted: BTreeSet::new(),
            tasks: BTreeMap::new(),
            task_ids: HashMap::new(),
            existing: BTreeMap::new(),
            pools: BTreeMap::new(),
            omitted: 0,
            missed_reads: HashMap::new(),
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
    /// Returns the next sequence number. Resources and operations share the numbers.
    const fn next_seq(&mut self) -> Seq {
        self.core.next_seq()
    }

    /// Returns the current time since the start of the emulator.
    pub(crate) const fn now(&self) -> Duration {
        self.core.now()
    }

    /// Returns the calendar date at a time.
    pub(crate) fn date(&self, moment: Duration) -> DateTime<Utc> {
        self.core.date(moment)
    }

    /// Returns the date at a time as documents contain it: with microseconds and `+00:00`.
    pub(crate) fn timestamp(&self, moment: Duration) -> String {
        let date = self.date(moment);
        date.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
    }

    /// Returns the time whose state a read returns, or `None` if that is before the start. Without
    /// lag this is the current time.
    pub(crate) fn read_time(&mut self, read_lag: ReadLag) -> Option<Duration> {
        let now = self.now();
        self.core
            .knobs
            .lag
            .read_time(now, read_lag, &mut self.core.rng)
    }

    /// Decides with a random number whether a read omits a resource, `percent` of the time.
    pub(crate) fn omits(&mut self, percent: u8) -> bool {
        percent > 0 && self.core.rng.bits() % 100 < u64::from(percent)
    }

    /// Decides whether a GET returns 404 for a resource that exists.
    pub(crate) fn misses_read(&mut self, id: &Id) -> bool {
        let omissions = self.core.knobs.omissions;
        self.misses(id.key(), omissions.reads, omissions.reads_in_a_row)
    }

    /// Refuses a creation in a resource group that exists, with 404 `ResourceGroupNotFound`, if
    /// [`Omissions::groups`](crate::azure::Omissions) says so.
    pub(crate) fn check_group_shown(&mut self, group: &str) -> Result<(), Refusal> {
        let omissions = self.core.knobs.omissions;
        let key = group.to_lowercase();
        if self.misses(key, omissions.groups, omissions.groups_in_a_row) {
            return Err(Refusal::group_not_found(group));
        }
        Ok(())
    }

    /// Decides whether a call does not find what exists, `percent` of the time and at most `most` times in a row.
    fn misses(&mut self, key: String, percent: u8, most: Option<u8>) -> bool {
        let missed = self.missed_reads.get(&key).copied().unwrap_or(0);
        let is_allowed = most.is_none_or(|most| missed < most);
        if self.omits(percent) && is_allowed {
            self.missed_reads.insert(key, missed.saturating_add(1));
            return true;
        }
        self.missed_reads.remove(&key);
        false
    }

    /// Refuses a resource group that does not exist, with 404 `ResourceGroupNotFound`.
    pub(crate) fn check_group(&self, subscription: &str, group: &str) -> Result<(), Refusal> {
        let mut known = self.core.knobs.resource_groups.iter();
        let in_catalog = known.any(|known| same(&known.name, group));
        // The catalog is enough until a client has created or deleted something.
        if self.documents.is_empty() && self.removed.is_empty() && in_catalog {
            return Ok(());
        }
        let key = Id::of_group(subscription, group).key();
        if self.documents.contains_key(&key) || (in_catalog && !self.removed.contains(&key)) {
            return Ok(());
        }
        Err(Refusal::group_not_found(group))
    }

    /// Finds the virtual machine that a call names.
    ///
    /// With [`Lag`](crate::azure::Lag), a call may not find a new virtual machine yet.
    ///
    /// # Errors
    ///
    /// 404 `ResourceGroupNotFound`, or the not-found code of [`Self::vm_not_found`].
    pub(crate) fn find_vm(&mut self, id: &Id) -> Result<Seq, Refusal> {
        self.check_group(&id.subscription, &id.group)?;
        self.core.records_read += 1;
        let seq = self.vms.seq(id).ok_or_else(|| self.vm_not_found(id))?;
        let created = self.vms.created_at(seq).unwrap_or_default();
        let now = self.now();
        if self.core.knobs.lag.hides(created, now, &mut self.core.rng) {
            return Err(id.not_found());
        }
        Ok(seq)
    }

    /// Refuses to create a virtual machine whose predecessor of that name was deleted within
    /// [`recreation`](crate::azure::Timing), with 404 `NotFound`.
    pub(crate) fn check_recreation(&self, id: &Id) -> Result<(), Refusal> {
        let wait = self.core.knobs.timing.recreation;
        let recently = |deleted: Duration| self.now() < deleted.saturating_add(wait);
        if self.vms.deleted_at(id).is_some_and(recently) {
            return Err(Refusal::provider_not_found());
        }
        Ok(())
    }

    /// Returns the refusal for a virtual machine that does not exist.
    ///
    /// 404 `NotFound`, the provider's code, until [`deleted_retention`](crate::azure::Timing) after
    /// its deletion; 404 `ResourceNotFound`, the resource manager's code, afterwards and for a name
    /// that was never used. After an eviction that deleted the machine it stays the provider's
    /// (azure-cli, recording `test_vm_simulate_eviction`), because the resource manager did not
    /// delete it.
    pub(crate) fn vm_not_found(&self, id: &Id) -> Refusal {
        let retention = self.core.knobs.timing.deleted_retention;
        let recently = |deleted: Duration| self.now() < deleted.saturating_add(retention);
        let evicted = self.evicted.contains(&id.key());
        if evicted || self.vms.deleted_at(id).is_some_and(recently) {
            Refusal::provider_not_found()
        } else {
            id.not_found()
        }
    }

    /// Changes a virtual machine. Every change gets a new version (the etag) and a new change time.
    fn edit_vm(&mut self, seq: Seq, change: impl FnOnce(&mut Vm)) {
        let (now, window) = (self.now(), self.core.knobs.lag.reads);
        self.vms.edit(seq, now, window, |vm| {
            vm.version += 1;
            vm.changed = now;
            change(vm);
        });
    }

    /// Adds a line with the current time to the serial console of a virtual machine.
    fn log(&mut self, seq: Seq, message: &str) {
        let line = format!("[{}] {message}", self.timestamp(self.now()));
        self.edit_vm(seq, |vm| Arc::make_mut(&mut vm.console).push(line));
    }

    /// Reserves a machine for a virtual machine, unless it has one. Does not check the capacity.
    fn allocate(&mut self, seq: Seq) {
        let Some(vm) = self.vms.get(seq).filter(|vm| !vm.allocated) else {
            return;
        };
        self.core.usage.reserve(vm.kind());
        self.edit_vm(seq, |vm| vm.allocated = true);
    }

    /// Releases the machine of a virtual machine, if it has one.
    fn release(&mut self, seq: Seq) {
        let Some(vm) = self.vms.get(seq).filter(|vm| vm.allocated) else {
            return;
        };
        self.core.usage.release(&vm.kind());
        self.edit_vm(seq, |vm| vm.allocated = false);
    }

    /// Returns how many vCPUs exist in a location, of the sizes and markets that `choice` selects.
    /// Deallocated machines count too.
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

    /// Returns the number of vCPUs of a size, 0 if the catalog no longer has it.
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
