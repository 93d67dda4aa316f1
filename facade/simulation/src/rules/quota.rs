//! Rule: quota is charged for exactly the instances that exist, and for at least what the cloud really has of them.

use std::{
    collections::BTreeMap,
    fmt,
    ops::{Add, AddAssign},
    sync::Arc,
};

use fleetwright::{InstanceInfo, PublicAddress};
use fleetwright_compute::instance::{Instance, InstanceSpec};
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_identity::Allocation;
use fleetwright_store::Json;

use super::Rules;
use crate::{constants, environment::catalog_name};

/// What is charged or used of each quota kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Price {
    servers: u64,
    gpus: u64,
    public_ips: u64,
    /// Everything else: no instance costs it.
    others: u64,
}

impl Rules {
    /// Each instance has one allocation, for the price of its spec and, while a change is pending, at
    /// least for that of its machine; each allocation has an instance; and each account has used the
    /// sum of them and no more than its limit.
    pub(super) async fn check_charges(&self) {
        let instances: Vec<Arc<Instance>> = self.all(INSTANCE_KIND).await;
        let allocations: Vec<Arc<Allocation>> = self.all("allocation").await;
        let mut used: BTreeMap<String, Price> = BTreeMap::new();
        for instance in &instances {
            let (id, price) = (instance.id.to_string(), price(&instance.spec));
            let Some(allocation) = allocation_of(&allocations, &id) else {
                self.report(format!("instance {id} is not charged"));
                continue;
            };
            let charged = charge(allocation);
            let exact = instance.release_to.is_some() || charged == price;
            if !exact || !charged.covers(price) {
                self.report(format!(
                    "instance {id} costs {price} and is charged {charged}"
                ));
            }
            let server = self.server(instance.server).await;
            let machine = server.as_ref().and_then(|server| server.machine.as_ref());
            if let Some(machine) = machine {
                let present = price_of(machine.applied.flavor.as_str(), machine.applied.public_ip);
                if !charged.covers(present) {
                    self.report(format!(
                        "instance {id} has a machine that costs {present} and is charged {charged}"
                    ));
                }
            }
            let (organization, project) = (instance.organization, instance.project);
            if (allocation.organization, allocation.project) != (organization, project) {
                self.report(format!("instance {id} is charged to another tenant"));
            }
            let accounts = [
                organization.to_string(),
                format!("{organization}/{project}"),
            ];
            for account in accounts {
                *used.entry(account).or_default() += charged;
            }
        }
        if allocations.len() > instances.len() {
            self.report("an allocation has no instance");
        }
        self.check_machines(&allocations);
        self.check_accounts(&used).await;
    }

    /// Checks after a call that can make a machine larger that it is charged.
    pub async fn check_charges_of_machines(&self) {
        self.check_machines(&self.all("allocation").await);
    }

    /// Checks that every machine of a tenant in the region's account is charged for what it is, whatever its record says. One that was
    /// launched in another account is the operator's: see [`check_strays`](Rules::check_strays).
    fn check_machines(&self, allocations: &[Arc<Allocation>]) {
        let of_others =
            |info: &InstanceInfo| self.journal.facts(|facts| facts.is_of_others(&info.id));
        for (info, server) in self.oracle.live() {
            let Some(server) = server.filter(|_| !of_others(&info)) else {
                continue;
            };
            let present = real_price(&info);
            let charged =
                allocation_of(allocations, &server.to_string()).map(|found| charge(found));
            if !charged.is_some_and(|charged| charged.covers(present)) {
                let charged = charged.unwrap_or_default();
                self.report(format!(
                    "machine {} of server {server} costs {present} at the cloud and is charged {charged}",
                    info.id
                ));
            }
        }
    }

    async fn check_accounts(&self, used: &BTreeMap<String, Price>) {
        let accounts = self.values("quota-account").await;
        let mut found = 0;
        for account in &accounts {
            let (key, recorded) = (account_key(account), recorded(account));
            let expected = used.get(&key).copied().unwrap_or_default();
            if recorded != expected {
                self.report(format!(
                    "account {key} records {recorded} although {expected} is used"
                ));
            }
            found += usize::from(used.contains_key(&key));
            let limit = Price {
                servers: constants::SERVER_QUOTA,
                gpus: constants::GPU_QUOTA,
                public_ips: constants::PUBLIC_IP_QUOTA,
                others: 0,
            };
            if !limit.covers(recorded) {
                self.report(format!("account {key} exceeds its quota: {recorded}"));
            }
        }
        if found < used.len() {
            self.report("a used account does not exist");
        }
    }
}

fn allocation_of<'a>(
    allocations: &'a [Arc<Allocation>],
    instance: &str,
) -> Option<&'a Arc<Allocation>> {
    let mut all = allocations.iter();
    all.find(|allocation| allocation.pays_for.key.as_str() == instance)
}

fn charge(allocation: &Allocation) -> Price {
    let amounts = allocation.amounts.iter();
    Price::of(amounts.map(|(kind, amount)| (kind.as_str(), amount)))
}

/// Returns the organization of an account, with the project if it is one of a project.
fn account_key(account: &Json) -> String {
    let text = |field: &str| account[field].as_str().unwrap_or_default();
    match (text("organization"), text("project")) {
        (organization, "") => organization.to_owned(),
        (organization, project) => format!("{organization}/{project}"),
    }
}

fn recorded(account: &Json) -> Price {
    let used = account["used"].as_object().into_iter().flatten();
    Price::of(used.map(|(kind, amount)| (kind.as_str(), amount.as_u64().unwrap_or_default())))
}

fn price(spec: &InstanceSpec) -> Price {
    price_of(spec.flavor.as_str(), spec.networking.public_ip)
}

fn price_of(flavor: &str, public_ip: PublicAddress) -> Price {
    Price {
        servers: 1,
        gpus: if flavor == "gpu" {
            constants::GPU_QUOTA
        } else {
            0
        },
        public_ips: match public_ip {
            PublicAddress::Assigned => 1,
            PublicAddress::Absent => 0,
        },
        others: 0,
    }
}

/// Returns the price of a machine as it is at the cloud: its type, and the address that it has.
fn real_price(info: &InstanceInfo) -> Price {
    let native = info.instance_type.as_ref().map(AsRef::<str>::as_ref);
    let public_ip = match info.public_ip {
        Some(_) => PublicAddress::Assigned,
        None => PublicAddress::Absent,
    };
    price_of(catalog_name(native.unwrap_or_default()), public_ip)
}

impl Price {
    fn of<'a>(amounts: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut price = Self::default();
        for (kind, amount) in amounts {
            match kind {
                "servers" => price.servers += amount,
                "gpus" => price.gpus += amount,
                "public-ips" => price.public_ips += amount,
                _ => price.others += amount,
            }
        }
        price
    }

    /// Returns whether each amount is at least as large as the other.
    fn covers(self, other: Self) -> bool {
        self.servers >= other.servers
            && self.gpus >= other.gpus
            && self.public_ips >= other.public_ips
            && self.others >= other.others
    }
}

impl Add for Price {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            servers: self.servers + other.servers,
            gpus: self.gpus + other.gpus,
            public_ips: self.public_ips + other.public_ips,
            others: self.others + other.others,
        }
    }
}

impl AddAssign for Price {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} servers, {} GPUs, {} addresses",
            self.servers, self.gpus, self.public_ips
        )?;
        if self.others > 0 {
            write!(f, ", {} others", self.others)?;
        }
        Ok(())
    }
}
