//! Shapes of instances, reservations, state changes and status checks.
//!
//! Fields are in the order of EC2's responses. Optional elements are left out if they are not set.

use serde::Serialize;

use super::{Group, Tag, storage::NetworkInterface};
use crate::ec2::wire::xml::Set;

/// A reservation: the instances of one RunInstances call. In a page it has only the instances of
/// the page.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reservation {
    /// The id, which begins with `r-`.
    pub(crate) reservation_id: String,
    /// The account of the knobs.
    pub(crate) owner_id: String,
    /// Always empty: groups belong to instances in a VPC.
    pub(crate) group_set: Set<Group>,
    /// The instances.
    pub(crate) instances_set: Set<Instance>,
}

/// A state by number and name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstanceState {
    /// EC2's code, for example 16.
    pub(crate) code: u16,
    /// EC2's name, for example `running`.
    pub(crate) name: String,
}

/// Why an instance is in its state.
#[derive(Debug, Serialize)]
pub(crate) struct StateReason {
    /// The code, for example `Client.UserInitiatedShutdown`.
    pub(crate) code: String,
    /// The code and a text.
    pub(crate) message: String,
}

/// The placement of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placement {
    /// The zone.
    pub(crate) availability_zone: String,
    /// Always empty: there are no placement groups.
    pub(crate) group_name: &'static str,
    /// Always `default`.
    pub(crate) tenancy: &'static str,
}

/// An element with only a state.
#[derive(Debug, Serialize)]
pub(crate) struct Monitoring {
    /// `enabled` or `disabled`.
    pub(crate) state: &'static str,
}

/// A device of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceMapping {
    /// The device name.
    pub(crate) device_name: String,
    /// The volume.
    pub(crate) ebs: EbsDevice,
}

/// The volume of a device.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EbsDevice {
    /// The volume.
    pub(crate) volume_id: String,
    /// Always `attached`.
    pub(crate) status: &'static str,
    /// When it was attached.
    pub(crate) attach_time: String,
    /// Whether it is deleted with the instance.
    pub(crate) delete_on_termination: bool,
}

/// An instance profile.
#[derive(Debug, Serialize)]
pub(crate) struct Profile {
    /// The ARN; built from the account, if the launch gave only a name.
    pub(crate) arn: String,
    /// An id, the same for all profiles.
    pub(crate) id: String,
}

/// How an instance's metadata service behaves.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    /// Always `applied`.
    pub(crate) state: &'static str,
    /// `optional` or `required`.
    pub(crate) http_tokens: &'static str,
    /// The hop limit, 1 to 64.
    pub(crate) http_put_response_hop_limit: u32,
    /// `enabled` or `disabled`.
    pub(crate) http_endpoint: &'static str,
    /// Always `disabled`.
    pub(crate) http_protocol_ipv6: &'static str,
    /// `enabled` or `disabled`.
    pub(crate) instance_metadata_tags: &'static str,
}

/// The processors of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CpuOptions {
    /// The number of cores.
    pub(crate) core_count: u32,
    /// The number of threads of a core, at most 2.
    pub(crate) threads_per_core: u32,
}

/// An instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    /// The id.
    pub(crate) instance_id: String,
    /// The image.
    pub(crate) image_id: String,
    /// The state.
    pub(crate) instance_state: InstanceState,
    /// The private DNS name; empty when terminated.
    pub(crate) private_dns_name: String,
    /// The public DNS name; empty without a public address.
    pub(crate) dns_name: String,
    /// The text of the last transition.
    pub(crate) reason: String,
    /// The key pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_name: Option<String>,
    /// The number of the instance in its launch.
    pub(crate) ami_launch_index: u32,
    /// Always empty.
    pub(crate) product_codes: Set<()>,
    /// The instance type.
    pub(crate) instance_type: String,
    /// When it was launched or last started.
    pub(crate) launch_time: String,
    /// The zone.
    pub(crate) placement: Placement,
    /// Whether it has detailed monitoring.
    pub(crate) monitoring: Monitoring,
    /// The subnet; missing when terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subnet_id: Option<String>,
    /// The VPC; missing when terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vpc_id: Option<String>,
    /// The private address; missing when terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) private_ip_address: Option<String>,
    /// The public address, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_address: Option<String>,
    /// Whether it receives only packets for its own addresses.
    pub(crate) source_dest_check: bool,
    /// The security groups; empty when terminated.
    pub(crate) group_set: Set<Group>,
    /// Why it is in its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_reason: Option<StateReason>,
    /// `x86_64` or `arm64`.
    pub(crate) architecture: String,
    /// Always `ebs`.
    pub(crate) root_device_type: &'static str,
    /// The device name of the root volume.
    pub(crate) root_device_name: String,
    /// The attached volumes; empty when terminated.
    pub(crate) block_device_mapping: Set<DeviceMapping>,
    /// Always `hvm`.
    pub(crate) virtualization_type: &'static str,
    /// `spot` for a spot instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_lifecycle: Option<&'static str>,
    /// The spot request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spot_instance_request_id: Option<String>,
    /// The client token; empty if the launch had none.
    pub(crate) client_token: String,
    /// The tags.
    pub(crate) tag_set: Set<Tag>,
    /// Always `xen`.
    pub(crate) hypervisor: &'static str,
    /// The network interfaces; empty when terminated.
    pub(crate) network_interface_set: Set<NetworkInterface>,
    /// The instance profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iam_instance_profile: Option<Profile>,
    /// Whether it is EBS optimized.
    pub(crate) ebs_optimized: bool,
    /// Always true.
    pub(crate) ena_support: bool,
    /// The processors.
    pub(crate) cpu_options: CpuOptions,
    /// The metadata service.
    pub(crate) metadata_options: Metadata,
    /// Always `Linux/UNIX`.
    pub(crate) platform_details: &'static str,
    /// Always `RunInstances`.
    pub(crate) usage_operation: &'static str,
}

/// The states of an instance before and after a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateChange {
    /// The instance.
    pub(crate) instance_id: String,
    /// The state after the call.
    pub(crate) current_state: InstanceState,
    /// The state before the call.
    pub(crate) previous_state: InstanceState,
}

/// The status of an instance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceStatus {
    /// The instance.
    pub(crate) instance_id: String,
    /// The zone.
    pub(crate) availability_zone: String,
    /// The state.
    pub(crate) instance_state: InstanceState,
    /// The checks of the machine.
    pub(crate) system_status: Checks,
    /// The checks of the guest.
    pub(crate) instance_status: Checks,
}

/// The outcome of status checks.
#[derive(Debug, Serialize)]
pub(crate) struct Checks {
    /// `initializing`, `ok` or `not-applicable`.
    pub(crate) status: &'static str,
    /// The single checks; missing if they do not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Set<Check>>,
}

/// One status check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Check {
    /// Always `reachability`.
    pub(crate) name: &'static str,
    /// `initializing` or `passed`.
    pub(crate) status: &'static str,
}
