//! setLabels, setMetadata, setMachineType.

use super::{Fixture, ZONE, codes, reason};
use serde_json::{Value, json};

fn instance(fixture: &mut Fixture) -> Value {
    fixture.get(&format!("{ZONE}/instances/vm"))
}

#[test]
fn labels_are_replaced_with_the_current_fingerprint() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let print = instance(&mut fixture)["labelFingerprint"].clone();
    let set = format!("POST {ZONE}/instances/vm/setLabels");
    let change = |value: &str| json!({ "labelFingerprint": print, "labels": { "a": value } });
    let first = fixture.ok(&set, &change("1"));
    let second = fixture.ok(&set, &change("2"));
    // Both calls are accepted, because nothing has changed yet; one operation fails.
    assert_eq!(instance(&mut fixture)["labelFingerprint"], print);
    fixture.advance(50);
    assert_eq!(codes(&fixture.operation(&first)), [""; 0]);
    let late = fixture.operation(&second);
    assert_eq!(
        (codes(&late), &late["httpErrorStatusCode"]),
        (vec!["CONDITION_NOT_MET"], &json!(412))
    );
    assert_eq!(instance(&mut fixture)["labels"], json!({ "a": "1" }));
    assert_eq!(
        fixture.refusal(&set, &change("3")),
        reason(412, "conditionNotMet")
    );
    let without = json!({ "labels": {} });
    assert_eq!(
        fixture.refusal(&set, &without),
        reason(412, "conditionNotMet")
    );
    let invalid = json!({ "labelFingerprint": print, "labels": { "A": "" } });
    assert_eq!(fixture.refusal(&set, &invalid), reason(400, "invalid"));
    // All labels are replaced.
    let print = instance(&mut fixture)["labelFingerprint"]
        .as_str()
        .unwrap()
        .replace('+', "-");
    let print = print.replace('/', "_");
    fixture.ok(&set, &json!({ "labelFingerprint": print }));
    fixture.advance(50);
    assert!(fixture.oracle_instance("vm").unwrap().labels.is_empty());
}

#[test]
fn metadata_is_replaced_with_the_current_fingerprint() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let print = instance(&mut fixture)["metadata"]["fingerprint"].clone();
    let set = format!("POST {ZONE}/instances/vm/setMetadata");
    let items = json!([{ "key": "k", "value": "v" }, { "key": "empty", "value": "" }]);
    fixture.ok(&set, &json!({ "fingerprint": print, "items": items }));
    fixture.advance(50);
    assert_eq!(instance(&mut fixture)["metadata"]["items"], items);
    let stale = json!({ "fingerprint": print, "items": [] });
    assert_eq!(
        fixture.refusal(&set, &stale),
        reason(412, "conditionNotMet")
    );
}

#[test]
fn machine_type_changes_while_stopped() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let set = format!("POST {ZONE}/instances/vm/setMachineType");
    let medium = json!({ "machineType": format!("{ZONE}/machineTypes/e2-medium") });
    assert_eq!(fixture.refusal(&set, &medium), reason(400, "invalid"));
    fixture.post(&format!("{ZONE}/instances/vm/stop"));
    fixture.advance(200);
    let unknown = json!({ "machineType": format!("{ZONE}/machineTypes/none") });
    assert_eq!(fixture.refusal(&set, &unknown), reason(400, "invalid"));
    fixture.ok(&set, &medium);
    fixture.advance(50);
    assert_eq!(
        fixture.oracle_instance("vm").unwrap().machine_type,
        "e2-medium"
    );
    let again = fixture.ok(&set, &medium);
    fixture.post(&format!("{ZONE}/instances/vm/start"));
    fixture.advance(50);
    assert_eq!(codes(&fixture.operation(&again)), ["RESOURCE_NOT_READY"]);
}
