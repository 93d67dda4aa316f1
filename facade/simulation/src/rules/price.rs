//! What is charged or used of each quota kind, by the prices of this simulation.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

use fleetwright::{InstanceInfo, PublicAddress};
use fleetwright_compute::instance::InstanceSpec;
use fleetwright_identity::Allocation;
use fleetwright_store::Json;

use crate::{constants, environment::catalog_name};

/// The quota kinds, as they are stored and as they are printed. The last amount of a price is everything else.
const KINDS: [(&str, &str); 7] = [
    ("servers", "servers"),
    ("gpus", "GPUs"),
    ("public-ips", "addresses"),
    ("networks", "networks"),
    ("ssh-authorities", "authorities"),
    ("images", "images"),
    ("", "others"),
];

/// An amount of each quota kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Price([u64; KINDS.len()]);

impl Price {
    /// Returns the limit of each account.
    pub(super) fn limit() -> Self {
        Self([
            constants::SERVER_QUOTA,
            constants::GPU_QUOTA,
            constants::PUBLIC_IP_QUOTA,
            constants::NETWORK_QUOTA,
            constants::AUTHORITY_QUOTA,
            constants::IMAGE_QUOTA,
            0,
        ])
    }

    /// Returns the price of one thing of a quota kind.
    pub(super) fn one(kind: &str) -> Self {
        Self::of([(kind, 1)].into_iter())
    }

    /// Returns the price of an instance.
    pub(super) fn of_spec(spec: &InstanceSpec) -> Self {
        Self::of_machine(spec.flavor.as_str(), spec.networking.public_ip)
    }

    /// Returns the price of a machine.
    pub(super) fn of_machine(flavor: &str, public_ip: PublicAddress) -> Self {
        let gpus = if flavor == "gpu" {
            constants::GPU_QUOTA
        } else {
            0
        };
        let addresses = match public_ip {
            PublicAddress::Assigned => 1,
            PublicAddress::Absent => 0,
        };
        Self([1, gpus, addresses, 0, 0, 0, 0])
    }

    /// Returns the price of a machine as it is at the cloud: its type, and the address that it has.
    pub(super) fn of_real_machine(info: &InstanceInfo) -> Self {
        let native = info.instance_type.as_ref().map(AsRef::<str>::as_ref);
        let public_ip = match info.public_ip {
            Some(_) => PublicAddress::Assigned,
            None => PublicAddress::Absent,
        };
        Self::of_machine(catalog_name(native.unwrap_or_default()), public_ip)
    }

    /// Returns what an allocation charges.
    pub(super) fn of_allocation(allocation: &Allocation) -> Self {
        let amounts = allocation.amounts.iter();
        Self::of(amounts.map(|(kind, amount)| (kind.as_str(), amount)))
    }

    /// Returns what an account records as used.
    pub(super) fn of_account(account: &Json) -> Self {
        let used = account["used"].as_object().into_iter().flatten();
        Self::of(used.map(|(kind, amount)| (kind.as_str(), amount.as_u64().unwrap_or_default())))
    }

    fn of<'a>(amounts: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut price = Self::default();
        for (kind, amount) in amounts {
            let known = KINDS.iter().position(|(name, _)| *name == kind);
            if let Some(sum) = price.0.get_mut(known.unwrap_or(KINDS.len() - 1)) {
                *sum += amount;
            }
        }
        price
    }

    /// Returns whether each amount is at least as large as the other.
    pub(super) fn covers(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(own, other)| *own >= other)
    }
}

impl Add for Price {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        for (sum, amount) in self.0.iter_mut().zip(other.0) {
            *sum += amount;
        }
        self
    }
}

impl AddAssign for Price {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amounts = self.0.iter().zip(KINDS);
        let amounts = amounts.filter(|(amount, _)| **amount > 0);
        let texts: Vec<_> = amounts
            .map(|(amount, (_, name))| format!("{amount} {name}"))
            .collect();
        if texts.is_empty() {
            return f.write_str("nothing");
        }
        f.write_str(&texts.join(", "))
    }
}
