//! Creations that fail: at once, in their operation, and what they leave.

use super::*;
use crate::{azure::knobs::LateFailure, cloud::fault::Failure};

fn doomed(code: &str) -> CallContext {
    CallContext {
        planned_failures: vec![Failure::new(code, "no luck")],
        ..CallContext::default()
    }
}

#[test]
fn failed_creation_keeps_name_interface_and_disk() {
    let mut lab = Lab::new();
    let text = format!("PUT {VMS}/a");
    let answer = lab
        .call_as(&text, order(), &doomed("AllocationFailed"))
        .unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(lab.status(&answer)["status"], "InProgress");
    lab.pass(100);
    let status = lab.status(&answer);
    assert_eq!(status["status"], "Failed");
    assert_eq!(
        status["error"],
        json!({ "code": "AllocationFailed", "message": "no luck" })
    );
    let vm = lab.vm("a");
    assert_eq!(
        (vm.provisioning_state.as_str(), vm.power_state, vm.allocated),
        ("Failed", None, false)
    );
    let truth = lab.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    let view = lab.get(&format!("{VMS}/a/instanceView"));
    assert_eq!(
        view["statuses"][0]["code"],
        "ProvisioningState/failed/AllocationFailed"
    );
    assert_eq!(view["statuses"].as_array().unwrap().len(), 1);
    lab.delete("a");
    let truth = lab.oracle();
    assert!(truth.nics.is_empty() && truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn guest_that_does_not_report_still_runs() {
    let mut lab = Lab::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("OSProvisioningTimedOut", "slow")];
    });
    lab.put("a", order());
    lab.pass(100);
    let vm = lab.vm("a");
    assert_eq!(
        (vm.provisioning_state.as_str(), vm.power_state.as_deref()),
        ("Failed", Some("running"))
    );
    assert!(vm.allocated);
}

fn lab_with_nic() -> Lab {
    let mut lab = Lab::with(|knobs| knobs.vcpu_quota = Some(1));
    let address = json!({ "name": "ip", "properties": { "subnet": { "id": subnet() } } });
    let nic = json!({ "location": "eastus", "properties": { "ipConfigurations": [address] } });
    lab.ok(&format!("PUT {NETWORK}/networkInterfaces/own"), nic);
    lab.pass(0);
    lab
}

fn order_with_nic() -> Value {
    let nic =
        json!({ "networkInterfaces": [{ "id": format!("{NETWORK}/networkInterfaces/own") }] });
    order_with("/properties/networkProfile", nic)
}

#[test]
fn interface_is_reserved_for_the_failed_machine() {
    let mut lab = lab_with_nic();
    let big = "/properties/hardwareProfile/vmSize";
    let mut wanted = order_with_nic();
    *wanted.pointer_mut(big).unwrap() = json!("Standard_B2s");
    let refused = lab.refused(&format!("PUT {VMS}/a"), wanted);
    assert_eq!(refused, (409, "OperationNotAllowed".to_owned()));
    let reserved = (400, "NicReservedForAnotherVm".to_owned());
    let delete = format!("DELETE {NETWORK}/networkInterfaces/own");
    assert_eq!(lab.refused(&delete, Value::Null), reserved);
    assert_eq!(
        lab.refused(&format!("PUT {VMS}/b"), order_with_nic()),
        reserved
    );
    assert!(
        lab.oracle().nics[0]
            .reserved_for
            .as_ref()
            .unwrap()
            .ends_with("/a")
    );
    // The machine it is reserved for may have it, and anybody once the time is over.
    lab.put("a", order_with_nic());
    lab.pass(100);
    lab.delete("a");
    assert_eq!(lab.refused(&delete, Value::Null), reserved);
    lab.pass(180_000);
    lab.ok(&delete, Value::Null);
    lab.pass(0);
    assert!(lab.oracle().nics.is_empty());
}

#[test]
fn an_interface_of_a_failed_machine_is_left_behind_and_reserved() {
    let mut lab = lab_with_nic();
    let text = format!("PUT {VMS}/a");
    lab.call_as(&text, order_with_nic(), &doomed("AllocationFailed"))
        .unwrap();
    lab.pass(100);
    let delete = format!("DELETE {NETWORK}/networkInterfaces/own");
    assert_eq!(lab.refused(&delete, Value::Null).1, "NicInUse");
    lab.delete("a");
    assert_eq!(
        lab.refused(&delete, Value::Null).1,
        "NicReservedForAnotherVm"
    );
    let used = lab.refused(&format!("PUT {VMS}/b"), order_with_nic());
    assert_eq!(used.1, "NicReservedForAnotherVm");
}

#[test]
fn any_operation_can_fail_in_the_end() {
    let mut lab = Lab::new();
    lab.running("a");
    for (text, power) in [
        (format!("POST {VMS}/a/deallocate"), "running"),
        (format!("POST {VMS}/a/powerOff"), "running"),
        (format!("POST {VMS}/a/restart"), "running"),
        (format!("DELETE {VMS}/a"), "running"),
        (format!("POST {VMS}/a/start"), "running"),
    ] {
        let answer = lab
            .call_as(&text, Value::Null, &doomed("InternalError"))
            .unwrap();
        lab.pass(100);
        assert_eq!(
            lab.status(&answer)["error"]["code"],
            "InternalError",
            "{text}"
        );
        let vm = lab.vm("a");
        assert_eq!(vm.provisioning_state, "Failed");
        assert_eq!(vm.power_state.as_deref(), Some(power), "{text}");
        let monitored = lab.follow(&answer, "location").unwrap_err();
        assert_eq!((monitored.status, &*monitored.code), (409, "InternalError"));
    }
    lab.post("a", "deallocate");
    assert_eq!(lab.vm("a").provisioning_state, "Succeeded");
    let text = format!("POST {VMS}/a/start");
    lab.call_as(&text, Value::Null, &doomed("AllocationFailed"))
        .unwrap();
    lab.pass(100);
    assert_eq!(lab.vm("a").power_state.as_deref(), Some("deallocated"));
    assert!(!lab.vm("a").allocated);
}

#[test]
fn repeated_put_retries_a_failed_creation() {
    let mut lab = Lab::new();
    let text = format!("PUT {VMS}/a");
    lab.call_as(&text, order(), &doomed("AllocationFailed"))
        .unwrap();
    lab.pass(100);
    let before = lab.vm("a");
    lab.ok(&format!("PATCH {VMS}/a"), json!({ "tags": { "x": "y" } }));
    lab.pass(0);
    assert_eq!(lab.vm("a").provisioning_state, "Failed");
    let again = lab.put("a", order());
    assert_eq!(again.status, 200);
    assert_eq!(lab.vm("a").provisioning_state, "Creating");
    lab.pass(100);
    assert_eq!(lab.status(&again)["status"], "Succeeded");
    let after = lab.vm("a");
    assert_eq!(
        (after.vm_id, after.nics, after.boots),
        (before.vm_id, before.nics, 1)
    );
    assert_eq!(after.power_state.as_deref(), Some("running"));
}
