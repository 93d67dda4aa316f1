//! DescribeInstanceTypes.
//!
//! The types come from the knobs. What the knobs do not say is derived from the name, or the same
//! for all types.

use serde::Serialize;

use super::{Call, common::page_of};
use crate::ec2::{
    catalog::TypeSpec,
    engine::{
        Engine,
        filter::{self, Filtered},
        record::Tags,
    },
    error::Refusal,
    shapes::types::{Cpus, Ebs, InstanceType, Memory, Network, Processor},
    wire::xml::Set,
};

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// The instance types.
    instance_type_set: Set<InstanceType>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// Describes instance types by name and filters.
///
/// # Errors
///
/// `InvalidInstanceType` for an unknown name, `InvalidParameterCombination` for names together
/// with page parameters.
pub(super) fn describe(call: &Call<'_>, engine: &mut Engine) -> Result<String, Refusal> {
    let names = call.root().list("InstanceType");
    let filters = call.filters()?;
    let (paging, paged) = call.paging(engine)?;
    call.finish_read()?;
    let types = &engine.core.knobs.types;
    let unknown: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !types.iter().any(|spec| spec.name == **name))
        .collect();
    if !unknown.is_empty() {
        let message = format!(
            "The following supplied instance types do not exist: [{}]",
            unknown.join(", ")
        );
        return Err(Refusal::client("InvalidInstanceType", message));
    }
    if paged && !names.is_empty() {
        let message = "The parameter InstanceType cannot be used with the parameter maxResults";
        return Err(Refusal::combination(message));
    }
    filter::check::<TypeSpec>(&filters)?;
    let requested = |spec: &TypeSpec| names.is_empty() || names.contains(&spec.name);
    let page = page_of(types.clone(), &paging, |spec| {
        requested(spec) && filter::passes(spec, &filters)
    });
    call.respond(&Response {
        instance_type_set: page.items.into_iter().map(type_shape).collect(),
        next_token: call.next_token(page.next),
    })
}

/// Returns a type as EC2 returns it. Two vCPUs share a core; types whose name begins with `t` are
/// burstable.
fn type_shape(spec: TypeSpec) -> InstanceType {
    let burstable = spec.name.starts_with('t');
    InstanceType {
        current_generation: !matches!(spec.name.split('.').next(), Some("m1" | "t1" | "t2")),
        free_tier_eligible: matches!(spec.name.as_str(), "t2.micro" | "t3.micro"),
        supported_usage_classes: ["on-demand", "spot"].into_iter().collect(),
        supported_root_device_types: ["ebs"].into_iter().collect(),
        supported_virtualization_types: ["hvm"].into_iter().collect(),
        bare_metal: false,
        hypervisor: "nitro",
        processor_info: Processor {
            supported_architectures: [spec.architecture].into_iter().collect(),
        },
        v_cpu_info: Cpus {
            default_v_cpus: spec.vcpus,
            default_cores: spec.vcpus.div_ceil(2),
            default_threads_per_core: spec.vcpus.min(2),
        },
        memory_info: Memory {
            size_in_mi_b: spec.memory_mib,
        },
        instance_storage_supported: false,
        ebs_info: Ebs {
            ebs_optimized_support: "default",
            encryption_support: "supported",
            nvme_support: "required",
        },
        network_info: Network {
            network_performance: "Up to 10 Gigabit",
            maximum_network_interfaces: 3,
            ipv4_addresses_per_interface: 10,
            ena_support: "required",
        },
        hibernation_supported: false,
        burstable_performance_supported: burstable,
        dedicated_hosts_supported: !burstable,
        auto_recovery_supported: true,
        instance_type: spec.name,
    }
}

/// The filters of instance types.
impl Filtered for TypeSpec {
    /// The filters that the emulator has for instance types.
    const NAMES: &'static [&'static str] = &[
        "bare-metal",
        "current-generation",
        "instance-type",
        "memory-info.size-in-mib",
        "processor-info.supported-architecture",
        "supported-root-device-type",
        "supported-usage-class",
        "supported-virtualization-type",
        "vcpu-info.default-vcpus",
    ];

    fn values(&self, name: &str) -> Vec<String> {
        match name {
            "bare-metal" => vec!["false".to_owned()],
            "current-generation" => vec![type_shape(self.clone()).current_generation.to_string()],
            "instance-type" => vec![self.name.clone()],
            "memory-info.size-in-mib" => vec![self.memory_mib.to_string()],
            "processor-info.supported-architecture" => vec![self.architecture.clone()],
            "supported-root-device-type" => vec!["ebs".to_owned()],
            "supported-usage-class" => vec!["on-demand".to_owned(), "spot".to_owned()],
            "supported-virtualization-type" => vec!["hvm".to_owned()],
            "vcpu-info.default-vcpus" => vec![self.vcpus.to_string()],
            _ => Vec::new(),
        }
    }

    fn tags(&self) -> Option<&Tags> {
        None
    }
}
