//! Quota and capacity.

use std::collections::{BTreeMap, btree_map::Entry};

use fleetwright::{InstanceType, Market, PublicAddress, Zone};

use super::{Seq, World};
use crate::{config::Capacity, error::Refusal};

/// What a machine is: capacity is counted by it.
pub(super) type Kind = (InstanceType, Zone, Market);

/// What is in use.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Instances that are not terminated: they count against the quota.
    pub(super) instances: u64,
    /// Machines that are taken, by kind.
    machines: BTreeMap<Kind, u64>,
}

impl Capacity {
    fn fits(&self, (instance_type, zone, market): &Kind) -> bool {
        self.instance_type
            .as_ref()
            .is_none_or(|wanted| wanted == instance_type)
            && self.zone.as_ref().is_none_or(|wanted| wanted == zone)
            && self.market.is_none_or(|wanted| wanted == *market)
    }
}

impl World {
    /// How many of `asked` more instances of a kind can be had, and where that is not all of them,
    /// why not.
    pub(super) fn grant(
        &self,
        kind: &Kind,
        public_address: PublicAddress,
        asked: u64,
    ) -> (u64, Option<Refusal>) {
        let used = self.usage.instances;
        let limit = self.knobs.quota.unwrap_or(u64::MAX);
        let within_quota = limit.saturating_sub(used);
        let free = self.free_machines(kind);
        let addresses = match public_address {
            PublicAddress::Assigned => self.private.left().min(self.public.left()),
            PublicAddress::Absent => self.private.left(),
        };
        let granted = asked.min(within_quota).min(free).min(addresses);
        let refusal = if granted == asked {
            None
        } else if granted == within_quota {
            Some(Refusal::QuotaExceeded { used, asked, limit })
        } else if granted == free {
            Some(no_capacity(kind.clone()))
        } else {
            Some(Refusal::NoAddressLeft)
        };
        (granted, refusal)
    }

    /// How many more machines of a kind are free.
    pub(super) fn free_machines(&self, kind: &Kind) -> u64 {
        let limits = self.knobs.capacity.iter().filter(|limit| limit.fits(kind));
        limits.fold(u64::MAX, |free, limit| {
            let taken = self
                .usage
                .machines
                .iter()
                .filter(|(kind, _)| limit.fits(kind));
            let taken: u64 = taken.map(|(_, count)| count).sum();
            free.min(limit.machines.saturating_sub(taken))
        })
    }

    /// Takes a machine for an instance.
    pub(super) fn take_machine(&mut self, seq: Seq) {
        if let Some(record) = self.records.get_mut(&seq) {
            if !std::mem::replace(&mut record.holds_machine, true) {
                *self.usage.machines.entry(kind_of(record)).or_default() += 1;
            }
        }
    }

    /// Gives an instance's machine back.
    pub(super) fn release_machine(&mut self, seq: Seq) {
        if let Some(record) = self.records.get_mut(&seq) {
            if std::mem::take(&mut record.holds_machine) {
                // Kinds that nothing runs on are not kept, or asking for capacity would cost ever more.
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

/// Why a machine of a kind cannot be had.
pub(super) fn no_capacity((instance_type, zone, market): Kind) -> Refusal {
    Refusal::NoCapacity {
        instance_type,
        zone,
        market,
    }
}

/// The kind of machine an instance runs on.
pub(super) fn kind_of(record: &super::Record) -> Kind {
    (
        record.current().instance_type.clone(),
        record.zone.clone(),
        record.market,
    )
}
