//! Subnets.

use ipnet::Ipv4Net;

use super::{Call, common::tag_trees, vpcs, zones::zone_id};
use crate::ec2::{
    catalog::Subnet,
    engine::{Engine, filter::Filtered, record::Tags},
    error::Refusal,
    wire::tree::Tree,
};

/// A subnet with what follows from the rest of the region.
struct Listed {
    /// The subnet.
    subnet: Subnet,
    /// Whether launches without a subnet use it in its zone.
    is_default: bool,
    /// The id of the zone.
    zone_id: String,
    /// How many addresses are free.
    free: u64,
}

/// Returns a subnet with what follows from the rest of the region.
fn listed(engine: &mut Engine, subnet: Subnet) -> Listed {
    let default = engine.default_subnet(&subnet.zone);
    Listed {
        is_default: default.is_some_and(|default| default.id == subnet.id),
        zone_id: zone_id(engine, &subnet.zone),
        free: engine.free_addresses(&subnet),
        subnet,
    }
}

/// Describes subnets by id and filters.
///
/// # Errors
///
/// `InvalidSubnetID.NotFound` for a missing id, `InvalidParameterValue` for an unknown filter.
pub(super) fn subnets(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let all: Vec<Subnet> = engine.network.subnets.iter().cloned().collect();
    let all: Vec<Listed> = all
        .into_iter()
        .map(|subnet| listed(engine, subnet))
        .collect();
    let missing = |id: &str| Refusal::not_found("InvalidSubnetID.NotFound", "subnet", &[id]);
    let by_id: (_, fn(&Listed) -> &str) = ("SubnetId", |listed| &listed.subnet.id);
    let (found, next) = call.select(engine, all, by_id, missing)?;
    call.respond_list(
        "subnetSet",
        found.iter().map(|listed| tree(engine, listed)),
        next,
    )
}

/// Returns a subnet as EC2 returns it.
fn tree(engine: &Engine, listed: &Listed) -> Tree {
    let (account, region) = (&engine.core.knobs.account, &engine.core.knobs.region);
    let subnet = &listed.subnet;
    let dns = Tree::default()
        .text("hostnameType", "ip-name")
        .text("enableResourceNameDnsARecord", false)
        .text("enableResourceNameDnsAAAARecord", false);
    Tree::default()
        .text("subnetId", &subnet.id)
        .text(
            "subnetArn",
            format!("arn:aws:ec2:{region}:{account}:subnet/{}", subnet.id),
        )
        .text("state", "available")
        .text("ownerId", account)
        .text("vpcId", &subnet.vpc)
        .text("cidrBlock", subnet.cidr)
        .set("ipv6CidrBlockAssociationSet", [])
        .text("availableIpAddressCount", listed.free)
        .text("availabilityZone", &subnet.zone)
        .text("availabilityZoneId", &listed.zone_id)
        .text("defaultForAz", listed.is_default)
        .text("mapPublicIpOnLaunch", subnet.public)
        .text("mapCustomerOwnedIpOnLaunch", false)
        .text("assignIpv6AddressOnCreation", false)
        .text("enableDns64", false)
        .text("ipv6Native", false)
        .tree("privateDnsNameOptionsOnLaunch", dns)
        .set("tagSet", tag_trees(&subnet.tags))
}

/// Creates a subnet, by default in the first zone.
///
/// # Errors
///
/// `MissingParameter`, and those of the engine.
pub(super) fn create_subnet(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let vpc = root.required("VpcId")?;
    let cidr: Ipv4Net = vpcs::cidr(call)?;
    let zone = root
        .text("AvailabilityZone")
        .filter(|zone| !zone.is_empty());
    let wanted = root.text("AvailabilityZoneId").filter(|id| !id.is_empty());
    let zones = &engine.core.knobs.zones;
    let by_id = wanted.map(|id| {
        let found = zones.iter().find(|zone| zone_id(engine, zone) == id);
        found.cloned().unwrap_or(id)
    });
    let zone = zone.or(by_id).or_else(|| zones.first().cloned());
    let tags = call.tags_for("subnet")?;
    let mode = call.mode()?;
    call.finish()?;
    let subnet = Subnet {
        id: String::new(),
        zone: zone.unwrap_or_default(),
        cidr: cidr.trunc(),
        public: false,
        tags,
        vpc,
    };
    let id = engine.create_subnet(subnet, mode)?;
    let subnet = engine.subnet(&id)?.clone();
    let listed = listed(engine, subnet);
    call.respond(&Tree::default().tree("subnet", tree(engine, &listed)))
}

/// Deletes a subnet.
///
/// # Errors
///
/// `InvalidSubnetID.NotFound` or `DependencyViolation`.
pub(super) fn delete_subnet(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = call.root().required("SubnetId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_subnet(&id, mode)?;
    call.success()
}

/// Changes whether instances of a subnet get public addresses.
///
/// # Errors
///
/// `InvalidSubnetID.NotFound`
pub(super) fn modify_subnet(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("SubnetId")?;
    let public = root.scope("MapPublicIpOnLaunch").flag("Value")?;
    call.finish()?;
    engine.subnet(&id)?;
    if let (Some(subnet), Some(public)) = (engine.network.subnets.get_mut(&id), public) {
        subnet.public = public;
    }
    call.success()
}

/// The filters of subnets, some of which EC2 has under several names.
impl Filtered for Listed {
    /// The filters that the emulator has for subnets.
    const NAMES: &'static [&'static str] = &[
        "availability-zone",
        "availability-zone-id",
        "availabilityZone",
        "availabilityZoneId",
        "available-ip-address-count",
        "cidr",
        "cidr-block",
        "cidrBlock",
        "default-for-az",
        "defaultForAz",
        "map-public-ip-on-launch",
        "state",
        "subnet-id",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        let subnet = &self.subnet;
        match name {
            "availability-zone" | "availabilityZone" => vec![subnet.zone.clone()],
            "availability-zone-id" | "availabilityZoneId" => vec![self.zone_id.clone()],
            "available-ip-address-count" => vec![self.free.to_string()],
            "cidr" | "cidr-block" | "cidrBlock" => vec![subnet.cidr.to_string()],
            "default-for-az" | "defaultForAz" => vec![self.is_default.to_string()],
            "map-public-ip-on-launch" => vec![subnet.public.to_string()],
            "state" => vec!["available".to_owned()],
            "subnet-id" => vec![subnet.id.clone()],
            "vpc-id" => vec![subnet.vpc.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.subnet.tags)
    }
}
