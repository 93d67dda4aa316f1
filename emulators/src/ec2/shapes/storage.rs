//! Shapes of volumes and network interfaces.
//!
//! Fields are in the order of EC2's responses.

use serde::Serialize;

use super::{Group, Tag};
use crate::ec2::wire::xml::Set;

/// A volume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    /// The id.
    pub(crate) volume_id: String,
    /// The size in GiB.
    pub(crate) size: u32,
    /// The snapshot; empty if there is none.
    pub(crate) snapshot_id: String,
    /// The zone.
    pub(crate) availability_zone: String,
    /// `in-use` or `available`.
    pub(crate) status: &'static str,
    /// When it was created.
    pub(crate) create_time: String,
    /// The attachment, if there is one.
    pub(crate) attachment_set: Set<VolumeAttachment>,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
    /// The volume type, for example `gp3`.
    pub(crate) volume_type: String,
    /// The IOPS, for types that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iops: Option<u32>,
    /// The throughput in MiB per second, for types that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) throughput: Option<u32>,
    /// Whether it is encrypted.
    pub(crate) encrypted: bool,
    /// Always false.
    pub(crate) multi_attach_enabled: bool,
}

/// The attachment of a volume.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VolumeAttachment {
    /// The volume.
    pub(crate) volume_id: String,
    /// The instance.
    pub(crate) instance_id: String,
    /// The device name.
    pub(crate) device: String,
    /// Always `attached`.
    pub(crate) status: &'static str,
    /// When it was attached.
    pub(crate) attach_time: String,
    /// Whether the volume is deleted with the instance.
    pub(crate) delete_on_termination: bool,
}

/// A network interface, in its own list and as part of an instance. Some elements are only in the
/// list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkInterface {
    /// The id.
    pub(crate) network_interface_id: String,
    /// The subnet.
    pub(crate) subnet_id: String,
    /// The VPC.
    pub(crate) vpc_id: String,
    /// The zone; only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) availability_zone: Option<String>,
    /// The description; may be empty.
    pub(crate) description: String,
    /// The account of the knobs.
    pub(crate) owner_id: String,
    /// Always false; only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requester_managed: Option<bool>,
    /// `in-use` or `available`.
    pub(crate) status: &'static str,
    /// The hardware address.
    pub(crate) mac_address: String,
    /// The private address.
    pub(crate) private_ip_address: String,
    /// The private DNS name.
    pub(crate) private_dns_name: String,
    /// Whether it receives only packets for its own addresses.
    pub(crate) source_dest_check: bool,
    /// The security groups.
    pub(crate) group_set: Set<Group>,
    /// The attachment, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attachment: Option<NicAttachment>,
    /// The public address, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) association: Option<Association>,
    /// The tags; only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag_set: Option<Set<Tag>>,
    /// The private address again, as a list.
    pub(crate) private_ip_addresses_set: Set<PrivateAddress>,
    /// Always `interface`.
    pub(crate) interface_type: &'static str,
}

/// The attachment of a network interface.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NicAttachment {
    /// The id of the attachment.
    pub(crate) attachment_id: String,
    /// The instance; only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_id: Option<String>,
    /// The account of the knobs; only in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_owner_id: Option<String>,
    /// Always 0.
    pub(crate) device_index: u32,
    /// Always `attached`.
    pub(crate) status: &'static str,
    /// When it was attached.
    pub(crate) attach_time: String,
    /// Whether the interface is deleted with the instance.
    pub(crate) delete_on_termination: bool,
    /// Always 0.
    pub(crate) network_card_index: u32,
}

/// A public address.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Association {
    /// The address.
    pub(crate) public_ip: String,
    /// The public DNS name.
    pub(crate) public_dns_name: String,
    /// Always `amazon`: there are no elastic addresses.
    pub(crate) ip_owner_id: &'static str,
}

/// A private address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrivateAddress {
    /// The address.
    pub(crate) private_ip_address: String,
    /// The private DNS name.
    pub(crate) private_dns_name: String,
    /// Always true.
    pub(crate) primary: bool,
    /// The public address, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) association: Option<Association>,
}
