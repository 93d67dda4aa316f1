//! Zones, subnets and security groups.

use serde::Serialize;

use super::Tag;
use crate::ec2::wire::xml::Set;

/// An availability zone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Zone {
    pub(crate) zone_name: String,
    pub(crate) zone_state: &'static str,
    pub(crate) region_name: String,
    pub(crate) zone_id: String,
    pub(crate) group_name: String,
    pub(crate) network_border_group: String,
    pub(crate) zone_type: &'static str,
    pub(crate) opt_in_status: &'static str,
    pub(crate) message_set: Set<()>,
}

/// A subnet.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "EC2 has each of them as a bool element"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subnet {
    pub(crate) subnet_id: String,
    pub(crate) subnet_arn: String,
    pub(crate) state: &'static str,
    pub(crate) owner_id: String,
    pub(crate) vpc_id: &'static str,
    pub(crate) cidr_block: String,
    pub(crate) available_ip_address_count: u64,
    pub(crate) availability_zone: String,
    pub(crate) availability_zone_id: String,
    pub(crate) default_for_az: bool,
    pub(crate) map_public_ip_on_launch: bool,
    pub(crate) assign_ipv6_address_on_creation: bool,
    pub(crate) ipv6_native: bool,
    pub(crate) private_dns_name_options_on_launch: DnsOptions,
    pub(crate) tag_set: Set<Tag>,
}

/// The DNS name options of a subnet's instances.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DnsOptions {
    pub(crate) hostname_type: &'static str,
    pub(crate) enable_resource_name_dns_a_record: bool,
    #[serde(rename = "enableResourceNameDnsAAAARecord")]
    pub(crate) enable_resource_name_dns_aaaa_record: bool,
}

/// A security group. No packets are filtered, so it has the rule of every new group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecurityGroup {
    pub(crate) owner_id: String,
    pub(crate) security_group_arn: String,
    pub(crate) group_id: String,
    pub(crate) group_name: String,
    pub(crate) group_description: String,
    pub(crate) vpc_id: &'static str,
    pub(crate) ip_permissions: Set<()>,
    pub(crate) ip_permissions_egress: Set<Permission>,
    pub(crate) tag_set: Set<Tag>,
}

/// A rule of a security group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Permission {
    pub(crate) ip_protocol: &'static str,
    pub(crate) ip_ranges: Set<IpRange>,
}

/// A range of addresses.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IpRange {
    pub(crate) cidr_ip: &'static str,
}

impl Permission {
    /// Allows all traffic to all destinations.
    pub(crate) fn everything() -> Self {
        Self {
            ip_protocol: "-1",
            ip_ranges: [IpRange {
                cidr_ip: "0.0.0.0/0",
            }]
            .into_iter()
            .collect(),
        }
    }
}
