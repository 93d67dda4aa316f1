//! VPCs, subnets, security groups and key pairs: those of the knobs, and those that clients create.
//!
//! The knobs say what exists at the start. When they change, only what differs between the old and the new ones is changed, so
//! that a resource that a client deleted stays deleted.

use ipnet::Ipv4Net;

use super::{
    Engine, Mode,
    record::Tags,
    rule::Rule,
    table::{Table, Tagged, impl_resource},
    tags::Kind,
};
use crate::ec2::{
    catalog::{DEFAULT_NETWORK, KeyPair, SecurityGroup, Subnet, VPC},
    error::Refusal,
    knobs::Knobs,
};

/// A virtual network.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "EC2 has each of them as a bool attribute"
)]
pub(crate) struct Vpc {
    /// The id.
    pub(crate) id: String,
    /// The address range.
    pub(crate) cidr: Ipv4Net,
    /// The tags.
    pub(crate) tags: Tags,
    /// Whether launches without a subnet use it.
    pub(crate) is_default: bool,
    /// Whether names are resolved; only stored.
    pub(crate) dns_support: bool,
    /// Whether instances get public names; only stored.
    pub(crate) dns_hostnames: bool,
    /// Whether the usage of addresses is measured; only stored.
    pub(crate) usage_metrics: bool,
}

/// A security group with its rules. No packets are filtered.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The id.
    pub(crate) id: String,
    /// The name.
    pub(crate) name: String,
    /// The description.
    pub(crate) description: String,
    /// The VPC.
    pub(crate) vpc: String,
    /// The rules.
    pub(crate) rules: Vec<Rule>,
    /// The tags.
    pub(crate) tags: Tags,
}

/// A key pair. The private key is not kept.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The id.
    pub(crate) id: String,
    /// The name.
    pub(crate) name: String,
    /// `rsa` or `ed25519`.
    pub(crate) kind: &'static str,
    /// The fingerprint of the public key.
    pub(crate) fingerprint: String,
    /// The public key in the format of OpenSSH.
    pub(crate) public_key: String,
    /// When it was created.
    pub(crate) created: std::time::Duration,
    /// The tags.
    pub(crate) tags: Tags,
}

impl_resource!(Vpc, Group, Key, Subnet);

/// All networks of the account and what belongs to them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// The VPCs.
    pub(crate) vpcs: Table<Vpc>,
    /// The subnets.
    pub(crate) subnets: Table<Subnet>,
    /// The security groups.
    pub(crate) groups: Table<Group>,
    /// The key pairs.
    pub(crate) keys: Table<Key>,
}

impl Network {
    /// Returns a security group.
    pub(crate) fn group(&self, id: &str) -> Option<&Group> {
        self.groups.get(id)
    }

    /// Returns a key pair by its name.
    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns the default group of a VPC: the first one.
    pub(crate) fn default_group(&self, vpc: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.vpc == vpc)
    }

    /// Returns the resources of a kind; `None` for the kinds that are elsewhere.
    pub(crate) fn tagged(&self, kind: Kind) -> Option<&dyn Tagged> {
        match kind {
            Kind::Vpc => Some(&self.vpcs),
            Kind::Subnet => Some(&self.subnets),
            Kind::Group => Some(&self.groups),
            Kind::Key => Some(&self.keys),
            Kind::Instance
            | Kind::Volume
            | Kind::Nic
            | Kind::Image
            | Kind::Snapshot
            | Kind::Address
            | Kind::SpotRequest => None,
        }
    }

    /// Returns the resources of a kind to change their tags, as [`Network::tagged`].
    pub(crate) fn tagged_mut(&mut self, kind: Kind) -> Option<&mut dyn Tagged> {
        match kind {
            Kind::Vpc => Some(&mut self.vpcs),
            Kind::Subnet => Some(&mut self.subnets),
            Kind::Group => Some(&mut self.groups),
            Kind::Key => Some(&mut self.keys),
            Kind::Instance
            | Kind::Volume
            | Kind::Nic
            | Kind::Image
            | Kind::Snapshot
            | Kind::Address
            | Kind::SpotRequest => None,
        }
    }
}

impl Engine {
    /// Brings the networks from the state of the old knobs to that of the current ones.
    pub(super) fn load_catalog_networks(&mut self, old: Option<&Knobs>) {
        if old.is_none() {
            let vpc = new_vpc(VPC.to_owned(), DEFAULT_NETWORK, Tags::new(), true);
            let seq = self.next_seq();
            self.network.vpcs.put(seq, vpc);
        }
        let (subnets, groups, keys) = {
            let knobs = &self.core.knobs;
            let (subnets, groups, keys) = (
                changed(old.map(|old| &*old.subnets), &knobs.subnets, |subnet| {
                    &subnet.id
                }),
                changed(
                    old.map(|old| &*old.security_groups),
                    &knobs.security_groups,
                    |group| &group.id,
                ),
                changed(old.map(|old| &*old.key_pairs), &knobs.key_pairs, |key| {
                    &key.name
                }),
            );
            (subnets, groups, keys)
        };
        for id in subnets.1 {
            self.network.subnets.remove(&id);
        }
        for subnet in subnets.0 {
            let seq = self.next_seq();
            // A pool of another address range would give wrong addresses.
            let before = self
                .network
                .subnets
                .get(&subnet.id)
                .map(|before| before.cidr);
            if before.is_some_and(|before| before != subnet.cidr) {
                self.subnet_pools.remove(&subnet.id);
            }
            self.network.subnets.put(seq, subnet);
        }
        for id in groups.1 {
            self.network.groups.remove(&id);
        }
        for group in groups.0 {
            let seq = self.next_seq();
            let group = self.catalog_group(group);
            self.network.groups.put(seq, group);
        }
        for name in keys.1 {
            let id = self.network.key(&name).map(|key| key.id.clone());
            self.network.keys.remove(&id.unwrap_or_default());
        }
        for KeyPair { name } in keys.0 {
            self.add_catalog_key(name);
        }
    }

