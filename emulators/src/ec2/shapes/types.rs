//! Instance types.

use serde::Serialize;

use crate::ec2::wire::xml::Set;

/// An instance type.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "EC2 has each of them as a bool element"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceType {
    pub(crate) instance_type: String,
    pub(crate) current_generation: bool,
    pub(crate) free_tier_eligible: bool,
    pub(crate) supported_usage_classes: Set<&'static str>,
    pub(crate) supported_root_device_types: Set<&'static str>,
    pub(crate) supported_virtualization_types: Set<&'static str>,
    pub(crate) bare_metal: bool,
    pub(crate) hypervisor: &'static str,
    pub(crate) processor_info: Processor,
    pub(crate) v_cpu_info: Cpus,
    pub(crate) memory_info: Memory,
    pub(crate) instance_storage_supported: bool,
    pub(crate) ebs_info: Ebs,
    pub(crate) network_info: Network,
    pub(crate) hibernation_supported: bool,
    pub(crate) burstable_performance_supported: bool,
    pub(crate) dedicated_hosts_supported: bool,
    pub(crate) auto_recovery_supported: bool,
}

/// The processor of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Processor {
    pub(crate) supported_architectures: Set<String>,
}

/// The number of virtual processors.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cpus {
    pub(crate) default_v_cpus: u32,
    pub(crate) default_cores: u32,
    pub(crate) default_threads_per_core: u32,
}

/// The memory of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub(crate) size_in_mi_b: u64,
}

/// The EBS support of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ebs {
    pub(crate) ebs_optimized_support: &'static str,
    pub(crate) encryption_support: &'static str,
    pub(crate) nvme_support: &'static str,
}

/// The network support of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Network {
    pub(crate) network_performance: &'static str,
    pub(crate) maximum_network_interfaces: u32,
    pub(crate) ipv4_addresses_per_interface: u32,
    pub(crate) ena_support: &'static str,
}
