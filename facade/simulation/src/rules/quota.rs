//! Rule: after every commit, quota is charged for exactly the instances that exist, and for at least what their machines are.

use std::collections::BTreeMap;

use fleetwright::PublicAddress;
use fleetwright_compute::instance::{Instance, InstanceSpec};
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_identity::Allocation;
use serde_json::Value;

use super::Rules;
use crate::constants;

/// Amounts by quota kind, without zeros.
type Amounts = BTreeMap<String, u64>;

impl Rules {
    /// Each instance has one allocation, for the price of its spec and, while a change is pending, at
    /// least for that of its machine; each allocation has an instance; and each account has used the
    /// sum of them and no more than its limit.
    pub(super) async fn check_charges(&self) {
        let instances: Vec<Instance> = self.all(INSTANCE_KIND).await;
        let allocations: Vec<Allocation> = self.all("allocation").await;
        let mut used: BTreeMap<String, Amounts> = BTreeMap::new();
        for instance in &instances {
            let (id, price) = (instance.id.to_string(), price(&instance.spec));
            let allocation = allocations
                .iter()
                .find(|allocation| allocation.pays_for.key.as_str() == id);
            let Some(allocation) = allocation else {
                self.report(format!("instance {id} is not charged"));
                continue;
            };
            let charged = amounts(&allocation.amounts);
            let exact = instance.release_to.is_some() || charged == price;
            if !exact || !covers(&charged, &price) {
                self.report(format!(
                    "instance {id} costs {price:?} and is charged {charged:?}"
                ));
            }
            let server = self.server(instance.server).await;
            if let Some(machine) = server.and_then(|server| server.machine) {
                let present = price_of(machine.applied.flavor.as_str(), machine.applied.public_ip);
                if !covers(&charged, &present) {
                    self.report(format!(
                        "instance {id} has a machine that costs {present:?} and is charged {charged:?}"
                    ));
                }
            }
            if (allocation.organization, allocation.project)
                != (instance.organization, instance.project)
            {
                self.report(format!("instance {id} is charged to another tenant"));
            }
            let (organization, project) = (instance.organization, instance.project);
            for account in [
                organization.to_string(),
                format!("{organization}/{project}"),
            ] {
                let total = used.entry(account).or_default();
                for (kind, amount) in &charged {
                    *total.entry(kind.clone()).or_default() += amount;
                }
            }
        }
        if allocations.len() > instances.len() {
            self.report("an allocation has no instance");
        }
        self.check_accounts(&used).await;
    }

    async fn check_accounts(&self, used: &BTreeMap<String, Amounts>) {
        let accounts: Vec<Value> = self.all("quota-account").await;
        let mut found = 0;
        for account in &accounts {
            let text = |path| {
                account
                    .pointer(path)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (organization, project) = (text("/organization"), text("/project"));
            let key = if project.is_empty() {
                organization.to_owned()
            } else {
                format!("{organization}/{project}")
            };
            let recorded = account.pointer("/used").map(amounts).unwrap_or_default();
            let expected = used.get(&key).cloned().unwrap_or_default();
            if recorded != expected {
                self.report(format!(
                    "account {key} records {recorded:?} although {expected:?} is used"
                ));
            }
            found += usize::from(used.contains_key(&key));
            let limits = [
                ("servers", constants::SERVER_QUOTA),
                ("gpus", constants::GPU_QUOTA),
                ("public-ips", constants::PUBLIC_IP_QUOTA),
            ];
            let exceeds =
                |(kind, limit): &(&str, u64)| recorded.get(*kind).is_some_and(|used| used > limit);
            if limits.iter().any(exceeds) {
                self.report(format!("account {key} exceeds its quota: {recorded:?}"));
            }
        }
        if found < used.len() {
            self.report("a used account does not exist");
        }
    }
}

/// Whether amounts are at least as large as others.
fn covers(charged: &Amounts, price: &Amounts) -> bool {
    let held = |kind| charged.get(kind).copied().unwrap_or_default();
    price.iter().all(|(kind, amount)| held(kind) >= *amount)
}

fn price(spec: &InstanceSpec) -> Amounts {
    price_of(spec.flavor.as_str(), spec.networking.public_ip)
}

fn price_of(flavor: &str, public_ip: PublicAddress) -> Amounts {
    let gpus = if flavor == "gpu" {
        constants::GPU_QUOTA
    } else {
        0
    };
    let addresses = match public_ip {
        PublicAddress::Assigned => 1,
        PublicAddress::Absent => 0,
    };
    let all = [("servers", 1), ("gpus", gpus), ("public-ips", addresses)];
    let some = all.into_iter().filter(|(_, amount)| *amount > 0);
    some.map(|(kind, amount)| (kind.to_owned(), amount))
        .collect()
}

fn amounts(amounts: impl serde::Serialize) -> Amounts {
    let value = serde_json::to_value(amounts).ok();
    let mut amounts: Amounts = value
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default();
    amounts.retain(|_, amount| *amount > 0);
    amounts
}
