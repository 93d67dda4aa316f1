//! Creations that fail immediately or in their operation, and the resources that stay.

use super::*;
use crate::{azure::knobs::LateFailure, cloud::fault::Failure};

fn failing_operation(code: &str) -> CallContext {
    CallContext {
        planned_failures: vec![Failure::new(code, "no luck")],
        ..CallContext::default()
    }
}

#[test]
fn failed_creation_keeps_name_interface_and_disk() {
    let mut fixture = Fixture::new();
    let text = format!("PUT {VMS}/a");
    let response = fixture
        .call_as(&text, vm_body(), &failing_operation("AllocationFailed"))
        .unwrap();
    assert_eq!(response.status, 201);
    assert_eq!(fixture.status(&response)["status"], "InProgress");
    fixture.advance(100);
    let status = fixture.status(&response);
    assert_eq!(status["status"], "Failed");
    assert_eq!(
        status["error"],
        json!({ "code": "AllocationFailed", "message": "no luck" })
    );
    let vm = fixture.vm("a");
    assert_eq!(
        (vm.provisioning_state.as_str(), vm.power_state, vm.allocated),
        ("Failed", None, false)
    );
    let truth = fixture.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    let view = fixture.get(&format!("{VMS}/a/instanceView"));
    assert_eq!(
        view["statuses"][0]["code"],
        "ProvisioningState/failed/AllocationFailed"
    );
    assert_eq!(view["statuses"].as_array().unwrap().len(), 1);
    fixture.delete("a");
    let truth = fixture.oracle();
    assert!(truth.nics.is_empty() && truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn guest_that_does_not_report_still_runs() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("OSProvisioningTimedOut", "slow")];
    });
    fixture.put("a", vm_body());
    fixture.advance(100);
    let vm = fixture.vm("a");
    assert_eq!(
        (vm.provisioning_state.as_str(), vm.power_state.as_deref()),
        ("Failed", Some("running"))
    );
    assert!(vm.allocated);
}

fn fixture_with_nic() -> Fixture {
    let mut fixture = Fixture::with(|knobs| knobs.vcpu_quota = Some(1));
    let address = json!({ "name": "ip", "properties": { "subnet": { "id": subnet() } } });
    let nic = json!({ "location": "eastus", "properties": { "ipConfigurations": [address] } });
    fixture.ok(&format!("PUT {NETWORK}/networkInterfaces/own"), nic);
    fixture.advance(0);
    fixture
}

fn vm_body_with_nic() -> Value {
    let nic =
        json!({ "networkInterfaces": [{ "id": format!("{NETWORK}/networkInterfaces/own") }] });
    vm_body_with("/properties/networkProfile", nic)
}

#[test]
fn interface_is_reserved_for_the_failed_machine() {
    let mut fixture = fixture_with_nic();
    let big = "/properties/hardwareProfile/vmSize";
    let mut requested = vm_body_with_nic();
    *requested.pointer_mut(big).unwrap() = json!("Standard_B2s");
    let refused = fixture.refused(&format!("PUT {VMS}/a"), requested);
    assert_eq!(refused, (409, "OperationNotAllowed".to_owned()));
    let reserved = (400, "NicReservedForAnotherVm".to_owned());
    let delete = format!("DELETE {NETWORK}/networkInterfaces/own");
    assert_eq!(fixture.refused(&delete, Value::Null), reserved);
    assert_eq!(
        fixture.refused(&format!("PUT {VMS}/b"), vm_body_with_nic()),
        reserved
    );
    assert!(
        fixture.oracle().nics[0]
            .reserved_for
            .as_ref()
            .unwrap()
            .ends_with("/a")
    );
    // Its own machine may use it, and any other one after the reservation.
    fixture.put("a", vm_body_with_nic());
    fixture.advance(100);
    fixture.delete("a");
    assert_eq!(fixture.refused(&delete, Value::Null), reserved);
    fixture.advance(180_000);
    fixture.ok(&delete, Value::Null);
    fixture.advance(0);
    assert!(fixture.oracle().nics.is_empty());
}

#[test]
fn interface_of_a_failed_machine_stays_and_is_reserved() {
    let mut fixture = fixture_with_nic();
    let text = format!("PUT {VMS}/a");
    fixture
        .call_as(
            &text,
            vm_body_with_nic(),
            &failing_operation("AllocationFailed"),
        )
        .unwrap();
    fixture.advance(100);
    let delete = format!("DELETE {NETWORK}/networkInterfaces/own");
    assert_eq!(fixture.refused(&delete, Value::Null).1, "NicInUse");
    fixture.delete("a");
    assert_eq!(
        fixture.refused(&delete, Value::Null).1,
        "NicReservedForAnotherVm"
    );
    let used = fixture.refused(&format!("PUT {VMS}/b"), vm_body_with_nic());
    assert_eq!(used.1, "NicReservedForAnotherVm");
}

#[test]
fn any_operation_can_fail_in_the_end() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    for (text, power) in [
        (format!("POST {VMS}/a/deallocate"), "running"),
        (format!("POST {VMS}/a/powerOff"), "running"),
        (format!("POST {VMS}/a/restart"), "running"),
        (format!("DELETE {VMS}/a"), "running"),
        (format!("POST {VMS}/a/start"), "running"),
    ] {
        let response = fixture
            .call_as(&text, Value::Null, &failing_operation("InternalError"))
            .unwrap();
        fixture.advance(100);
        assert_eq!(
            fixture.status(&response)["error"]["code"],
            "InternalError",
            "{text}"
        );
        let vm = fixture.vm("a");
        assert_eq!(vm.provisioning_state, "Failed");
        assert_eq!(vm.power_state.as_deref(), Some(power), "{text}");
        let monitored = fixture.follow(&response, "location").unwrap_err();
        assert_eq!((monitored.status, &*monitored.code), (409, "InternalError"));
    }
    fixture.post("a", "deallocate");
    assert_eq!(fixture.vm("a").provisioning_state, "Succeeded");
    let text = format!("POST {VMS}/a/start");
    fixture
        .call_as(&text, Value::Null, &failing_operation("AllocationFailed"))
        .unwrap();
    fixture.advance(100);
    assert_eq!(fixture.vm("a").power_state.as_deref(), Some("deallocated"));
    assert!(!fixture.vm("a").allocated);
}

#[test]
fn repeated_put_retries_a_failed_creation() {
    let mut fixture = Fixture::new();
    let text = format!("PUT {VMS}/a");
    fixture
        .call_as(&text, vm_body(), &failing_operation("AllocationFailed"))
        .unwrap();
    fixture.advance(100);
    let before = fixture.vm("a");
    fixture.ok(&format!("PATCH {VMS}/a"), json!({ "tags": { "x": "y" } }));
    fixture.advance(0);
    assert_eq!(fixture.vm("a").provisioning_state, "Failed");
    let again = fixture.put("a", vm_body());
    assert_eq!(again.status, 200);
    assert_eq!(fixture.vm("a").provisioning_state, "Creating");
    fixture.advance(100);
    assert_eq!(fixture.status(&again)["status"], "Succeeded");
    let after = fixture.vm("a");
    assert_eq!(
        (after.vm_id, after.nics, after.boots),
        (before.vm_id, before.nics, 1)
    );
    assert_eq!(after.power_state.as_deref(), Some("running"));
}
