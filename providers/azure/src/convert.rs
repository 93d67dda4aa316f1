//! Conversion of Azure's machines to the shared types. Pure.
//!
//! Owns the meaning of each native field. It decides nothing about calls.
//!
//! - The public address of a machine that is stopped or terminating is not reported, though it is kept.
//! - The state reason is the failure of the latest operation, or a hint that a machine that is powered off
//!   is still billed.
//! - The image is in the form in which a launch names it.

use fleetwright::{
    CloudInstanceState, ImageId, InstanceConfig, InstanceInfo, InstanceType, LaunchFailure, Market,
    NetworkId, Placement, SecurityGroupId, Zone,
};

use crate::{
    address::{Address, lowercase},
    error::{Cause, ErrorContext, Failure},
    machine::{Interface, Machine, Public},
    reason::operation_status,
    recent_deletions::EndReason,
    state, tags,
};

/// Returns the address of a machine.
pub(crate) fn address(subscription: &str, group: &str, machine: &Machine) -> Address {
    Address {
        // Lower case, so that an id does not depend on the spelling in the config.
        subscription: lowercase(subscription),
        group: lowercase(group),
        name: machine.name.clone(),
        vm_id: machine.vm_id.clone(),
        created: machine
            .created
            .map(|created| created.timestamp_millis())
            .unwrap_or_default(),
    }
}

/// Converts a machine with its first interface. The error says what is wrong with the response.
pub(crate) fn info(
    at: &Address,
    machine: &Machine,
    interface: Option<&Interface>,
) -> Result<InstanceInfo, String> {
    let id = at.id();
    let id = id.ok_or_else(|| format!("{} has no valid id", machine.name))?;
    let normal = state::normalize(machine);
    let mut info = InstanceInfo::new(id, normal);
    info.native_state = Some(state::native(machine)).filter(|name| !name.is_empty());
    info.state_reason = reason(machine, normal);
    info.private_ip = interface.and_then(|interface| interface.private);
    let public = interface.and_then(|interface| interface.public.as_ref());
    info.public_ip = public
        .and_then(|public| match public {
            Public::Address(address) => Some(*address),
            Public::At(_) => None,
        })
        .filter(|_| {
            !matches!(
                normal,
                CloudInstanceState::Stopped | CloudInstanceState::Terminating
            )
        });
    let mac = interface.and_then(|interface| interface.mac.as_deref());
    info.mac_address = mac.and_then(|text| text.replace('-', ":").parse().ok());
    info.launch_time = machine.created;
    info.tags = fleetwright::Tags::from_observed(machine.tags.clone());
    info.image = machine
        .image
        .as_deref()
        .and_then(|text| ImageId::new(text).ok());
    let size = machine.size.as_deref();
    info.instance_type = size.and_then(|text| InstanceType::new(text).ok());
    info.placement = placement(machine, interface);
    info.config = tags::config_of(&machine.tags).map(|(config, _)| config);
    info.launch_failure = launch_failure(machine);
    Ok(info)
}

/// Returns why the machine is in its state, if no caller requested that.
fn reason(machine: &Machine, normal: CloudInstanceState) -> Option<String> {
    if let Some((code, message)) = state::failure(machine) {
        return Some(reason_text(code, message));
    }
    let powered_off = state::power(machine) == Some(state::POWERED_OFF);
    (powered_off && normal == CloudInstanceState::Stopped).then(|| {
        "powered off, but still allocated and billed; stop the instance to deallocate it".to_owned()
    })
}

