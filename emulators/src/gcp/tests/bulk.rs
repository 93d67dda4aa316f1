//! instances.bulkInsert.

use super::{Fixture, ZONE, codes, names, reason};
use crate::gcp::{Capacity, LimitCheck};
use serde_json::{Value, json};

const BULK: &str = "POST zones/us-central1-a/instances/bulkInsert";

fn bulk(count: u32, least: u32) -> Value {
    let mut properties = super::body("");
    properties.as_object_mut().unwrap().remove("name");
    properties["machineType"] = json!("e2-small");
    properties["labels"] = json!({ "batch": "one" });
    json!({
        "count": count.to_string(),
        "minCount": least.to_string(),
        "namePattern": "vm-##",
        "instanceProperties": properties,
    })
}

fn set_capacity(fixture: &mut Fixture, machines: u64) {
    fixture.engine.core.knobs.capacity = vec![Capacity::of(machines)];
}

#[test]
fn bulk_insert_uses_free_names() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm-02");
    let response = fixture.ok(BULK, &bulk(3, 3));
    assert_eq!(response["operationType"], "bulkInsert");
    let list = fixture.get(&format!("{ZONE}/instances?filter=labels.batch%3Done"));
    assert_eq!(names(&list), ["vm-01", "vm-03", "vm-04"]);
    fixture.advance(200);
    assert_eq!(fixture.operation(&response)["status"], "DONE");
    let group = response["operationGroupId"].as_str().unwrap();
    let children = fixture.get(&format!(
        "{ZONE}/operations?filter=operationGroupId%3D{group}"
    ));
    assert_eq!(names(&children).len(), 4);
    assert_eq!(fixture.status("vm-04"), "RUNNING");
}

#[test]
fn bulk_insert_uses_given_names() {
    let mut fixture = Fixture::new();
    let mut requested = bulk(2, 2);
    requested.as_object_mut().unwrap().remove("namePattern");
    requested["perInstanceProperties"] = json!({ "red": {}, "blue": {} });
    fixture.ok(BULK, &requested);
    let mut none_apart = bulk(1, 1);
    none_apart["perInstanceProperties"] = json!({});
    fixture.ok(BULK, &none_apart);
    assert!(fixture.oracle_instance("red").is_some() && fixture.oracle_instance("blue").is_some());
    let again = fixture.ok(BULK, &requested);
    fixture.advance(200);
    let codes = codes(&fixture.operation(&again)).join(" ");
    assert!(
        codes.starts_with("VM_MIN_COUNT_NOT_REACHED RESOURCE_ALREADY_EXISTS"),
        "{codes}"
    );
}

#[test]
fn partial_bulk_insert_respects_min_count() {
    let mut fixture = Fixture::new();
    set_capacity(&mut fixture, 2);
    let enough = fixture.ok(BULK, &bulk(3, 2));
    fixture.advance(200);
    assert_eq!(codes(&fixture.operation(&enough)), [""; 0]);
    assert_eq!(fixture.oracle().instances.len(), 2);
    // The operation of the third one has the reason.
    let group = enough["operationGroupId"].as_str().unwrap();
    let children = fixture.get(&format!(
        "{ZONE}/operations?filter=operationGroupId%3D{group}"
    ));
    let children = children["items"].as_array().unwrap();
    let third = children.iter().find(|child| {
        let target = child["targetLink"].as_str().unwrap();
        target.ends_with("/instances/vm-03")
    });
    assert_eq!(codes(third.unwrap()), ["ZONE_RESOURCE_POOL_EXHAUSTED"]);
    set_capacity(&mut fixture, 4);
    let too_few = fixture.ok(BULK, &bulk(3, 3));
    fixture.advance(200);
    assert_eq!(
        codes(&fixture.operation(&too_few)),
        ["VM_MIN_COUNT_NOT_REACHED", "ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
    assert_eq!(fixture.oracle().instances.len(), 2);
    fixture.engine.core.knobs.stockout_check = LimitCheck::Immediate;
    assert_eq!(
        fixture.refusal(BULK, &bulk(3, 3)),
        reason(503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    );
    fixture.ok(BULK, &bulk(3, 1));
    assert_eq!(fixture.oracle().instances.len(), 4);
}

#[test]
fn invalid_values_are_refused() {
    let mut fixture = Fixture::new();
    let mut cases = Vec::new();
    for (field, value) in [
        ("count", json!("0")),
        ("count", Value::Null),
        ("minCount", json!("9")),
        ("namePattern", json!("no-number")),
        ("namePattern", json!("Bad-#")),
        ("namePattern", Value::Null),
        ("perInstanceProperties", json!({ "a": {} })),
        ("instanceProperties", Value::Null),
        ("locationPolicy", json!({ "locations": { "a": {} } })),
        ("nonsense", json!(1)),
    ] {
        let mut requested = bulk(2, 2);
        requested[field] = value;
        cases.push(requested);
    }
    let mut link = bulk(2, 2);
    link["instanceProperties"]["machineType"] = json!(format!("{ZONE}/machineTypes/e2-small"));
    cases.push(link);
    for requested in cases {
        let (status, _) = fixture.refusal(BULK, &requested);
        assert_eq!(status, 400, "{requested}");
    }
    assert!(fixture.oracle().instances.is_empty());
}
