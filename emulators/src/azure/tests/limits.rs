//! Capacity and quota.

use super::*;
use crate::azure::knobs::{Capacity, LimitCheck, Market};

fn spot() -> Value {
    vm_body_with("/properties/priority", json!("Spot"))
}

#[test]
fn missing_capacity_arrives_later_than_a_success() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.capacity = vec![Capacity::of(0)];
        knobs.timing.shortage = Duration::from_secs(7);
    });
    let response = fixture.put("a", vm_body());
    fixture.advance(7000);
    assert_eq!(fixture.status(&response)["status"], "InProgress");
    assert_eq!(fixture.vm("a").provisioning_state, "Creating");
    fixture.advance(100);
    assert_eq!(
        fixture.status(&response)["error"]["code"],
        "AllocationFailed"
    );
}

#[test]
fn quota_messages_differ() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.spot_vcpu_quota = Some(0);
        knobs.family_quota = [("standardBSFamily".to_owned(), 2)].into();
        knobs.vcpu_quota = Some(3);
    });
    let quota_message = |fixture: &mut Fixture, name: &str, vm_body: Value| {
        let refusal = fixture
            .call(&format!("PUT {VMS}/{name}"), vm_body)
            .unwrap_err();
        assert_eq!(
            (refusal.status, &*refusal.code),
            (409, "OperationNotAllowed")
        );
        refusal.message
    };
    assert!(quota_message(&mut fixture, "s", spot()).contains("LowPriorityCores quota"));
    fixture.running("a");
    fixture.running("b");
    let family = quota_message(&mut fixture, "c", vm_body());
    assert!(family.contains("standardBSFamily Cores quota"));
    assert!(family.contains("Current Limit: 2, Current Usage: 2, Additional Required: 1, (Minimum) New Limit Required: 3"));
    let other = vm_body_with(
        "/properties/hardwareProfile/vmSize",
        json!("Standard_D2s_v5"),
    );
    assert!(quota_message(&mut fixture, "d", other).contains("Total Regional Cores quota"));
    // A deallocated machine still counts, a deleted one does not.
    fixture.post("a", "deallocate");
    quota_message(&mut fixture, "c", vm_body());
    fixture.delete("a");
    fixture.running("c");
}

#[test]
fn number_of_machines_has_a_quota() {
    let mut fixture = Fixture::with(|knobs| knobs.vm_quota = Some(1));
    fixture.running("a");
    let refusal = fixture
        .call(&format!("PUT {VMS}/b"), vm_body())
        .unwrap_err();
    assert!(refusal.message.contains("virtualMachines quota"));
}

#[test]
fn quota_can_be_reported_in_the_operation() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.vcpu_quota = Some(0);
        knobs.quota_check = LimitCheck::InOperation;
    });
    let response = fixture.put("a", vm_body());
    fixture.advance(100);
    let status = fixture.status(&response);
    assert_eq!(status["error"]["code"], "OperationNotAllowed");
    assert_eq!(fixture.vm("a").provisioning_state, "Failed");
}

#[test]
fn capacity_is_checked_in_the_operation() {
    let mut fixture = Fixture::with(|knobs| {
        let mut zone = Capacity::of(0);
        zone.zone = Some("2".to_owned());
        let mut size = Capacity::of(1);
        size.instance_type = Some("Standard_B1s".to_owned());
        knobs.capacity = vec![zone, size];
    });
    fixture.running("a");
    let failure_code = |fixture: &mut Fixture, name: &str, vm_body: Value| {
        let response = fixture.put(name, vm_body);
        fixture.advance(100);
        fixture.status(&response)["error"]["code"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    assert_eq!(
        failure_code(&mut fixture, "b", vm_body()),
        "AllocationFailed"
    );
    let zonal = vm_body_with("/zones", json!(["2"]));
    assert_eq!(
        failure_code(&mut fixture, "c", zonal),
        "ZonalAllocationFailed"
    );
    let expected = "OverconstrainedAllocationRequest";
    assert_eq!(failure_code(&mut fixture, "f", spot()), expected);
    let mut zonal = spot();
    zonal["zones"] = json!(["2"]);
    let expected = "OverconstrainedZonalAllocationRequest";
    assert_eq!(failure_code(&mut fixture, "g", zonal), expected);
    assert!(!fixture.vm("b").allocated);
    // A stopped machine stays allocated; deallocation releases it.
    fixture.post("a", "powerOff");
    assert_eq!(
        failure_code(&mut fixture, "d", vm_body()),
        "AllocationFailed"
    );
    fixture.post("a", "deallocate");
    assert_eq!(failure_code(&mut fixture, "e", vm_body()), "none");
    let start = fixture
        .call(&format!("POST {VMS}/a/start"), Value::Null)
        .unwrap();
    fixture.advance(100);
    assert_eq!(fixture.status(&start)["error"]["code"], "AllocationFailed");
    assert_eq!(fixture.vm("a").power_state.as_deref(), Some("deallocated"));
}

#[test]
fn capacity_can_be_checked_immediately() {
    let mut fixture = Fixture::with(|knobs| {
        let mut none = Capacity::of(0);
        none.market = Some(Market::Spot);
        knobs.capacity = vec![none];
        knobs.capacity_check = LimitCheck::Immediate;
    });
    let refused = fixture.refused(&format!("PUT {VMS}/a"), spot());
    assert_eq!(refused, (409, "SkuNotAvailable".to_owned()));
    fixture.running("b");
    assert_eq!(fixture.oracle().vms.len(), 1);
}

#[test]
fn size_can_be_restricted_or_limited_to_zones() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.sizes[0].zones = vec!["1".to_owned()];
        knobs.sizes[1].restricted = true;
    });
    let unavailable = (409, "SkuNotAvailable".to_owned());
    let text = format!("PUT {VMS}/a");
    assert_eq!(
        fixture.refused(&text, vm_body_with("/zones", json!(["2"]))),
        unavailable
    );
    assert_eq!(fixture.refused(&text, vm_body()), unavailable);
    let size = "/properties/hardwareProfile/vmSize";
    assert_eq!(
        fixture.refused(&text, vm_body_with(size, json!("Standard_B2s"))),
        unavailable
    );
    fixture.put("a", vm_body_with("/zones", json!(["1"])));
}

#[test]
fn full_subnet_refuses_launches() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.virtual_networks[0].subnets[0].cidr = "10.0.0.0/29".parse().unwrap();
    });
    for name in ["a", "b", "c"] {
        fixture.running(name);
    }
    let refused = fixture.refused(&format!("PUT {VMS}/d"), vm_body());
    assert_eq!(refused, (400, "SubnetIsFull".to_owned()));
    assert_eq!(fixture.oracle().public_ips.len(), 3);
    fixture.delete("a");
    fixture.running("d");
}