/// Joins a code and a message to one line.
pub(crate) fn reason_text(code: &str, message: &str) -> String {
    match (code, message) {
        ("", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// Returns why the creation of a machine failed, with the offering that it requested.
pub(crate) fn end_reason(machine: &Machine, failure: &Failure) -> EndReason {
    // The image does not matter for a scope.
    let size = machine.size.as_deref().unwrap_or_default();
    let config = InstanceConfig::builder("unknown", size).build().ok();
    let config = config.map(|mut config| {
        config.placement = placement(machine, None);
        config
    });
    let context = ErrorContext {
        config: config.as_ref(),
        zone: config.as_ref().and_then(|it| it.placement.zone.as_ref()),
        ..ErrorContext::default()
    };
    EndReason {
        text: reason_text(failure.code(), &failure.message),
        failure: failure.launch_failure(context),
    }
}

/// Returns why the latest operation on a machine failed.
pub(crate) fn latest_failure(machine: &Machine) -> Option<Failure> {
    let (code, message) = state::failure(machine)?;
    let failure = Failure::new(Cause::OperationFailed(operation_status(code)), message);
    Some(failure.with_code(code))
}

/// Returns why the launch of a machine failed late, if it was never created.
fn launch_failure(machine: &Machine) -> Option<LaunchFailure> {
    let failure = latest_failure(machine).filter(|_| state::never_created(machine))?;
    Some(end_reason(machine, &failure).failure)
}

/// Returns a machine that does not exist any more, with the reason.
pub(crate) fn gone_info(at: &Address, reason: &str) -> Option<InstanceInfo> {
    let mut info = InstanceInfo::new(at.id()?, CloudInstanceState::Terminated);
    info.state_reason = Some(reason.to_owned());
    Some(info)
}

/// Returns where a machine runs: zone, subnet, security group and market.
fn placement(machine: &Machine, interface: Option<&Interface>) -> Placement {
    let mut placement = Placement::default();
    placement.zone = machine
        .zone
        .as_deref()
        .and_then(|text| Zone::new(text).ok());
    let subnet = interface.and_then(|interface| interface.subnet.as_deref());
    placement.network = subnet.and_then(|text| NetworkId::new(text).ok());
    let group = interface.and_then(|interface| interface.security_group.as_deref());
    let group = group.and_then(|text| SecurityGroupId::new(text).ok());
    placement.security_groups = group.into_iter().collect();
    placement.market = Some(if machine.spot {
        Market::Spot
    } else {
        Market::OnDemand
    });
    placement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Status;

    fn machine(power: &str) -> Machine {
        Machine {
            name: "fw-1".to_owned(),
            vm_id: "61ca152e-8a94-4455-b97f-c3ec52a06884".to_owned(),
            created: chrono::DateTime::from_timestamp_millis(1_790_000_000_123),
            zone: Some("1".to_owned()),
            size: Some("Standard_B1s".to_owned()),
            image: Some("a:b:c:d".to_owned()),
            tags: [("Team", "Blue"), ("fleetwright:owner", "me")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            provisioning: "Succeeded".to_owned(),
            statuses: vec![Status {
                code: format!("PowerState/{power}"),
                message: None,
            }],
            ..Machine::default()
        }
    }

    fn interface() -> Interface {
        Interface {
            machine: None,
            primary: true,
            mac: Some("00-0D-3A-00-00-01".to_owned()),
            private: "10.0.0.4".parse().ok(),
            public: "203.0.113.7".parse().ok().map(Public::Address),
            subnet: Some("/subnet".to_owned()),
            security_group: Some("/nsg".to_owned()),
        }
    }

    fn converted(machine: &Machine) -> InstanceInfo {
        let at = address("00000000-0000-0000-0000-00000000000A", "RG", machine);
        info(&at, machine, Some(&interface())).unwrap()
    }

    #[test]
    fn machine_converts_with_all_parts() {
        let info = converted(&machine("running"));
        assert!(
            info.id.as_str().contains("/resourceGroups/rg/"),
            "{}",
            info.id
        );
        assert_eq!(info.state, CloudInstanceState::Running);
        assert_eq!(info.native_state.as_deref(), Some("running"));
        assert_eq!(info.public_ip.unwrap().to_string(), "203.0.113.7");
        assert_eq!(info.private_ip.unwrap().to_string(), "10.0.0.4");
        assert_eq!(info.mac_address.unwrap().to_string(), "00:0d:3a:00:00:01");
        assert_eq!(info.tags.iter().collect::<Vec<_>>(), [("Team", "Blue")]);
        assert_eq!(info.placement.network.unwrap().as_str(), "/subnet");
        assert_eq!(info.placement.security_groups.len(), 1);
        assert_eq!(
            (info.state_reason, info.placement.market),
            (None, Some(Market::OnDemand))
        );
    }

    #[test]
    fn stopped_machine_has_no_public_address_and_a_billing_hint() {
        let released = converted(&machine("deallocated"));
        assert_eq!((released.public_ip, released.state_reason), (None, None));
        let powered_off = converted(&machine("stopped"));
        assert_eq!(powered_off.state, CloudInstanceState::Stopped);
        assert!(
            powered_off
                .state_reason
                .unwrap()
                .contains("still allocated")
        );
    }

    #[test]
    fn state_reason_contains_the_code() {
        let mut failed = machine("running");
        failed.statuses.push(Status {
            code: "ProvisioningState/failed/OSProvisioningTimedOut".to_owned(),
            message: Some("no word".to_owned()),
        });
        let reason = converted(&failed).state_reason.unwrap();
        assert_eq!(reason, "OSProvisioningTimedOut: no word");
        assert_eq!(
            (reason_text("", "x"), reason_text("x", "")),
            ("x".to_owned(), "x".to_owned())
        );
    }
}
