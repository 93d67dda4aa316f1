//! Instances and reservations.

use serde::Serialize;

use super::{Group, Tag, storage::NetworkInterface};
use crate::ec2::wire::xml::Set;

/// A reservation: the instances of one RunInstances call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reservation {
    pub(crate) reservation_id: String,
    pub(crate) owner_id: String,
    pub(crate) group_set: Set<Group>,
    pub(crate) instances_set: Set<Instance>,
}

/// A state by number and name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstanceState {
    pub(crate) code: u16,
    pub(crate) name: String,
}

/// Why an instance is in its state.
#[derive(Debug, Serialize)]
pub(crate) struct StateReason {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The placement of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placement {
    pub(crate) availability_zone: String,
    pub(crate) group_name: &'static str,
    pub(crate) tenancy: &'static str,
}

/// An element with only a state.
#[derive(Debug, Serialize)]
pub(crate) struct Monitoring {
    pub(crate) state: &'static str,
}

/// A device of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceMapping {
    pub(crate) device_name: String,
    pub(crate) ebs: EbsDevice,
}

/// The volume of a device.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EbsDevice {
    pub(crate) volume_id: String,
    pub(crate) status: &'static str,
    pub(crate) attach_time: String,
    pub(crate) delete_on_termination: bool,
}

/// An instance profile.
#[derive(Debug, Serialize)]
pub(crate) struct Profile {
    pub(crate) arn: String,
    pub(crate) id: String,
}

/// How an instance's metadata service behaves.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) state: &'static str,
    pub(crate) http_tokens: &'static str,
    pub(crate) http_put_response_hop_limit: u32,
    pub(crate) http_endpoint: &'static str,
    pub(crate) http_protocol_ipv6: &'static str,
    pub(crate) instance_metadata_tags: &'static str,
}

/// The processors of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CpuOptions {
    pub(crate) core_count: u32,
    pub(crate) threads_per_core: u32,
}

/// An instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    pub(crate) instance_id: String,
    pub(crate) image_id: String,
    pub(crate) instance_state: InstanceState,
    pub(crate) private_dns_name: String,
    pub(crate) dns_name: String,
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_name: Option<String>,
    pub(crate) ami_launch_index: u32,
    pub(crate) product_codes: Set<()>,
    pub(crate) instance_type: String,
    pub(crate) launch_time: String,
    pub(crate) placement: Placement,
    pub(crate) monitoring: Monitoring,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subnet_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) private_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_address: Option<String>,
    pub(crate) source_dest_check: bool,
    pub(crate) group_set: Set<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_reason: Option<StateReason>,
    pub(crate) architecture: String,
    pub(crate) root_device_type: &'static str,
    pub(crate) root_device_name: String,
    pub(crate) block_device_mapping: Set<DeviceMapping>,
    pub(crate) virtualization_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_lifecycle: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spot_instance_request_id: Option<String>,
    pub(crate) client_token: String,
    pub(crate) tag_set: Set<Tag>,
    pub(crate) hypervisor: &'static str,
    pub(crate) network_interface_set: Set<NetworkInterface>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iam_instance_profile: Option<Profile>,
    pub(crate) ebs_optimized: bool,
    pub(crate) ena_support: bool,
    pub(crate) cpu_options: CpuOptions,
    pub(crate) metadata_options: Metadata,
    pub(crate) platform_details: &'static str,
    pub(crate) usage_operation: &'static str,
}

/// The states of an instance before and after a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateChange {
    pub(crate) instance_id: String,
    pub(crate) current_state: InstanceState,
    pub(crate) previous_state: InstanceState,
}

/// The status of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceStatus {
    pub(crate) instance_id: String,
    pub(crate) availability_zone: String,
    pub(crate) instance_state: InstanceState,
    pub(crate) system_status: Checks,
    pub(crate) instance_status: Checks,
}

/// The outcome of status checks.
#[derive(Debug, Serialize)]
pub(crate) struct Checks {
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Set<Check>>,
}

/// One status check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) status: &'static str,
}
