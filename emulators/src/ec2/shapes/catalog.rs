//! Shapes of zones, subnets and security groups.
//!
//! Fields are in the order of EC2's responses.

use serde::Serialize;

use super::Tag;
use crate::ec2::wire::xml::Set;

/// An availability zone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Zone {
    /// The name, for example `us-east-1a`.
    pub(crate) zone_name: String,
    /// Always `available`.
    pub(crate) zone_state: &'static str,
    /// The region.
    pub(crate) region_name: String,
    /// The id, which is the same in all accounts, for example `use1-az1`.
    pub(crate) zone_id: String,
    /// The zone group: the region.
    pub(crate) group_name: String,
    /// The border group: the region.
    pub(crate) network_border_group: String,
    /// Always `availability-zone`.
    pub(crate) zone_type: &'static str,
    /// Always `opt-in-not-required`.
    pub(crate) opt_in_status: &'static str,
    /// Always empty.
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
    /// The id.
    pub(crate) subnet_id: String,
    /// The ARN, from region, account and id.
    pub(crate) subnet_arn: String,
    /// Always `available`.
    pub(crate) state: &'static str,
    /// The account of the knobs.
    pub(crate) owner_id: String,
    /// The one VPC.
    pub(crate) vpc_id: &'static str,
    /// The address range.
    pub(crate) cidr_block: String,
    /// How many addresses are free.
    pub(crate) available_ip_address_count: u64,
    /// The name of the zone.
    pub(crate) availability_zone: String,
    /// The id of the zone.
    pub(crate) availability_zone_id: String,
    /// Whether it is the first subnet of its zone.
    pub(crate) default_for_az: bool,
    /// Whether instances get a public address by default.
    pub(crate) map_public_ip_on_launch: bool,
    /// Always false: there is no IPv6.
    pub(crate) assign_ipv6_address_on_creation: bool,
    /// Always false: there is no IPv6.
    pub(crate) ipv6_native: bool,
    /// The DNS name options of its instances.
    pub(crate) private_dns_name_options_on_launch: DnsOptions,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
}

/// The DNS name options of a subnet's instances.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DnsOptions {
    /// Always `ip-name`.
    pub(crate) hostname_type: &'static str,
    /// Always false.
    pub(crate) enable_resource_name_dns_a_record: bool,
    /// Always false. EC2 writes its name in a form that needs a rename.
    #[serde(rename = "enableResourceNameDnsAAAARecord")]
    pub(crate) enable_resource_name_dns_aaaa_record: bool,
}

/// A security group. No packets are filtered, so it has the rule of every new group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecurityGroup {
    /// The account of the knobs.
    pub(crate) owner_id: String,
    /// The ARN, from region, account and id.
    pub(crate) security_group_arn: String,
    /// The id.
    pub(crate) group_id: String,
    /// The name.
    pub(crate) group_name: String,
    /// The description; may be empty.
    pub(crate) group_description: String,
    /// The one VPC.
    pub(crate) vpc_id: &'static str,
    /// The rules for incoming traffic: none.
    pub(crate) ip_permissions: Set<()>,
    /// The rules for outgoing traffic: one that allows everything.
    pub(crate) ip_permissions_egress: Set<Permission>,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
}

/// A rule of a security group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Permission {
    /// The protocol; `-1` means all.
    pub(crate) ip_protocol: &'static str,
    /// The address ranges that it allows.
    pub(crate) ip_ranges: Set<IpRange>,
}

/// A range of addresses.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IpRange {
    /// The range, for example `0.0.0.0/0`.
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
