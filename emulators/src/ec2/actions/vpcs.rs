//! VPCs, and what each of them has from the start: a main route table and a network ACL.

use ipnet::Ipv4Net;

use super::{Call, common::tag_trees};
use crate::ec2::{
    engine::{Engine, filter::Filtered, network::Vpc, record::Tags, table::Resource as _},
    error::Refusal,
    wire::tree::Tree,
};

/// Creates a VPC.
///
/// # Errors
///
/// `MissingParameter` without a range, `InvalidParameterValue` for one that is malformed, `InvalidVpc.Range`.
pub(super) fn create(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let cidr = cidr(call)?;
    let tags = call.tags_for("vpc")?;
    let mode = call.mode()?;
    call.finish()?;
    let id = engine.create_vpc(cidr, tags, mode)?;
    let created = Tree::default().tree("vpc", vpc_tree(engine, engine.vpc(&id)?));
    call.respond(&created)
}

/// Parses the parameter `CidrBlock`.
pub(super) fn cidr(call: &Call<'_>) -> Result<Ipv4Net, Refusal> {
    let text = call.root().required("CidrBlock")?;
    text.parse().map_err(|_| {
        Refusal::invalid(format!(
            "Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block."
        ))
    })
}

/// Deletes a VPC.
///
/// # Errors
///
/// `InvalidVpcID.NotFound` or `DependencyViolation`.
pub(super) fn delete(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let id = call.root().required("VpcId")?;
    let mode = call.mode()?;
    call.finish()?;
    engine.delete_vpc(&id, mode)?;
    call.success()
}

/// Describes VPCs by id and filters.
///
/// # Errors
///
/// `InvalidVpcID.NotFound`
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let all: Vec<Vpc> = engine.network.vpcs.iter().cloned().collect();
    let missing = |id: &str| Refusal::not_found("InvalidVpcID.NotFound", "vpc", &[id]);
    let (found, next) = call.select(engine, all, ("VpcId", |vpc| vpc.id()), missing)?;
    call.respond_list(
        "vpcSet",
        found.iter().map(|vpc| vpc_tree(engine, vpc)),
        next,
    )
}

/// Returns a VPC as EC2 returns it.
fn vpc_tree(engine: &Engine, vpc: &Vpc) -> Tree {
    let state = Tree::default().text("state", "associated");
    let association = Tree::default()
        .text("associationId", related("vpc-cidr-assoc", vpc))
        .text("cidrBlock", vpc.cidr)
        .tree("cidrBlockState", state);
    Tree::default()
        .text("vpcId", &vpc.id)
        .text("ownerId", &engine.core.knobs.account)
        .text("state", "available")
        .text("cidrBlock", vpc.cidr)
        .set("cidrBlockAssociationSet", [association])
        .text("dhcpOptionsId", DHCP_OPTIONS)
        .text("instanceTenancy", "default")
        .text("isDefault", vpc.is_default)
        .set("tagSet", tag_trees(&vpc.tags))
}

/// The DHCP options of every VPC.
const DHCP_OPTIONS: &str = "dopt-00000000000000001";

/// Returns the id of something that belongs to a VPC, with the digits of the VPC's own.
fn related(prefix: &str, vpc: &Vpc) -> String {
    let digits = vpc.id.split_once('-').map_or("", |(_, digits)| digits);
    format!("{prefix}-{digits}")
}

/// Returns one attribute of a VPC.
///
/// # Errors
///
/// `InvalidVpcID.NotFound`, or `InvalidParameterValue` for an unknown attribute.
pub(super) fn describe_attribute(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (id, name) = (root.required("VpcId")?, root.required("Attribute")?);
    call.finish_read()?;
    let vpc = engine.vpc(&id)?;
    let (name, on) = match name.as_str() {
        "enableDnsSupport" => ("enableDnsSupport", vpc.dns_support),
        "enableDnsHostnames" => ("enableDnsHostnames", vpc.dns_hostnames),
        "enableNetworkAddressUsageMetrics" => {
            ("enableNetworkAddressUsageMetrics", vpc.usage_metrics)
        }
        other => {
            let message = format!("Value ({other}) for parameter attribute is invalid.");
            return Err(Refusal::invalid(message));
        }
    };
    let value = Tree::default().text("value", on);
    call.respond(&Tree::default().text("vpcId", &vpc.id).tree(name, value))
}

/// Changes one attribute of a VPC.
///
/// # Errors
///
/// `InvalidVpcID.NotFound`, or `InvalidParameterCombination` unless exactly one attribute is given.
pub(super) fn modify(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let id = root.required("VpcId")?;
    let value = |name: &str| root.scope(name).flag("Value");
    let (support, hostnames, metrics) = (
        value("EnableDnsSupport")?,
        value("EnableDnsHostnames")?,
        value("EnableNetworkAddressUsageMetrics")?,
    );
    let mode = call.mode()?;
    call.finish()?;
    if [support, hostnames, metrics].iter().flatten().count() != 1 {
        let message = "Exactly one attribute must be given.";
        return Err(Refusal::combination(message));
    }
    engine.vpc(&id)?;
    mode.check_dry_run()?;
    if let Some(vpc) = engine.network.vpcs.get_mut(&id) {
        vpc.dns_support = support.unwrap_or(vpc.dns_support);
        vpc.dns_hostnames = hostnames.unwrap_or(vpc.dns_hostnames);
        vpc.usage_metrics = metrics.unwrap_or(vpc.usage_metrics);
    }
    call.success()
}

