//! DescribeSubnets and DescribeSecurityGroups.
//!
//! Both come from the knobs and never change by a call, except that launches take addresses of a
//! subnet.

use serde::Serialize;

use super::{Call, common::page_of, zones::zone_id};
use crate::ec2::{
    catalog::{SecurityGroup, Subnet, VPC},
    engine::{
        Engine,
        filter::{self, Filtered},
        read::check_ids,
        record::Tags,
    },
    error::Refusal,
    shapes::{catalog as shape, tag_set},
    wire::xml::Set,
};

/// The response of DescribeSubnets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Subnets {
    /// The subnets.
    subnet_set: Set<shape::Subnet>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes subnets by id and filters.
///
/// # Errors
///
/// `InvalidSubnetID.NotFound` for a missing id, `InvalidParameterValue` for an unknown filter.
pub(super) fn subnets(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let ids = call.root().list("SubnetId");
    let filters = call.filters()?;
    let (paging, _) = call.paging(engine)?;
    call.finish_read()?;
    filter::check::<Subnet>(&filters)?;
    let all = engine.core.knobs.subnets.clone();
    let unknown: Vec<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| !all.iter().any(|subnet| subnet.id == **id))
        .collect();
    if !unknown.is_empty() {
        return Err(Refusal::not_found(
            "InvalidSubnetID.NotFound",
            "subnet",
            &unknown,
        ));
    }
    let requested = |subnet: &Subnet| {
        (ids.is_empty() || ids.contains(&subnet.id)) && filter::passes(subnet, &filters)
    };
    let page = page_of(all, &paging, requested);
    call.respond(&Subnets {
        subnet_set: page
            .items
            .into_iter()
            .map(|subnet| subnet_shape(engine, subnet))
            .collect(),
        next_token: call.next_token(page.next),
    })
}

/// Returns a subnet as EC2 returns it, with its free addresses. The first subnet of a zone is the
/// zone's default.
fn subnet_shape(engine: &mut Engine, subnet: Subnet) -> shape::Subnet {
    let (account, region) = (engine.core.knobs.account.clone(), &engine.core.knobs.region);
    let first = engine
        .core
        .knobs
        .subnets
        .iter()
        .find(|other| other.zone == subnet.zone);
    shape::Subnet {
        subnet_arn: format!("arn:aws:ec2:{region}:{account}:subnet/{}", subnet.id),
        default_for_az: first.is_some_and(|first| first.id == subnet.id),
        state: "available",
        owner_id: account,
        vpc_id: VPC,
        cidr_block: subnet.cidr.to_string(),
        availability_zone_id: zone_id(engine, &subnet.zone),
        available_ip_address_count: engine.free_addresses(&subnet),
        availability_zone: subnet.zone,
        map_public_ip_on_launch: subnet.public,
        assign_ipv6_address_on_creation: false,
        ipv6_native: false,
        private_dns_name_options_on_launch: shape::DnsOptions {
            hostname_type: "ip-name",
            enable_resource_name_dns_a_record: false,
            enable_resource_name_dns_aaaa_record: false,
        },
        tag_set: tag_set(&subnet.tags),
        subnet_id: subnet.id,
    }
}

/// The response of DescribeSecurityGroups.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Groups {
    /// The security groups.
    security_group_info: Set<shape::SecurityGroup>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes security groups by id, name and filters.
///
/// # Errors
///
/// `InvalidGroup.NotFound` for a missing id or name, `InvalidGroupId.Malformed` for an id of
/// another form.
pub(super) fn groups(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let root = call.root();
    let (ids, names) = (root.list("GroupId"), root.list("GroupName"));
    let filters = call.filters()?;
    let (paging, _) = call.paging(engine)?;
    call.finish_read()?;
    check_ids(&ids, "sg", "InvalidGroupId.Malformed")?;
    filter::check::<SecurityGroup>(&filters)?;
    let all = engine.core.knobs.security_groups.clone();
    let missing = ids
        .iter()
        .find(|id| !all.iter().any(|group| group.id == **id))
        .or_else(|| {
            names
                .iter()
                .find(|name| !all.iter().any(|group| group.name == **name))
        });
    if let Some(missing) = missing {
        let message = format!("The security group '{missing}' does not exist");
        return Err(Refusal::client("InvalidGroup.NotFound", message));
    }
    let requested = |group: &SecurityGroup| {
        (ids.is_empty() || ids.contains(&group.id))
            && (names.is_empty() || names.contains(&group.name))
            && filter::passes(group, &filters)
    };
    let page = page_of(all, &paging, requested);
    let shapes = page.items.into_iter().map(|group| shape::SecurityGroup {
        owner_id: engine.core.knobs.account.clone(),
        security_group_arn: format!(
            "arn:aws:ec2:{}:{}:security-group/{}",
            engine.core.knobs.region, engine.core.knobs.account, group.id
        ),
        group_id: group.id,
        group_name: group.name,
        group_description: group.description,
        vpc_id: VPC,
        ip_permissions: Set::default(),
        ip_permissions_egress: [shape::Permission::everything()].into_iter().collect(),
        tag_set: tag_set(&group.tags),
    });
    call.respond(&Groups {
        security_group_info: shapes.collect(),
        next_token: call.next_token(page.next),
    })
}

/// The filters of subnets. All subnets are in the one VPC.
impl Filtered for Subnet {
    /// The filters that the emulator has for subnets.
    const NAMES: &'static [&'static str] = &[
        "availability-zone",
        "cidr-block",
        "map-public-ip-on-launch",
        "state",
        "subnet-id",
        "vpc-id",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "availability-zone" => vec![self.zone.clone()],
            "cidr-block" => vec![self.cidr.to_string()],
            "map-public-ip-on-launch" => vec![self.public.to_string()],
            "state" => vec!["available".to_owned()],
            "subnet-id" => vec![self.id.clone()],
            "vpc-id" => vec![VPC.to_owned()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}

/// The filters of security groups.
impl Filtered for SecurityGroup {
    /// The filters that the emulator has for security groups.
    const NAMES: &'static [&'static str] = &["description", "group-id", "group-name", "vpc-id"];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "description" => vec![self.description.clone()],
            "group-id" => vec![self.id.clone()],
            "group-name" => vec![self.name.clone()],
            "vpc-id" => vec![VPC.to_owned()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        Some(&self.tags)
    }
}
