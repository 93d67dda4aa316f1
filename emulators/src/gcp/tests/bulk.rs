//! instances.bulkInsert.

use super::{Lab, ZONE, codes, names, reason};
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

fn few(lab: &mut Lab, machines: u64) {
    lab.engine.core.knobs.capacity = vec![Capacity::of(machines)];
}

#[test]
fn bulk_insert_uses_free_names() {
    let mut lab = Lab::new();
    lab.running("vm-02");
    let answered = lab.ok(BULK, &bulk(3, 3));
    assert_eq!(answered["operationType"], "bulkInsert");
    let list = lab.get(&format!("{ZONE}/instances?filter=labels.batch%3Done"));
    assert_eq!(names(&list), ["vm-01", "vm-03", "vm-04"]);
    lab.pass(200);
    assert_eq!(lab.operation(&answered)["status"], "DONE");
    let group = answered["operationGroupId"].as_str().unwrap();
    let children = lab.get(&format!(
        "{ZONE}/operations?filter=operationGroupId%3D{group}"
    ));
    assert_eq!(names(&children).len(), 4);
    assert_eq!(lab.status("vm-04"), "RUNNING");
}

#[test]
fn names_may_be_given() {
    let mut lab = Lab::new();
    let mut asked = bulk(2, 2);
    asked.as_object_mut().unwrap().remove("namePattern");
    asked["perInstanceProperties"] = json!({ "red": {}, "blue": {} });
    lab.ok(BULK, &asked);
    let mut none_apart = bulk(1, 1);
    none_apart["perInstanceProperties"] = json!({});
    lab.ok(BULK, &none_apart);
    assert!(lab.truth("red").is_some() && lab.truth("blue").is_some());
    let again = lab.ok(BULK, &asked);
    lab.pass(200);
    let codes = codes(&lab.operation(&again)).join(" ");
    assert!(
        codes.starts_with("VM_MIN_COUNT_NOT_REACHED RESOURCE_ALREADY_EXISTS"),
        "{codes}"
    );
}

#[test]
fn partial_bulk_insert_respects_min_count() {
    let mut lab = Lab::new();
    few(&mut lab, 2);
    let enough = lab.ok(BULK, &bulk(3, 2));
    lab.pass(200);
    assert_eq!(codes(&lab.operation(&enough)), [""; 0]);
    assert_eq!(lab.oracle().instances.len(), 2);
    few(&mut lab, 4);
    let too_few = lab.ok(BULK, &bulk(3, 3));
    lab.pass(200);
    assert_eq!(
        codes(&lab.operation(&too_few)),
        ["VM_MIN_COUNT_NOT_REACHED", "ZONE_RESOURCE_POOL_EXHAUSTED"]
    );
    assert_eq!(lab.oracle().instances.len(), 2);
    lab.engine.core.knobs.stockout_check = LimitCheck::Immediate;
    assert_eq!(
        lab.refused(BULK, &bulk(3, 3)),
        reason(503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    );
    lab.ok(BULK, &bulk(3, 1));
    assert_eq!(lab.oracle().instances.len(), 4);
}

#[test]
fn invalid_values_are_refused() {
    let mut lab = Lab::new();
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
        let mut asked = bulk(2, 2);
        asked[field] = value;
        cases.push(asked);
    }
    let mut link = bulk(2, 2);
    link["instanceProperties"]["machineType"] = json!(format!("{ZONE}/machineTypes/e2-small"));
    cases.push(link);
    for asked in cases {
        let (status, _) = lab.refused(BULK, &asked);
        assert_eq!(status, 400, "{asked}");
    }
    assert!(lab.oracle().instances.is_empty());
}
