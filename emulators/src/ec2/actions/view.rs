//! Instances as EC2 returns them.
//!
//! A terminated instance loses its addresses, subnet, groups, volumes and interfaces in the
//! response, as on EC2.

use std::net::Ipv4Addr;

use super::view_nic::{NicContext, network_interface};
use crate::ec2::{
    engine::{
        Engine, Seq,
        record::{Instance, State, Version},
    },
    shapes::{
        Group,
        instance::{self as shape, InstanceState, Reservation},
        tag_set,
    },
    wire::xml::Set,
};

/// Returns instances in their reservations; `state_name` replaces every state name if given.
///
/// Consecutive instances of the same launch share a reservation, so the input must be in the order
/// of launch.
pub(super) fn reservations(
    engine: &Engine,
    read: &[(Seq, Version)],
    state_name: Option<&str>,
) -> Vec<Reservation> {
    let mut reservations: Vec<Reservation> = Vec::new();
    let mut instances: Vec<Vec<shape::Instance>> = Vec::new();
    for (seq, version) in read {
        let Some(record) = engine.instances.get(seq) else {
            continue;
        };
        let id = &record.fixed.reservation;
        if reservations
            .last()
            .is_none_or(|last| last.reservation_id != *id)
        {
            reservations.push(Reservation {
                reservation_id: id.clone(),
                owner_id: engine.core.knobs.account.clone(),
                group_set: Set::default(),
                instances_set: Set::default(),
            });
            instances.push(Vec::new());
        }
        if let Some(last) = instances.last_mut() {
            last.push(instance(engine, record, version, state_name));
        }
    }
    for (reservation, instances) in reservations.iter_mut().zip(instances) {
        reservation.instances_set = instances.into();
    }
    reservations
}

/// Returns a state as number and name; `state_name` replaces the name and keeps the number.
pub(super) fn state(state: State, state_name: Option<&str>) -> InstanceState {
    InstanceState {
        code: state.code(),
        name: state_name.unwrap_or(state.name()).to_owned(),
    }
}

