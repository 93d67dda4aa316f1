//! Capacity and quota.

use super::*;
use crate::azure::knobs::{Capacity, LimitCheck, Market};

fn spot() -> Value {
    order_with("/properties/priority", json!("Spot"))
}

#[test]
fn quota_messages_differ() {
    let mut lab = Lab::with(|knobs| {
        knobs.spot_vcpu_quota = Some(0);
        knobs.family_quota = [("standardBSFamily".to_owned(), 2)].into();
        knobs.vcpu_quota = Some(3);
    });
    let words = |lab: &mut Lab, name: &str, order: Value| {
        let refusal = lab.call(&format!("PUT {VMS}/{name}"), order).unwrap_err();
        assert_eq!(
            (refusal.status, &*refusal.code),
            (409, "OperationNotAllowed")
        );
        refusal.message
    };
    assert!(words(&mut lab, "s", spot()).contains("LowPriorityCores quota"));
    lab.running("a");
    lab.running("b");
    let family = words(&mut lab, "c", order());
    assert!(family.contains("standardBSFamily Cores quota"));
    assert!(family.contains("Current Limit: 2, Current Usage: 2, Additional Required: 1, (Minimum) New Limit Required: 3"));
    let other = order_with(
        "/properties/hardwareProfile/vmSize",
        json!("Standard_D2s_v5"),
    );
    assert!(words(&mut lab, "d", other).contains("Total Regional Cores quota"));
    // What is deallocated still counts, what is gone does not.
    lab.post("a", "deallocate");
    words(&mut lab, "c", order());
    lab.delete("a");
    lab.running("c");
}

#[test]
fn the_number_of_machines_has_a_quota_too() {
    let mut lab = Lab::with(|knobs| knobs.vm_quota = Some(1));
    lab.running("a");
    let refusal = lab.call(&format!("PUT {VMS}/b"), order()).unwrap_err();
    assert!(refusal.message.contains("virtualMachines quota"));
}

#[test]
fn quota_can_be_reported_in_the_operation() {
    let mut lab = Lab::with(|knobs| {
        knobs.vcpu_quota = Some(0);
        knobs.quota_check = LimitCheck::InOperation;
    });
    let answer = lab.put("a", order());
    lab.pass(100);
    let status = lab.status(&answer);
    assert_eq!(status["error"]["code"], "OperationNotAllowed");
    assert_eq!(lab.vm("a").provisioning_state, "Failed");
}

#[test]
fn capacity_is_checked_in_the_operation() {
    let mut lab = Lab::with(|knobs| {
        let mut zone = Capacity::of(0);
        zone.zone = Some("2".to_owned());
        let mut size = Capacity::of(1);
        size.instance_type = Some("Standard_B1s".to_owned());
        knobs.capacity = vec![zone, size];
    });
    lab.running("a");
    let fails = |lab: &mut Lab, name: &str, order: Value| {
        let answer = lab.put(name, order);
        lab.pass(100);
        lab.status(&answer)["error"]["code"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    assert_eq!(fails(&mut lab, "b", order()), "AllocationFailed");
    let zonal = order_with("/zones", json!(["2"]));
    assert_eq!(fails(&mut lab, "c", zonal), "ZonalAllocationFailed");
    let narrow = "OverconstrainedAllocationRequest";
    assert_eq!(fails(&mut lab, "f", spot()), narrow);
    let mut zonal = spot();
    zonal["zones"] = json!(["2"]);
    let narrow = "OverconstrainedZonalAllocationRequest";
    assert_eq!(fails(&mut lab, "g", zonal), narrow);
    assert!(!lab.vm("b").allocated);
    // What is powered off keeps its machine, what is deallocated gives it back.
    lab.post("a", "powerOff");
    assert_eq!(fails(&mut lab, "d", order()), "AllocationFailed");
    lab.post("a", "deallocate");
    assert_eq!(fails(&mut lab, "e", order()), "none");
    let start = lab
        .call(&format!("POST {VMS}/a/start"), Value::Null)
        .unwrap();
    lab.pass(100);
    assert_eq!(lab.status(&start)["error"]["code"], "AllocationFailed");
    assert_eq!(lab.vm("a").power_state.as_deref(), Some("deallocated"));
}

#[test]
fn capacity_can_be_checked_immediately() {
    let mut lab = Lab::with(|knobs| {
        let mut none = Capacity::of(0);
        none.market = Some(Market::Spot);
        knobs.capacity = vec![none];
        knobs.capacity_check = LimitCheck::Immediate;
    });
    let refused = lab.refused(&format!("PUT {VMS}/a"), spot());
    assert_eq!(refused, (409, "SkuNotAvailable".to_owned()));
    lab.running("b");
    assert_eq!(lab.oracle().vms.len(), 1);
}

#[test]
fn a_size_may_be_restricted_or_offered_in_some_zones() {
    let mut lab = Lab::with(|knobs| {
        knobs.sizes[0].zones = vec!["1".to_owned()];
        knobs.sizes[1].restricted = true;
    });
    let unavailable = (409, "SkuNotAvailable".to_owned());
    let text = format!("PUT {VMS}/a");
    assert_eq!(
        lab.refused(&text, order_with("/zones", json!(["2"]))),
        unavailable
    );
    assert_eq!(lab.refused(&text, order()), unavailable);
    let size = "/properties/hardwareProfile/vmSize";
    assert_eq!(
        lab.refused(&text, order_with(size, json!("Standard_B2s"))),
        unavailable
    );
    lab.put("a", order_with("/zones", json!(["1"])));
}

#[test]
fn full_subnet_refuses_launches() {
    let mut lab = Lab::with(|knobs| {
        knobs.virtual_networks[0].subnets[0].cidr = "10.0.0.0/29".parse().unwrap();
    });
    for name in ["a", "b", "c"] {
        lab.running(name);
    }
    let refused = lab.refused(&format!("PUT {VMS}/d"), order());
    assert_eq!(refused, (400, "SubnetIsFull".to_owned()));
    assert_eq!(lab.oracle().public_ips.len(), 3);
    lab.delete("a");
    lab.running("d");
}
