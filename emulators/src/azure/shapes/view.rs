//! The instance view of a virtual machine: the codes of its states.
//!
//! A view has up to three statuses: `ProvisioningState/…`, `PowerState/…` (after the first boot),
//! and `OSState/generalized`.

use serde_json::{Value, json};

use super::vm::Detail;
use crate::azure::engine::{
    Engine,
    vm::{Power, Provisioning, Vm},
};

/// Returns the instance view. `unknown` is a power state that a fault puts in place of the true
/// one. The guest's data is returned as long as the machine is allocated, also after powerOff (azure-cli,
/// recording `test_vm_create_state_modifications`).
pub(super) fn instance_view(
    engine: &Engine,
    vm: &Vm,
    detail: Detail,
    unknown: Option<&str>,
) -> Value {
    let statuses = statuses(engine, vm, unknown);
    if detail == Detail::StatusOnly {
        return json!({ "statuses": statuses });
    }
    let profile = vm.body.properties.os_profile.as_ref();
    let name = profile.and_then(|profile| profile.computer_name.as_ref());
    let known = matches!(
        vm.power,
        Some(Power::Running | Power::Stopping | Power::Stopped)
    );
    let disks = vm.disks.iter().map(
        |disk| json!({ "name": disk.id.name, "statuses": [provisioned(&engine.timestamp(vm.created))] }),
    );
    json!({
        "computerName": known.then_some(name.unwrap_or(&vm.id.name)),
        "osName": known.then(|| vm.image.os_type.to_lowercase()),
        "osVersion": known.then_some("1.0"),
        "vmAgent": known.then(|| agent(engine, vm)),
        "disks": disks.collect::<Vec<_>>(),
        "bootDiagnostics": vm.diagnostics.then(|| json!({})),
        "hyperVGeneration": "V2",
        "statuses": statuses,
    })
}

/// Returns the status of a resource that was created successfully.
fn provisioned(time: &str) -> Value {
    json!({
        "code": "ProvisioningState/succeeded",
        "level": "Info",
        "displayStatus": "Provisioning succeeded",
        "time": time,
    })
}

/// Returns the status of the guest agent.
fn agent(engine: &Engine, vm: &Vm) -> Value {
    json!({
        "vmAgentVersion": "2.13.1.1",
        "statuses": [{
            "code": "ProvisioningState/succeeded",
            "level": "Info",
            "displayStatus": "Ready",
            "message": "Guest Agent is running",
            "time": engine.timestamp(vm.changed),
        }],
        "extensionHandlers": [],
    })
}

/// Returns the statuses: provisioning, power and generalization. A failure adds its code and
/// message, as in `ProvisioningState/failed/AllocationFailed`.
fn statuses(engine: &Engine, vm: &Vm, unknown: Option<&str>) -> Vec<Value> {
    let time = engine.timestamp(vm.changed);
    let mut statuses = vec![match (vm.provisioning, &vm.failure) {
        (Provisioning::Failed, Some(failure)) => json!({
            "code": format!("ProvisioningState/failed/{}", failure.code),
            "level": "Error",
            "displayStatus": "Provisioning failed",
            "message": failure.message,
            "time": time,
        }),
        (Provisioning::Failed, None) => json!({
            "code": "ProvisioningState/failed",
            "level": "Error",
            "displayStatus": "Provisioning failed",
            "time": time,
        }),
        (Provisioning::Succeeded, _) => provisioned(&time),
        (state @ (Provisioning::Creating | Provisioning::Updating | Provisioning::Deleting), _) => {
            json!({
                "code": format!("ProvisioningState/{}", state.name().to_lowercase()),
                "level": "Info",
                "displayStatus": state.name(),
            })
        }
    }];
    let power = unknown.or(vm.power.map(Power::name));
    statuses.extend(power.map(|power| {
        json!({
            "code": format!("PowerState/{power}"),
            "level": "Info",
            "displayStatus": format!("VM {power}"),
        })
    }));
    if vm.generalized {
        statuses.push(json!({
            "code": "OSState/generalized",
            "level": "Info",
            "displayStatus": "VM generalized",
        }));
    }
    statuses
}
