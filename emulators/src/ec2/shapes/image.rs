//! Shapes of images and snapshots.
//!
//! Fields are in the order of EC2's responses.

use serde::Serialize;

use super::Tag;
use crate::ec2::wire::xml::Set;

/// An image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Image {
    /// The id.
    pub(crate) image_id: String,
    /// The owner and the name.
    pub(crate) image_location: String,
    /// `pending` or `available`.
    pub(crate) image_state: &'static str,
    /// The owner's account.
    pub(crate) image_owner_id: String,
    /// When it was created; for images of the catalog, the start of the clock.
    pub(crate) creation_date: String,
    /// Whether it is an image of the catalog.
    pub(crate) is_public: bool,
    /// `x86_64` or `arm64`.
    pub(crate) architecture: String,
    /// Always `machine`.
    pub(crate) image_type: &'static str,
    /// `amazon` for Amazon's images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_owner_alias: Option<&'static str>,
    /// The name.
    pub(crate) name: String,
    /// The description, unless it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Always `ebs`.
    pub(crate) root_device_type: &'static str,
    /// The device name of the root volume.
    pub(crate) root_device_name: String,
    /// The root volume.
    pub(crate) block_device_mapping: Set<ImageDevice>,
    /// Always `hvm`.
    pub(crate) virtualization_type: &'static str,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
    /// Always `xen`.
    pub(crate) hypervisor: &'static str,
    /// Always true.
    pub(crate) ena_support: bool,
    /// Always `Linux/UNIX`.
    pub(crate) platform_details: &'static str,
    /// Always `RunInstances`.
    pub(crate) usage_operation: &'static str,
    /// The instance that it was created from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_instance_id: Option<String>,
}

/// A device of an image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageDevice {
    /// The device name.
    pub(crate) device_name: String,
    /// The initial volume.
    pub(crate) ebs: ImageVolume,
}

/// The initial volume of a device.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageVolume {
    /// The snapshot.
    pub(crate) snapshot_id: String,
    /// The size in GiB.
    pub(crate) volume_size: u32,
    /// Always true.
    pub(crate) delete_on_termination: bool,
    /// Always `gp3`.
    pub(crate) volume_type: &'static str,
    /// Always false.
    pub(crate) encrypted: bool,
}

/// A snapshot.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot {
    /// The id.
    pub(crate) snapshot_id: String,
    /// The volume.
    pub(crate) volume_id: String,
    /// `pending` or `completed`.
    pub(crate) status: &'static str,
    /// When it was created.
    pub(crate) start_time: String,
    /// `0%` or `100%`.
    pub(crate) progress: &'static str,
    /// The owner's account.
    pub(crate) owner_id: String,
    /// The size in GiB.
    pub(crate) volume_size: u32,
    /// The description.
    pub(crate) description: String,
    /// Always false.
    pub(crate) encrypted: bool,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
    /// Always `standard`.
    pub(crate) storage_tier: &'static str,
}
