//! Shapes of instance types.
//!
//! Fields are in the order of EC2's responses.

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
    /// The name, for example `m5.large`.
    pub(crate) instance_type: String,
    /// False for `m1`, `t1` and `t2`.
    pub(crate) current_generation: bool,
    /// Whether it is `t2.micro` or `t3.micro`.
    pub(crate) free_tier_eligible: bool,
    /// Always `on-demand` and `spot`.
    pub(crate) supported_usage_classes: Set<&'static str>,
    /// Always `ebs`.
    pub(crate) supported_root_device_types: Set<&'static str>,
    /// Always `hvm`.
    pub(crate) supported_virtualization_types: Set<&'static str>,
    /// Always false.
    pub(crate) bare_metal: bool,
    /// Always `nitro`.
    pub(crate) hypervisor: &'static str,
    /// The architecture.
    pub(crate) processor_info: Processor,
    /// The number of virtual processors.
    pub(crate) v_cpu_info: Cpus,
    /// The memory.
    pub(crate) memory_info: Memory,
    /// Always false: there are no instance stores.
    pub(crate) instance_storage_supported: bool,
    /// The EBS support.
    pub(crate) ebs_info: Ebs,
    /// The network support.
    pub(crate) network_info: Network,
    /// Always false.
    pub(crate) hibernation_supported: bool,
    /// Whether the name begins with `t`.
    pub(crate) burstable_performance_supported: bool,
    /// Whether the type is not burstable.
    pub(crate) dedicated_hosts_supported: bool,
    /// Always true.
    pub(crate) auto_recovery_supported: bool,
}

/// The processor of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Processor {
    /// `x86_64` or `arm64`.
    pub(crate) supported_architectures: Set<String>,
}

/// The number of virtual processors.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cpus {
    /// The number of vCPUs.
    pub(crate) default_v_cpus: u32,
    /// The number of cores: half of the vCPUs, rounded up.
    pub(crate) default_cores: u32,
    /// The number of threads of a core, at most 2.
    pub(crate) default_threads_per_core: u32,
}

/// The memory of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// The memory in MiB.
    pub(crate) size_in_mi_b: u64,
}

/// The EBS support of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ebs {
    /// Always `default`.
    pub(crate) ebs_optimized_support: &'static str,
    /// Always `supported`.
    pub(crate) encryption_support: &'static str,
    /// Always `required`.
    pub(crate) nvme_support: &'static str,
}

/// The network support of an instance type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Network {
    /// Always `Up to 10 Gigabit`.
    pub(crate) network_performance: &'static str,
    /// Always 3; a launch can have one here.
    pub(crate) maximum_network_interfaces: u32,
    /// Always 10; an interface has one here.
    pub(crate) ipv4_addresses_per_interface: u32,
    /// Always `required`.
    pub(crate) ena_support: &'static str,
}
