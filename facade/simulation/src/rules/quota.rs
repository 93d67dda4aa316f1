//! Rule: quota is charged for exactly the records that exist, and for at least what the cloud really has of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fleetwright::InstanceInfo;
use fleetwright_compute::instance::Instance;
use fleetwright_compute::schema::INSTANCE_KIND;
use fleetwright_identity::Allocation;
use fleetwright_region::schema::{NETWORK_KIND, SERVER_KIND, SSH_AUTHORITY_KIND};
use fleetwright_region::snapshot::native_name;
use fleetwright_store::{Json, Record};
use serde_json::Value;

use super::{RecordChange, Rules, price::Price};

/// The kind of the records of images.
pub(super) const IMAGE_KIND: &str = "image";
/// The records besides instances that are charged, with the quota kind of which each costs one.
const CHARGED: [(&str, &str); 3] = [
    (NETWORK_KIND, "networks"),
    (SSH_AUTHORITY_KIND, "ssh-authorities"),
    (IMAGE_KIND, "images"),
];

/// The allocations of a store by the kind and the key of what they pay for.
struct Charges<'a>(BTreeMap<(&'a str, &'a str), &'a Allocation>);

impl<'a> Charges<'a> {
    fn new(allocations: &'a [Arc<Allocation>]) -> Self {
        let by_record = allocations.iter().map(|allocation| {
            let paid = &allocation.pays_for;
            ((paid.kind.as_str(), paid.key.as_str()), &**allocation)
        });
        Self(by_record.collect())
    }

    fn of(&self, kind: &str, key: &str) -> Option<&'a Allocation> {
        self.0.get(&(kind, key)).copied()
    }
}

/// What is used of each account, by its organization, with the project if it is one of a project.
#[derive(Default)]
struct Used(BTreeMap<String, Price>);

impl Used {
    fn add(&mut self, allocation: &Allocation) {
        let (organization, project) = (allocation.organization, allocation.project);
        let charged = Price::of_allocation(allocation);
        *self.0.entry(organization.to_string()).or_default() += charged;
        let project = format!("{organization}/{project}");
        *self.0.entry(project).or_default() += charged;
    }
}

impl Rules {
    /// Each record that costs something has one allocation, for its price and, while a change of an instance is pending, at least for
    /// that of its machine; each allocation has a record; and each account has used the sum of them and no more than its limit.
    pub(super) async fn check_charges(&self) {
        let allocations: Vec<Arc<Allocation>> = self.all("allocation").await;
        let charges = Charges::new(&allocations);
        let mut used = Used::default();
        let mut paid: BTreeSet<(&str, String)> = BTreeSet::new();
        let instances: Vec<Arc<Instance>> = self.all(INSTANCE_KIND).await;
        for instance in &instances {
            let id = instance.id.to_string();
            if let Some(allocation) = charges.of(INSTANCE_KIND, &id) {
                self.check_instance_charge(instance, allocation, &charges)
                    .await;
                used.add(allocation);
            } else {
                self.report(format!("instance {id} is not charged"));
            }
            paid.insert((INSTANCE_KIND, id));
        }
        for (kind, quota) in CHARGED {
            for record in self.records(kind).await {
                let Some(owner) = owner_of(kind, &record) else {
                    continue;
                };
                let id = record.id.key.to_string();
                if let Some(allocation) = charges.of(kind, &id) {
                    self.check_charge(kind, &id, owner, allocation, Price::one(quota));
                    used.add(allocation);
                } else {
                    self.report(format!("{kind} {id} is not charged"));
                }
                paid.insert((kind, id));
            }
        }
        let unpaid = charges.0.keys();
        let mut unpaid = unpaid.filter(|(kind, key)| !paid.contains(&(*kind, (*key).to_owned())));
        if let Some((kind, _)) = unpaid.next() {
            self.report(format!("an allocation has no {kind}"));
        }
        self.check_machines(&charges);
        self.check_images(&charges);
        self.check_accounts(&used).await;
    }

    /// Checks the charge of an instance. Its network, in which it has a machine, is charged as well.
    async fn check_instance_charge(
        &self,
        instance: &Instance,
        allocation: &Allocation,
        charges: &Charges<'_>,
    ) {
        let (id, price) = (instance.id, Price::of_spec(&instance.spec));
        let charged = Price::of_allocation(allocation);
        let exact = instance.release_to.is_some() || charged == price;
        if !exact || !charged.covers(price) {
            self.report(format!(
                "instance {id} costs {price} and is charged {charged}"
            ));
        }
        let server = self.server(instance.server).await;
        let machine = server.as_ref().and_then(|server| server.machine.as_ref());
        if let Some(machine) = machine {
            let (flavor, public_ip) = (machine.applied.flavor.as_str(), machine.applied.public_ip);
            let present = Price::of_machine(flavor, public_ip);
            if !charged.covers(present) {
                self.report(format!(
                    "instance {id} has a machine that costs {present} and is charged {charged}"
                ));
            }
            let network = instance.network.to_string();
            if charges.of(NETWORK_KIND, &network).is_none() {
                self.report(format!(
                    "network {network} has machine {} and is not charged",
                    machine.id
                ));
            }
        }
        if (allocation.organization, allocation.project)
            != (instance.organization, instance.project)
        {
            self.report(format!("instance {id} is charged to another tenant"));
        }
    }

