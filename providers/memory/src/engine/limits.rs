//! Quota and capacity.
//!
//! The quota counts instances that are not terminated; capacity counts machines, which stopped
//! instances do not use.

use std::collections::{BTreeMap, btree_map::Entry};

use fleetwright::{InstanceType, Market, PublicAddress, Zone};

use super::{Seq, World};
use crate::{config::Capacity, error::NativeError};

/// The properties of a machine by which capacity is counted.
pub(super) type MachineKind = (InstanceType, Zone, Market);

/// What is in use against quota and capacity.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Instances that are not terminated: they count against the quota.
    pub(super) instances: u64,
    /// Machines in use, by kind. Kinds without machines have no entry.
    machines: BTreeMap<MachineKind, u64>,
}

impl Capacity {
    /// Whether the limit applies to machines of this kind.
    fn fits(&self, (instance_type, zone, market): &MachineKind) -> bool {
        self.instance_type
            .as_ref()
            .is_none_or(|limit| limit == instance_type)
            && self.zone.as_ref().is_none_or(|limit| limit == zone)
            && self.market.is_none_or(|limit| limit == *market)
    }
}

impl World {
    /// Returns how many of `requested` more instances of a kind can be created and, if not all of
    /// them, the limit that prevents it: quota before capacity, capacity before addresses.
    pub(super) fn grant(
        &self,
        kind: &MachineKind,
        public_address: PublicAddress,
        requested: u64,
    ) -> (u64, Option<NativeError>) {
        let used = self.usage.instances;
        let limit = self.knobs.quota.unwrap_or(u64::MAX);
        let within_quota = limit.saturating_sub(used);
        let free = self.free_machines(kind);
        let addresses = match public_address {
            PublicAddress::Assigned => self.private.available().min(self.public.available()),
            PublicAddress::Absent => self.private.available(),
        };
        let granted = requested.min(within_quota).min(free).min(addresses);
        let error = if granted == requested {
            None
        } else if granted == within_quota {
            Some(NativeError::QuotaExceeded {
                used,
                requested,
                limit,
            })
        } else if granted == free {
            Some(no_capacity(kind.clone()))
        } else {
            Some(NativeError::NoAddressLeft)
        };
        (granted, error)
    }

    /// Returns how many more machines of a kind are free under every limit that applies.
    pub(super) fn free_machines(&self, kind: &MachineKind) -> u64 {
        let limits = self.knobs.capacity.iter().filter(|limit| limit.fits(kind));
        limits.fold(u64::MAX, |free, limit| {
            let matching = self
                .usage
                .machines
                .iter()
                .filter(|(kind, _)| limit.fits(kind));
            let in_use: u64 = matching.map(|(_, count)| count).sum();
            free.min(limit.machines.saturating_sub(in_use))
        })
    }

    /// Assigns a machine to an instance. Does nothing if it has one.
    pub(super) fn take_machine(&mut self, seq: Seq) {
        if let Some(record) = self.records.get_mut(&seq) {
            if !std::mem::replace(&mut record.holds_machine, true) {
                *self.usage.machines.entry(kind_of(record)).or_default() += 1;
            }
        }
    }

    /// Releases an instance's machine. Does nothing if it has none.
    pub(super) fn release_machine(&mut self, seq: Seq) {
        if let Some(record) = self.records.get_mut(&seq) {
            if std::mem::take(&mut record.holds_machine) {
                // Empty kinds are removed; otherwise the cost of a capacity check would only grow.
                if let Entry::Occupied(mut count) = self.usage.machines.entry(kind_of(record)) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
    }
}

/// Returns the error for a kind without free machines.
pub(super) fn no_capacity((instance_type, zone, market): MachineKind) -> NativeError {
    NativeError::NoCapacity {
        instance_type,
        zone,
        market,
    }
}

/// Returns the kind of machine that an instance needs.
pub(super) fn kind_of(record: &super::Record) -> MachineKind {
    (
        record.current().instance_type.clone(),
        record.zone.clone(),
        record.market,
    )
}