    /// Returns a group of the knobs, with the rule of every new group.
    fn catalog_group(&mut self, group: SecurityGroup) -> Group {
        Group {
            rules: vec![self.everything_out()],
            id: group.id,
            name: group.name,
            description: group.description,
            vpc: VPC.to_owned(),
            tags: group.tags,
        }
    }

    /// Creates a VPC with its default group.
    ///
    /// # Errors
    ///
    /// `InvalidVpc.Range` for a range that is not between /16 and /28.
    pub(crate) fn create_vpc(
        &mut self,
        cidr: Ipv4Net,
        tags: Tags,
        mode: Mode,
    ) -> Result<String, Refusal> {
        if !(16..=28).contains(&cidr.prefix_len()) {
            let message = format!("The CIDR '{cidr}' is invalid.");
            return Err(Refusal::client("InvalidVpc.Range", message));
        }
        mode.check_dry_run()?;
        let (seq, id) = (self.next_seq(), self.ids.next("vpc"));
        let vpc = new_vpc(id.clone(), cidr.trunc(), tags, false);
        self.network.vpcs.put(seq, vpc);
        let group = NewGroup {
            name: "default".to_owned(),
            description: "default VPC security group".to_owned(),
            vpc: id.clone(),
            tags: Tags::new(),
        };
        self.add_group(group);
        Ok(id)
    }

    /// Deletes a VPC and its default group.
    ///
    /// # Errors
    ///
    /// `InvalidVpcID.NotFound`, or `DependencyViolation` while it has subnets or other groups.
    pub(crate) fn delete_vpc(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        self.vpc(id)?;
        let groups: Vec<String> = self
            .network
            .groups
            .iter()
            .filter(|group| group.vpc == id)
            .map(|group| group.id.clone())
            .collect();
        let has_subnets = self.network.subnets.iter().any(|subnet| subnet.vpc == id);
        if has_subnets || groups.len() > 1 {
            return Err(dependency(&format!("The vpc '{id}'")));
        }
        mode.check_dry_run()?;
        for group in groups {
            self.network.groups.remove(&group);
        }
        self.network.vpcs.remove(id);
        Ok(())
    }

    /// Returns a VPC.
    ///
    /// # Errors
    ///
    /// `InvalidVpcID.NotFound`
    pub(crate) fn vpc(&self, id: &str) -> Result<&Vpc, Refusal> {
        let found = self.network.vpcs.get(id);
        found.ok_or_else(|| Refusal::not_found("InvalidVpcID.NotFound", "vpc", &[id]))
    }

    /// Creates a subnet.
    ///
    /// # Errors
    ///
    /// `InvalidVpcID.NotFound`, `InvalidSubnet.Range` for a range that is not in that of the VPC, `InvalidSubnet.Conflict` for
    /// one that another subnet has, `InvalidParameterValue` for an unknown zone.
    pub(crate) fn create_subnet(&mut self, subnet: Subnet, mode: Mode) -> Result<String, Refusal> {
        let vpc = self.vpc(&subnet.vpc)?;
        let cidr = subnet.cidr;
        if !vpc.cidr.contains(&cidr) || cidr.prefix_len() > 28 {
            let message = format!("The CIDR '{cidr}' is invalid.");
            return Err(Refusal::client("InvalidSubnet.Range", message));
        }
        let overlaps = |other: &Subnet| other.cidr.contains(&cidr) || cidr.contains(&other.cidr);
        if self
            .network
            .subnets
            .iter()
            .any(|other| other.vpc == subnet.vpc && overlaps(other))
        {
            let message = format!("The CIDR '{cidr}' conflicts with another subnet");
            return Err(Refusal::client("InvalidSubnet.Conflict", message));
        }
        if !self.core.knobs.zones.contains(&subnet.zone) {
            let message = format!(
                "Value ({}) for parameter availabilityZone is invalid. Subnets can currently only be created in the \
                 following availability zones: {}.",
                subnet.zone,
                self.core.knobs.zones.join(", ")
            );
            return Err(Refusal::invalid(message));
        }
        mode.check_dry_run()?;
        let (seq, id) = (self.next_seq(), self.ids.next("subnet"));
        self.network.subnets.put(
            seq,
            Subnet {
                id: id.clone(),
                ..subnet
            },
        );
        Ok(id)
    }

