//! Capacity, quota, addresses: at once or in the operation.

use super::{Lab, ZONE, body, codes, reason};
use crate::gcp::{Capacity, LateFailure, LimitCheck, Market, catalog::Subnetwork};
use serde_json::json;

const INSERT: &str = "POST zones/us-central1-a/instances";

fn few(machines: u64) -> Vec<Capacity> {
    let mut capacity = Capacity::of(machines);
    capacity.zone = Some("us-central1-a".to_owned());
    vec![capacity]
}

#[test]
fn stockout_is_reported_in_the_operation() {
    let mut lab = Lab::with(|knobs| knobs.capacity = few(1));
    lab.running("one");
    let late = lab.insert(&body("two"));
    assert_eq!(lab.status("two"), "PROVISIONING");
    lab.pass(100);
    let done = lab.operation(&late);
    assert_eq!(codes(&done), ["ZONE_RESOURCE_POOL_EXHAUSTED"]);
    assert_eq!(done["httpErrorStatusCode"], 503);
    assert_eq!(lab.status("two"), "gone");
    // A machine that is given back can be had.
    lab.post(&format!("{ZONE}/instances/one/stop"));
    lab.pass(200);
    lab.running("two");
    assert_eq!(lab.status("two"), "RUNNING");
    // And a start finds none.
    let start = lab.post(&format!("{ZONE}/instances/one/start"));
    lab.pass(100);
    assert_eq!(
        codes(&lab.operation(&start)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
    let truth = lab.truth("one").unwrap();
    assert_eq!(
        (truth.status.as_str(), truth.holds_machine),
        ("TERMINATED", false)
    );
}

#[test]
fn stockout_can_be_immediate_or_have_details() {
    let mut lab = Lab::with(|knobs| {
        knobs.capacity = few(0);
        knobs.stockout_code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS".to_owned();
    });
    let late = lab.insert(&body("vm"));
    lab.pass(100);
    assert_eq!(
        codes(&lab.operation(&late)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]
    );
    lab.engine.core.knobs.stockout_check = LimitCheck::Immediate;
    assert_eq!(
        lab.refused(INSERT, &body("vm")),
        reason(503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    );
}

#[test]
fn capacity_is_by_market() {
    let mut lab = Lab::with(|knobs| {
        knobs.capacity = few(0);
        knobs.capacity[0].market = Some(Market::Spot);
    });
    lab.running("on-demand");
    let mut spot = body("spot");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    let late = lab.insert(&spot);
    lab.pass(100);
    assert_eq!(
        codes(&lab.operation(&late)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
}

#[test]
fn quota_is_reported_immediately_or_in_the_operation() {
    let mut lab = Lab::with(|knobs| knobs.cpu_quota = Some(3));
    lab.running("one");
    assert_eq!(
        lab.refused(INSERT, &body("two")),
        reason(403, "quotaExceeded")
    );
    lab.engine.core.knobs.quota_check = LimitCheck::InOperation;
    let late = lab.insert(&body("two"));
    lab.pass(100);
    let done = lab.operation(&late);
    assert_eq!(
        (codes(&done), &done["httpErrorStatusCode"]),
        (vec!["QUOTA_EXCEEDED"], &json!(403))
    );
    // It is the region's, and spot has its own.
    let region = lab.get("regions/us-central1");
    assert_eq!(
        region["quotas"][0],
        json!({ "metric": "CPUS", "limit": 3.0, "usage": 2.0 })
    );
    let mut spot = body("spot");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    lab.insert(&spot);
    lab.pass(200);
    assert_eq!(lab.status("spot"), "RUNNING");
}

#[test]
fn stopped_instances_count_as_instances_and_not_as_cpus() {
    let mut lab = Lab::with(|knobs| {
        knobs.cpu_quota = Some(2);
        knobs.instance_quota = Some(2);
    });
    lab.stopped("one");
    lab.running("two");
    assert_eq!(
        lab.refused(INSERT, &body("three")),
        reason(403, "quotaExceeded")
    );
    let start = format!("POST {ZONE}/instances/one/start");
    assert_eq!(
        lab.refused(&start, &serde_json::Value::Null),
        reason(403, "quotaExceeded")
    );
}

#[test]
fn addresses_end() {
    let mut lab = Lab::with(|knobs| {
        knobs.subnetworks = vec![Subnetwork::new(
            "us-central1",
            "10.0.0.0/29".parse().unwrap(),
        )];
    });
    for number in 0..4 {
        lab.running(&format!("vm-{number}"));
    }
    let late = lab.insert(&body("one-more"));
    lab.pass(100);
    assert_eq!(codes(&lab.operation(&late)), ["IP_SPACE_EXHAUSTED"]);
    lab.ok(
        &format!("DELETE {ZONE}/instances/vm-2"),
        &serde_json::Value::Null,
    );
    lab.pass(200);
    lab.running("one-more");
    assert_eq!(
        lab.truth("one-more").unwrap().internal_ip,
        Some([10, 0, 0, 4].into())
    );
}

#[test]
fn launches_and_starts_fail_late_as_the_knobs_say() {
    let mut lab = Lab::new();
    lab.stopped("old");
    let mut rule = LateFailure::new("INTERNAL_ERROR", "broken");
    rule.instance_type = Some("e2-small".to_owned());
    lab.engine.core.knobs.late_failures = vec![rule];
    let new = lab.insert(&body("new"));
    let old = lab.post(&format!("{ZONE}/instances/old/start"));
    lab.pass(100);
    for operation in [new, old] {
        assert_eq!(codes(&lab.operation(&operation)), ["INTERNAL_ERROR"]);
    }
    assert_eq!(
        (lab.status("new"), lab.status("old")),
        ("gone".to_owned(), "TERMINATED".to_owned())
    );
}
