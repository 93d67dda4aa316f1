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
    pub(crate) tag_set: Set<Tag>,
}

/// A security group. There are no rules: nothing is filtered here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecurityGroup {
    pub(crate) owner_id: String,
    pub(crate) group_id: String,
    pub(crate) group_name: String,
    pub(crate) group_description: String,
    pub(crate) vpc_id: &'static str,
    pub(crate) ip_permissions: Set<()>,
    pub(crate) ip_permissions_egress: Set<()>,
    pub(crate) tag_set: Set<Tag>,
}
