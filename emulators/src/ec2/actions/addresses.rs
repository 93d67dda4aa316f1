//! Elastic addresses.

use super::{Call, common::tag_trees, view::public_name};
use crate::ec2::{
    engine::{Engine, address::Address, filter::Filtered, record::Tags, table::Resource as _},
    error::Refusal,
    wire::tree::Tree,
};

/// Allocates an address.
///
/// # Errors
///
/// `AddressLimitExceeded`
pub(super) fn allocate(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let tags = call.tags_for("elastic-ip")?;
    let mode = call.mode()?;
    call.finish()?;
    let address = engine.allocate_address(tags, mode)?;
    let region = &engine.core.knobs.region;
    let allocated = Tree::default()
        .text("publicIp", address.ip)
        .text("allocationId", &address.id)
        .text("publicIpv4Pool", "amazon")
        .text("networkBorderGroup", region)
        .text("domain", "vpc");
    call.respond(&allocated)
}

/// Returns the allocation id that a call names, directly or by the address.
///
/// # Errors
///
/// `MissingParameter` or `InvalidAddress.NotFound`.
fn allocation(call: &Call<'_>, engine: &Engine) -> Result<String, Refusal> {
    let root = call.root();
    if let Some(id) = root.text("AllocationId") {
        return Ok(id);
    }
    let text = root
        .text("PublicIp")
        .ok_or_else(|| Refusal::missing("AllocationId"))?;
    let mut addresses = engine.addresses.iter();
    let found = addresses.find(|address| address.ip.to_string() == text);
    found
        .map(|address| address.id.clone())
        .ok_or_else(|| address_not_found(&text))
}

/// Returns the refusal of an address that is not allocated.
fn address_not_found(address: &str) -> Refusal {
    let message = format!("Address '{address}' not found.");
    Refusal::client("InvalidAddress.NotFound", message)
}

/// Releases an address.
///
/// # Errors
///
/// `InvalidAllocationID.NotFound` or `InvalidIPAddress.InUse`.
pub(super) fn release(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = allocation(call, engine)?;
    let _group = call.root().text("NetworkBorderGroup");
    let mode = call.mode()?;
    call.finish()?;
    engine.release_address(&id, mode)?;
    call.success()
}

/// Associates an address with an instance, named directly or by its network interface.
///
/// # Errors
///
/// `MissingParameter`, and those of the engine.
pub(super) fn associate(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = allocation(call, engine)?;
    let (instance, nic) = (root.text("InstanceId"), root.text("NetworkInterfaceId"));
    let again = root.flag("AllowReassociation")?.unwrap_or(false);
    let private = root
        .text("PrivateIpAddress")
        .filter(|private| !private.is_empty());
    let mode = call.mode()?;
    call.finish()?;
    let instance = match (instance, nic) {
        (Some(instance), _) => instance,
        (None, Some(nic)) => {
            let missing = || crate::ec2::engine::tags::nic_not_found(&nic);
            let found = engine.nic(&nic).ok_or_else(missing)?;
            found.attached_to.clone().ok_or_else(|| {
                Refusal::unsupported(
                    "An address of a network interface without an instance is not emulated.",
                )
            })?
        }
        (None, None) => return Err(Refusal::missing("InstanceId")),
    };
    let own = engine
        .instance(&instance)
        .map(|found| found.fixed.private_ip.to_string());
    if private.is_some_and(|private| own.is_some_and(|own| own != private)) {
        let message = "The private IP address is not that of the instance.";
        return Err(Refusal::invalid(message));
    }
    let association = engine.associate_address(&id, &instance, again, mode)?;
    let associated = Tree::default()
        .text("return", true)
        .text("associationId", association);
    call.respond(&associated)
}

/// Ends an association, named directly or by the address.
///
/// # Errors
///
/// `MissingParameter` or `InvalidAssociationID.NotFound`.
pub(super) fn disassociate(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let association = match root.text("AssociationId") {
        Some(association) => association,
        None => {
            let id = allocation(call, engine)?;
            let address = engine.address(&id)?;
            let association = address.association.as_ref().map(|(id, _)| id.clone());
            association.ok_or_else(|| address_not_found(&address.ip.to_string()))?
        }
    };
    let mode = call.mode()?;
    call.finish()?;
    engine.disassociate_address(&association, mode)?;
    call.success()
}

