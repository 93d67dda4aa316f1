//! Volumes and network interfaces.

use serde::Serialize;

use super::{Group, Tag};
use crate::ec2::wire::xml::Set;

/// A volume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) volume_id: String,
    pub(crate) size: u32,
    pub(crate) snapshot_id: String,
    pub(crate) availability_zone: String,
    pub(crate) status: &'static str,
    pub(crate) create_time: String,
    pub(crate) attachment_set: Set<VolumeAttachment>,
    pub(crate) tag_set: Set<Tag>,
    pub(crate) volume_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iops: Option<u32>,
    pub(crate) encrypted: bool,
    pub(crate) multi_attach_enabled: bool,
}

/// The attachment of a volume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VolumeAttachment {
    pub(crate) volume_id: String,
    pub(crate) instance_id: String,
    pub(crate) device: String,
    pub(crate) status: &'static str,
    pub(crate) attach_time: String,
    pub(crate) delete_on_termination: bool,
}

/// A network interface, in its own list and as part of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkInterface {
    pub(crate) network_interface_id: String,
    pub(crate) subnet_id: String,
    pub(crate) vpc_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) availability_zone: Option<String>,
    pub(crate) description: String,
    pub(crate) owner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requester_managed: Option<bool>,
    pub(crate) status: &'static str,
    pub(crate) mac_address: String,
    pub(crate) private_ip_address: String,
    pub(crate) private_dns_name: String,
    pub(crate) source_dest_check: bool,
    pub(crate) group_set: Set<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attachment: Option<NicAttachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) association: Option<Association>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag_set: Option<Set<Tag>>,
    pub(crate) private_ip_addresses_set: Set<PrivateAddress>,
    pub(crate) interface_type: &'static str,
}

/// The attachment of a network interface.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NicAttachment {
    pub(crate) attachment_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_owner_id: Option<String>,
    pub(crate) device_index: u32,
    pub(crate) status: &'static str,
    pub(crate) attach_time: String,
    pub(crate) delete_on_termination: bool,
    pub(crate) network_card_index: u32,
}

/// A public address.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Association {
    pub(crate) public_ip: String,
    pub(crate) public_dns_name: String,
    pub(crate) ip_owner_id: &'static str,
}

/// A private address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrivateAddress {
    pub(crate) private_ip_address: String,
    pub(crate) private_dns_name: String,
    pub(crate) primary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) association: Option<Association>,
}
