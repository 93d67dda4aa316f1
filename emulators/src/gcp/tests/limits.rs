//! Capacity, quota, addresses: reported immediately or in the operation.

use std::time::Duration;

use super::{Fixture, ZONE, body, codes, reason};
use crate::gcp::{Capacity, LateFailure, LimitCheck, Market, catalog::Subnetwork};
use serde_json::json;

const INSERT: &str = "POST zones/us-central1-a/instances";

fn capacity_of(machines: u64) -> Vec<Capacity> {
    let mut capacity = Capacity::of(machines);
    capacity.zone = Some("us-central1-a".to_owned());
    vec![capacity]
}

#[test]
fn stockout_arrives_later_than_a_success() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.capacity = capacity_of(1);
        knobs.timing.shortage = Duration::from_secs(7);
    });
    fixture.insert_running("one");
    let late = fixture.insert(&body("two"));
    fixture.advance(7000);
    assert_eq!(fixture.operation(&late)["status"], "RUNNING");
    assert_eq!(fixture.status("two"), "PROVISIONING");
    fixture.advance(100);
    let finished = fixture.operation(&late);
    assert_eq!(codes(&finished), ["ZONE_RESOURCE_POOL_EXHAUSTED"]);
}

#[test]
fn stockout_is_reported_in_the_operation() {
    let mut fixture = Fixture::with(|knobs| knobs.capacity = capacity_of(1));
    fixture.insert_running("one");
    let late = fixture.insert(&body("two"));
    assert_eq!(fixture.status("two"), "PROVISIONING");
    fixture.advance(100);
    let finished = fixture.operation(&late);
    assert_eq!(codes(&finished), ["ZONE_RESOURCE_POOL_EXHAUSTED"]);
    assert_eq!(finished["httpErrorStatusCode"], 503);
    assert_eq!(fixture.status("two"), "gone");
    // A released machine can be used again.
    fixture.post(&format!("{ZONE}/instances/one/stop"));
    fixture.advance(200);
    fixture.insert_running("two");
    assert_eq!(fixture.status("two"), "RUNNING");
    // A start finds no machine.
    let start = fixture.post(&format!("{ZONE}/instances/one/start"));
    fixture.advance(100);
    assert_eq!(
        codes(&fixture.operation(&start)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
    let oracle_instance = fixture.oracle_instance("one").unwrap();
    assert_eq!(
        (
            oracle_instance.status.as_str(),
            oracle_instance.holds_machine
        ),
        ("TERMINATED", false)
    );
}

#[test]
fn stockout_can_be_immediate_or_have_details() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.capacity = capacity_of(0);
        knobs.stockout_code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS".to_owned();
    });
    let late = fixture.insert(&body("vm"));
    fixture.advance(100);
    assert_eq!(
        codes(&fixture.operation(&late)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]
    );
    fixture.engine.core.knobs.stockout_check = LimitCheck::Immediate;
    assert_eq!(
        fixture.refusal(INSERT, &body("vm")),
        reason(503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    );
}