/// Returns one version of an instance as EC2 returns it.
fn instance(
    engine: &Engine,
    record: &Instance,
    version: &Version,
    state_name: Option<&str>,
) -> shape::Instance {
    let fixed = &record.fixed;
    let terminated = version.state == State::Terminated;
    let unless_terminated = |value: &str| (!terminated).then(|| value.to_owned());
    let public = version.public_ip;
    let spec = engine
        .core
        .knobs
        .types
        .iter()
        .find(|spec| spec.name == version.instance_type);
    let nics = if terminated {
        Vec::new()
    } else {
        engine.nics_of(&fixed.id)
    };
    let volumes = if terminated {
        Vec::new()
    } else {
        engine.volumes_of(&fixed.id)
    };
    let account = &engine.core.knobs.account;
    shape::Instance {
        instance_id: fixed.id.clone(),
        image_id: fixed.image.clone(),
        instance_state: state(version.state, state_name),
        private_dns_name: if terminated {
            String::new()
        } else {
            private_name(fixed.private_ip)
        },
        dns_name: public.map(public_name).unwrap_or_default(),
        reason: version.transition_reason.clone(),
        key_name: fixed.key_name.clone(),
        ami_launch_index: fixed.launch_index,
        product_codes: Set::default(),
        instance_type: version.instance_type.clone(),
        launch_time: engine.stamp(version.launched),
        placement: shape::Placement {
            availability_zone: fixed.zone.clone(),
            group_name: "",
            tenancy: "default",
        },
        monitoring: shape::Monitoring {
            state: if version.monitoring {
                "enabled"
            } else {
                "disabled"
            },
        },
        subnet_id: unless_terminated(&fixed.subnet),
        vpc_id: unless_terminated(&fixed.vpc),
        private_ip_address: unless_terminated(&fixed.private_ip.to_string()),
        ip_address: public.map(|ip| ip.to_string()),
        source_dest_check: version.source_dest_check,
        group_set: if terminated {
            Set::default()
        } else {
            groups(engine, &version.groups)
        },
        state_reason: state_reason(version),
        architecture: fixed.architecture.clone(),
        root_device_type: "ebs",
        root_device_name: fixed.root_device.clone(),
        block_device_mapping: volumes
            .iter()
            .map(|(_, volume)| shape::DeviceMapping {
                device_name: volume.device.name.clone(),
                ebs: shape::EbsDevice {
                    volume_id: volume.id.clone(),
                    status: "attached",
                    attach_time: engine.stamp(volume.attached),
                    delete_on_termination: volume.device.delete_on_termination,
                },
            })
            .collect(),
        virtualization_type: "hvm",
        instance_lifecycle: fixed.spot.as_ref().map(|_| "spot"),
        spot_instance_request_id: fixed.spot.as_ref().map(|(id, _)| id.clone()),
        client_token: fixed.token.clone().unwrap_or_default(),
        tag_set: tag_set(&version.tags),
        hypervisor: "xen",
        network_interface_set: nics
            .iter()
            .map(|(_, nic)| network_interface(engine, nic, public, NicContext::InInstance))
            .collect(),
        iam_instance_profile: fixed.profile.as_ref().map(|profile| shape::Profile {
            arn: match profile.strip_prefix("arn:") {
                Some(_) => profile.clone(),
                None => format!("arn:aws:iam::{account}:instance-profile/{profile}"),
            },
            id: "AIPA00000000000000000".to_owned(),
        }),
        ebs_optimized: version.ebs_optimized,
        ena_support: true,
        cpu_options: shape::CpuOptions {
            core_count: fixed.cpu.map_or_else(
                || spec.map_or(1, |spec| spec.vcpus.div_ceil(2)),
                |cpu| cpu.0,
            ),
            threads_per_core: fixed
                .cpu
                .map_or_else(|| spec.map_or(1, |spec| spec.vcpus.min(2)), |cpu| cpu.1),
        },
        metadata_options: shape::Metadata {
            state: "applied",
            http_tokens: if version.metadata.tokens_required {
                "required"
            } else {
                "optional"
            },
            http_put_response_hop_limit: version.metadata.hop_limit,
            http_endpoint: if version.metadata.enabled {
                "enabled"
            } else {
                "disabled"
            },
            http_protocol_ipv6: "disabled",
            instance_metadata_tags: if version.metadata.tags {
                "enabled"
            } else {
                "disabled"
            },
        },
        platform_details: "Linux/UNIX",
        usage_operation: "RunInstances",
    }
}

/// Returns why the instance is in its state. A pending instance has the reason `pending`; a
/// running one has none.
fn state_reason(version: &Version) -> Option<shape::StateReason> {
    let pending = || shape::StateReason {
        code: "pending".to_owned(),
        message: "pending".to_owned(),
    };
    match &version.reason {
        Some(reason) => Some(shape::StateReason {
            code: reason.code.clone(),
            message: reason.message.clone(),
        }),
        None => (version.state == State::Pending).then(pending),
    }
}

/// Returns groups by id and name. A group that does not exist any longer gets an empty name.
pub(super) fn groups(engine: &Engine, ids: &[String]) -> Set<Group> {
    group_names(engine, ids).into()
}

/// Returns groups by id and name, as [`groups`].
pub(super) fn group_names(engine: &Engine, ids: &[String]) -> Vec<Group> {
    let group = |id: &String| Group {
        group_id: id.clone(),
        group_name: engine
            .network
            .group(id)
            .map(|group| group.name.clone())
            .unwrap_or_default(),
    };
    ids.iter().map(group).collect()
}

/// Returns the private DNS name of an address.
pub(super) fn private_name(ip: Ipv4Addr) -> String {
    format!("ip-{}.ec2.internal", ip.to_string().replace('.', "-"))
}

/// Returns the public DNS name of an address.
pub(super) fn public_name(ip: Ipv4Addr) -> String {
    format!(
        "ec2-{}.compute-1.amazonaws.com",
        ip.to_string().replace('.', "-")
    )
}