    /// Deletes a subnet.
    ///
    /// # Errors
    ///
    /// `InvalidSubnetID.NotFound`, or `DependencyViolation` while it has network interfaces.
    pub(crate) fn delete_subnet(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        self.subnet(id)?;
        if self.nics.values().any(|nic| nic.subnet == id) {
            return Err(dependency(&format!("The subnet '{id}'")));
        }
        mode.check_dry_run()?;
        self.network.subnets.remove(id);
        self.subnet_pools.remove(id);
        Ok(())
    }

    /// Creates a security group.
    ///
    /// # Errors
    ///
    /// `InvalidVpcID.NotFound`, `InvalidGroup.Duplicate`, or `InvalidParameterValue` for the name `default`.
    pub(crate) fn create_group(&mut self, group: NewGroup, mode: Mode) -> Result<String, Refusal> {
        self.vpc(&group.vpc)?;
        if group.name == "default" {
            let message = "Cannot use reserved security group name: default";
            return Err(Refusal::invalid(message));
        }
        let same = |other: &Group| other.vpc == group.vpc && other.name == group.name;
        if self.network.groups.iter().any(same) {
            let message = format!(
                "The security group '{}' already exists for VPC '{}'",
                group.name, group.vpc
            );
            return Err(Refusal::client("InvalidGroup.Duplicate", message));
        }
        mode.check_dry_run()?;
        Ok(self.add_group(group))
    }

    /// Adds a group with the rule of every new group, and returns its id.
    fn add_group(&mut self, group: NewGroup) -> String {
        let (seq, id) = (self.next_seq(), self.ids.next("sg"));
        let group = Group {
            rules: vec![self.everything_out()],
            id: id.clone(),
            name: group.name,
            description: group.description,
            vpc: group.vpc,
            tags: group.tags,
        };
        self.network.groups.put(seq, group);
        id
    }

    /// Deletes a security group.
    ///
    /// # Errors
    ///
    /// `InvalidGroup.NotFound`, `CannotDelete` for the default group of a VPC, or `DependencyViolation` while a network interface
    /// or a rule of another group uses it.
    pub(crate) fn delete_group(&mut self, id: &str, mode: Mode) -> Result<(), Refusal> {
        let group = self.group(id)?;
        if group.name == "default" {
            let message = format!(
                "the specified group: \"{id}\" name: \"default\" cannot be deleted by a user"
            );
            return Err(Refusal::client("CannotDelete", message));
        }
        let named = |other: &Group| other.id != id && other.rules.iter().any(|rule| rule.names(id));
        let used = self
            .nics
            .values()
            .any(|nic| nic.groups.iter().any(|group| group == id));
        if used || self.network.groups.iter().any(named) {
            let message = format!("resource {id} has a dependent object");
            return Err(Refusal::client("DependencyViolation", message));
        }
        mode.check_dry_run()?;
        self.network.groups.remove(id);
        Ok(())
    }

    /// Returns a security group.
    ///
    /// # Errors
    ///
    /// `InvalidGroupId.Malformed` or `InvalidGroup.NotFound`.
    pub(crate) fn group(&self, id: &str) -> Result<&Group, Refusal> {
        super::read::check_ids(&[id.to_owned()], "sg", "InvalidGroupId.Malformed")?;
        self.network.group(id).ok_or_else(|| group_not_found(id))
    }
}

/// A security group that is to be created.
#[derive(Debug)]
pub(crate) struct NewGroup {
    /// The name.
    pub(crate) name: String,
    /// The description.
    pub(crate) description: String,
    /// The VPC.
    pub(crate) vpc: String,
    /// The tags.
    pub(crate) tags: Tags,
}

/// Returns a VPC with the attributes of a new one. In the default VPC, instances have public names.
const fn new_vpc(id: String, cidr: Ipv4Net, tags: Tags, is_default: bool) -> Vpc {
    Vpc {
        id,
        cidr,
        tags,
        is_default,
        dns_support: true,
        dns_hostnames: is_default,
        usage_metrics: false,
    }
}

/// Returns the refusal of a group that does not exist.
pub(crate) fn group_not_found(name: &str) -> Refusal {
    let message = format!("The security group '{name}' does not exist");
    Refusal::client("InvalidGroup.NotFound", message)
}

/// Returns the refusal of a deletion while something depends on the resource.
fn dependency(what: &str) -> Refusal {
    let message = format!("{what} has dependencies and cannot be deleted.");
    Refusal::client("DependencyViolation", message)
}

/// Returns the items that are new or different, and the ids of those that are no longer there.
fn changed<T: Clone + PartialEq>(
    old: Option<&[T]>,
    new: &[T],
    id: impl Fn(&T) -> &String,
) -> (Vec<T>, Vec<String>) {
    let old = old.unwrap_or_default();
    let added = new.iter().filter(|item| !old.contains(item));
    let removed = old
        .iter()
        .filter(|item| !new.iter().any(|other| id(other) == id(item)));
    (
        added.cloned().collect(),
        removed.map(|item| id(item).clone()).collect(),
    )
}