    /// Checks the charge of a record with a fixed price.
    fn check_charge(
        &self,
        kind: &str,
        id: &str,
        owner: &Value,
        allocation: &Allocation,
        price: Price,
    ) {
        let charged = Price::of_allocation(allocation);
        if charged != price {
            self.report(format!(
                "{kind} {id} costs {price} and is charged {charged}"
            ));
        }
        let is_owner = |field: &str, id: String| owner[field].as_str() == Some(&id);
        if !is_owner("organization", allocation.organization.to_string())
            || !is_owner("project", allocation.project.to_string())
        {
            self.report(format!("{kind} {id} is charged to another tenant"));
        }
    }

    /// Checks after a call that can make a machine larger that it is charged.
    pub async fn check_charges_of_machines(&self) {
        self.check_machines(&Charges::new(&self.all("allocation").await));
    }

    /// Checks after a call that creates or deletes an image that every image is charged.
    pub async fn check_charges_of_images(&self) {
        self.check_images(&Charges::new(&self.all("allocation").await));
    }

    /// Checks that every machine of a tenant in the region's account is charged for what it is, whatever its record says. One that was
    /// launched in another account is the operator's: see [`check_strays`](Rules::check_strays).
    fn check_machines(&self, charges: &Charges<'_>) {
        let of_others =
            |info: &InstanceInfo| self.journal.facts(|facts| facts.is_of_others(&info.id));
        for (info, server) in self.oracle.live() {
            let Some(server) = server.filter(|_| !of_others(&info)) else {
                continue;
            };
            let present = Price::of_real_machine(&info);
            let charged = charges.of(INSTANCE_KIND, &server.to_string());
            let charged = charged.map(Price::of_allocation);
            if !charged.is_some_and(|charged| charged.covers(present)) {
                let charged = charged.unwrap_or_default();
                self.report(format!(
                    "machine {} of server {server} costs {present} at the cloud and is charged {charged}",
                    info.id
                ));
            }
        }
    }

    /// Checks that every image in the region's account that a snapshot created is charged. One whose creation failed is excused once its
    /// tenant has deleted it: without a native id nobody can delete it at the cloud, which the failed record said.
    fn check_images(&self, charges: &Charges<'_>) {
        let existing = self.oracle.images();
        if existing.is_empty() {
            return;
        }
        let charged = charges.0.keys().filter(|(kind, _)| *kind == IMAGE_KIND);
        let charged = charged.filter_map(|(_, key)| Some(native_name(&key.parse().ok()?)));
        let charged: BTreeSet<String> = charged.collect();
        let lost = self.journal.facts(|facts| facts.lost_images.clone());
        let uncharged = |name: &&String| !charged.contains(*name) && !lost.contains(*name);
        if let Some(name) = existing.iter().find(uncharged) {
            self.report(format!(
                "image {name} exists at the cloud and is not charged"
            ));
        }
    }

    /// Remembers an image that is removed without a native id.
    pub(super) fn remember_lost_image(&self, change: &RecordChange) {
        let native = change.before.as_ref();
        let native = native.and_then(|image| image.pointer("/origin/snapshot/native"));
        let has_native = native.is_some_and(|native| !native.is_null());
        if let (None, false, Ok(id)) = (&change.after, has_native, change.id.key.as_str().parse()) {
            let name = native_name(&id);
            self.journal.facts(|facts| facts.lost_images.insert(name));
        }
    }

    async fn check_accounts(&self, used: &Used) {
        let accounts = self.values("quota-account").await;
        let mut found = 0;
        for account in &accounts {
            let (key, recorded) = (account_key(account), Price::of_account(account));
            let expected = used.0.get(&key).copied().unwrap_or_default();
            if recorded != expected {
                self.report(format!(
                    "account {key} records {recorded} although {expected} is used"
                ));
            }
            found += usize::from(used.0.contains_key(&key));
            if !Price::limit().covers(recorded) {
                self.report(format!("account {key} exceeds its quota: {recorded}"));
            }
        }
        if found < used.0.len() {
            self.report("a used account does not exist");
        }
    }
}

/// Returns whether a change concerns what is charged or what exists. Checking all charges takes long.
pub(super) fn concerns_charges(change: &RecordChange) -> bool {
    let appears = || change.before.is_some() != change.after.is_some();
    match change.kind() {
        "allocation" | "quota-account" => true,
        INSTANCE_KIND => appears() || change.differs("/spec"),
        NETWORK_KIND | SSH_AUTHORITY_KIND | IMAGE_KIND => appears(),
        SERVER_KIND => change.differs("/machine/applied"),
        _ => false,
    }
}

/// Returns the part of a charged record with its organization and project. Images of the catalog file have none.
fn owner_of<'r>(kind: &str, record: &'r Record) -> Option<&'r Value> {
    if kind != IMAGE_KIND {
        return Some(&record.value);
    }
    let owner = record.value.pointer("/origin/snapshot/owner");
    owner.filter(|owner| !owner.is_null())
}

/// Returns the organization of an account, with the project if it is one of a project.
fn account_key(account: &Json) -> String {
    let text = |field: &str| account[field].as_str().unwrap_or_default();
    match (text("organization"), text("project")) {
        (organization, "") => organization.to_owned(),
        (organization, project) => format!("{organization}/{project}"),
    }
}