/// The main route table or the default ACL of a VPC, as its filters see it.
struct Part {
    /// Its id.
    id: String,
    /// The VPC.
    vpc: Vpc,
}

impl Filtered for Part {
    /// The filters of route tables and network ACLs.
    const NAMES: &'static [&'static str] = &[
        "association.main",
        "association.subnet-id",
        "default",
        "network-acl-id",
        "route-table-id",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "association.main" | "default" => vec!["true".to_owned()],
            "network-acl-id" | "route-table-id" => vec![self.id.clone()],
            "vpc-id" => vec![self.vpc.id.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}

/// Returns one part of each VPC.
fn parts(engine: &Engine, prefix: &str) -> Vec<Part> {
    let part = |vpc: &Vpc| Part {
        id: related(prefix, vpc),
        vpc: vpc.clone(),
    };
    engine.network.vpcs.iter().map(part).collect()
}

/// Describes the main route table of each VPC. There are no others.
///
/// # Errors
///
/// `InvalidRouteTableID.NotFound`
pub(super) fn route_tables(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let missing =
        |id: &str| Refusal::not_found("InvalidRouteTableID.NotFound", "routeTable", &[id]);
    let (found, next) = call.select(
        engine,
        parts(engine, "rtb"),
        ("RouteTableId", |part| &part.id),
        missing,
    )?;
    let table = |Part { id, vpc }: &Part| {
        let route = Tree::default()
            .text("destinationCidrBlock", vpc.cidr)
            .text("gatewayId", "local")
            .text("state", "active")
            .text("origin", "CreateRouteTable");
        let association = Tree::default()
            .text("routeTableAssociationId", related("rtbassoc", vpc))
            .text("routeTableId", id)
            .text("main", true)
            .tree(
                "associationState",
                Tree::default().text("state", "associated"),
            );
        Tree::default()
            .text("routeTableId", id)
            .text("vpcId", &vpc.id)
            .text("ownerId", &engine.core.knobs.account)
            .set("routeSet", [route])
            .set("associationSet", [association])
            .set("propagatingVgwSet", [])
            .set("tagSet", [])
    };
    call.respond_list("routeTableSet", found.iter().map(table), next)
}

/// Describes the default network ACL of each VPC, which allows everything. There are no others.
///
/// # Errors
///
/// `InvalidNetworkAclID.NotFound`
pub(super) fn acls(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let missing =
        |id: &str| Refusal::not_found("InvalidNetworkAclID.NotFound", "networkAcl", &[id]);
    let (found, next) = call.select(
        engine,
        parts(engine, "acl"),
        ("NetworkAclId", |part| &part.id),
        missing,
    )?;
    let entry = |egress: bool, number: u16, action: &str| {
        Tree::default()
            .text("ruleNumber", number)
            .text("protocol", "-1")
            .text("ruleAction", action)
            .text("egress", egress)
            .text("cidrBlock", "0.0.0.0/0")
    };
    let acl = |Part { id, vpc }: &Part| {
        let entries = [true, false]
            .into_iter()
            .flat_map(|egress| [entry(egress, 100, "allow"), entry(egress, 32_767, "deny")]);
        let subnets = engine
            .network
            .subnets
            .iter()
            .filter(|subnet| subnet.vpc == vpc.id);
        let association = |subnet: &crate::ec2::catalog::Subnet| {
            let digits = subnet.id.split_once('-').map_or("", |(_, digits)| digits);
            Tree::default()
                .text("networkAclAssociationId", format!("aclassoc-{digits}"))
                .text("networkAclId", id)
                .text("subnetId", &subnet.id)
        };
        Tree::default()
            .text("networkAclId", id)
            .text("vpcId", &vpc.id)
            .text("ownerId", &engine.core.knobs.account)
            .text("default", true)
            .set("entrySet", entries)
            .set("associationSet", subnets.map(association))
            .set("tagSet", [])
    };
    call.respond_list("networkAclSet", found.iter().map(acl), next)
}

impl Filtered for Vpc {
    /// The filters that the emulator has for VPCs.
    const NAMES: &'static [&'static str] = &[
        "cidr",
        "cidr-block",
        "cidr-block-association.cidr-block",
        "cidrBlock",
        "dhcp-options-id",
        "is-default",
        "isDefault",
        "state",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "cidr" | "cidr-block" | "cidrBlock" | "cidr-block-association.cidr-block" => {
                vec![self.cidr.to_string()]
            }
            "dhcp-options-id" => vec![DHCP_OPTIONS.to_owned()],
            "is-default" | "isDefault" => vec![self.is_default.to_string()],
            "state" => vec!["available".to_owned()],
            "vpc-id" => vec![self.id.clone()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
