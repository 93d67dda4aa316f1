//! Images.

use serde::Serialize;

use super::Tag;
use crate::ec2::wire::xml::Set;

/// An image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) image_id: String,
    pub(crate) image_location: String,
    pub(crate) image_state: &'static str,
    pub(crate) image_owner_id: String,
    pub(crate) creation_date: String,
    pub(crate) is_public: bool,
    pub(crate) architecture: String,
    pub(crate) image_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_owner_alias: Option<&'static str>,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) root_device_type: &'static str,
    pub(crate) root_device_name: String,
    pub(crate) block_device_mapping: Set<ImageDevice>,
    pub(crate) virtualization_type: &'static str,
    pub(crate) tag_set: Set<Tag>,
    pub(crate) hypervisor: &'static str,
    pub(crate) ena_support: bool,
    pub(crate) platform_details: &'static str,
    pub(crate) usage_operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_instance_id: Option<String>,
}

/// A device of an image.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageDevice {
    pub(crate) device_name: String,
    pub(crate) ebs: ImageVolume,
}

/// The initial volume of a device.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageVolume {
    pub(crate) snapshot_id: String,
    pub(crate) volume_size: u32,
    pub(crate) delete_on_termination: bool,
    pub(crate) volume_type: &'static str,
    pub(crate) encrypted: bool,
}