#[test]
fn capacity_is_by_market() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.capacity = capacity_of(0);
        knobs.capacity[0].market = Some(Market::Spot);
    });
    fixture.insert_running("on-demand");
    let mut spot = body("spot");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    let late = fixture.insert(&spot);
    fixture.advance(100);
    assert_eq!(
        codes(&fixture.operation(&late)),
        ["ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
}

#[test]
fn quota_is_reported_immediately_or_in_the_operation() {
    let mut fixture = Fixture::with(|knobs| knobs.cpu_quota = Some(3));
    fixture.insert_running("one");
    assert_eq!(
        fixture.refusal(INSERT, &body("two")),
        reason(403, "quotaExceeded")
    );
    fixture.engine.core.knobs.quota_check = LimitCheck::InOperation;
    let late = fixture.insert(&body("two"));
    fixture.advance(100);
    let finished = fixture.operation(&late);
    assert_eq!(
        (codes(&finished), &finished["httpErrorStatusCode"]),
        (vec!["QUOTA_EXCEEDED"], &json!(403))
    );
    // The quota is per region, and spot instances have their own.
    let region = fixture.get("regions/us-central1");
    assert_eq!(
        region["quotas"][0],
        json!({ "metric": "CPUS", "limit": 3.0, "usage": 2.0 })
    );
    let mut spot = body("spot");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    fixture.insert(&spot);
    fixture.advance(200);
    assert_eq!(fixture.status("spot"), "RUNNING");
}

#[test]
fn violated_policy_is_reported_immediately_or_in_the_operation() {
    let external = "constraints/compute.vmExternalIpAccess";
    let mut fixture = Fixture::with(|knobs| {
        knobs.organization_policies = [external.to_owned()].into();
    });
    let mut inside = body("inside");
    inside["networkInterfaces"] = json!([{ "network": "global/networks/default" }]);
    fixture.insert(&inside);
    let mut outside = body("outside");
    outside["networkInterfaces"] = json!([{ "accessConfigs": [{ "type": "ONE_TO_ONE_NAT" }] }]);
    assert_eq!(
        fixture.refusal(INSERT, &outside),
        reason(412, "conditionNotMet")
    );
    fixture.engine.core.knobs.policy_check = LimitCheck::InOperation;
    let late = fixture.insert(&outside);
    fixture.advance(100);
    let finished = fixture.operation(&late);
    assert_eq!(codes(&finished), ["CONDITION_NOT_MET"]);
    assert_eq!(finished["httpErrorStatusCode"], 412);
    let message = finished["error"]["errors"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("Constraint {external} violated")),
        "{message}"
    );
    // Another policy concerns every instance.
    fixture.engine.core.knobs.organization_policies =
        ["constraints/compute.requireShieldedVm".to_owned()].into();
    fixture.engine.core.knobs.policy_check = LimitCheck::Immediate;
    inside["name"] = "other".into();
    assert_eq!(
        fixture.refusal(INSERT, &inside),
        reason(412, "conditionNotMet")
    );
}

#[test]
fn stopped_instances_count_as_instances_and_not_as_cpus() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.cpu_quota = Some(2);
        knobs.instance_quota = Some(2);
    });
    fixture.insert_stopped("one");
    fixture.insert_running("two");
    assert_eq!(
        fixture.refusal(INSERT, &body("three")),
        reason(403, "quotaExceeded")
    );
    let start = format!("POST {ZONE}/instances/one/start");
    assert_eq!(
        fixture.refusal(&start, &serde_json::Value::Null),
        reason(403, "quotaExceeded")
    );
}

#[test]
fn internal_addresses_run_out() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.subnetworks = vec![Subnetwork::new(
            "us-central1",
            "10.0.0.0/29".parse().unwrap(),
        )];
    });
    for number in 0..4 {
        fixture.insert_running(&format!("vm-{number}"));
    }
    let late = fixture.insert(&body("one-more"));
    fixture.advance(100);
    assert_eq!(codes(&fixture.operation(&late)), ["IP_SPACE_EXHAUSTED"]);
    fixture.ok(
        &format!("DELETE {ZONE}/instances/vm-2"),
        &serde_json::Value::Null,
    );
    fixture.advance(200);
    fixture.insert_running("one-more");
    assert_eq!(
        fixture.oracle_instance("one-more").unwrap().internal_ip,
        Some([10, 0, 0, 4].into())
    );
}

#[test]
fn launches_and_starts_fail_late_as_the_knobs_say() {
    let mut fixture = Fixture::new();
    fixture.insert_stopped("old");
    let mut rule = LateFailure::new("INTERNAL_ERROR", "broken");
    rule.instance_type = Some("e2-small".to_owned());
    fixture.engine.core.knobs.late_failures = vec![rule];
    let new = fixture.insert(&body("new"));
    let old = fixture.post(&format!("{ZONE}/instances/old/start"));
    fixture.advance(100);
    for operation in [new, old] {
        assert_eq!(codes(&fixture.operation(&operation)), ["INTERNAL_ERROR"]);
    }
    assert_eq!(
        (fixture.status("new"), fixture.status("old")),
        ("gone".to_owned(), "TERMINATED".to_owned())
    );
}