/// An address with what follows from its instance.
struct Listed {
    /// The address.
    address: Address,
    /// The network interface of its instance, and the private address.
    nic: Option<(String, String)>,
}

/// Returns all addresses that a call names by `PublicIp`, or all.
///
/// # Errors
///
/// `InvalidAddress.NotFound`
fn named(call: &Call<'_>, engine: &Engine) -> Result<Vec<Listed>, Refusal> {
    let names = call.root().list("PublicIp");
    let listed = |address: &Address| {
        let instance = address.association.as_ref().map(|(_, instance)| instance);
        let nics = instance.map(|instance| engine.nics_of(instance));
        let nic = nics.and_then(|nics| {
            let (_, nic) = nics.first()?;
            Some((nic.id.clone(), nic.private_ip.to_string()))
        });
        Listed {
            address: address.clone(),
            nic,
        }
    };
    let all = engine.addresses.iter();
    let all = all.filter(|address| names.is_empty() || names.contains(&address.ip.to_string()));
    let all: Vec<Listed> = all.map(listed).collect();
    let known = |name: &&String| {
        all.iter()
            .any(|listed| listed.address.ip.to_string() == **name)
    };
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(address_not_found(name)),
        None => Ok(all),
    }
}

/// Returns the refusal of an allocation id that does not exist.
fn allocation_not_found(id: &str) -> Refusal {
    Refusal::not_found("InvalidAllocationID.NotFound", "allocation", &[id])
}

/// Describes elastic addresses by address, allocation id and filters.
///
/// # Errors
///
/// `InvalidAddress.NotFound` or `InvalidAllocationID.NotFound` for any named address that is not allocated,
/// `InvalidParameterValue` for an unknown filter.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let all = named(call, engine)?;
    let by_id: (_, fn(&Listed) -> &str) = ("AllocationId", |listed| listed.address.id());
    let (found, _) = call.select(engine, all, by_id, allocation_not_found)?;
    let (account, region) = (&engine.core.knobs.account, &engine.core.knobs.region);
    let tree = |Listed { address, nic }: &Listed| {
        let association = address.association.as_ref();
        Tree::default()
            .text("publicIp", address.ip)
            .text("allocationId", &address.id)
            .text("domain", "vpc")
            .some("instanceId", association.map(|(_, instance)| instance))
            .some("associationId", association.map(|(id, _)| id))
            .some("networkInterfaceId", nic.as_ref().map(|(id, _)| id))
            .some("networkInterfaceOwnerId", nic.as_ref().map(|_| account))
            .some("privateIpAddress", nic.as_ref().map(|(_, private)| private))
            .text("publicIpv4Pool", "amazon")
            .text("networkBorderGroup", region)
            .set("tagSet", tag_trees(&address.tags))
    };
    call.respond_list("addressesSet", found.iter().map(tree), None)
}

/// Describes the domain names of addresses. None has one, so an address is named without it.
///
/// # Errors
///
/// `InvalidAllocationID.NotFound`
pub(super) fn describe_attribute(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    call.root().choice("Attribute", &[("domain-name", ())])?;
    let all = named(call, engine)?;
    let by_id: (_, fn(&Listed) -> &str) = ("AllocationId", |listed| listed.address.id());
    let (found, next) = call.select(engine, all, by_id, allocation_not_found)?;
    let tree = |Listed { address, .. }: &Listed| {
        Tree::default()
            .text("publicIp", address.ip)
            .text("allocationId", &address.id)
            .text("ptrRecord", format!("{}.", public_name(address.ip)))
    };
    call.respond_list("addressSet", found.iter().map(tree), next)
}

impl Filtered for Listed {
    /// The filters that EC2 has for addresses.
    const NAMES: &'static [&'static str] = &[
        "allocation-id",
        "association-id",
        "domain",
        "instance-id",
        "network-interface-id",
        "private-ip-address",
        "public-ip",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let association = self.address.association.clone();
        let (id, instance) = association.unzip();
        let (nic, private) = self.nic.clone().unzip();
        match name {
            "allocation-id" => vec![self.address.id.clone()],
            "association-id" => id.into_iter().collect(),
            "domain" => vec!["vpc".to_owned()],
            "instance-id" => instance.into_iter().collect(),
            "network-interface-id" => nic.into_iter().collect(),
            "private-ip-address" => private.into_iter().collect(),
            "public-ip" => vec![self.address.ip.to_string()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.address.tags)
    }
}
