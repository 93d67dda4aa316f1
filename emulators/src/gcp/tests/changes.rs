//! setLabels, setMetadata, setMachineType.

use super::{Lab, ZONE, codes, reason};
use serde_json::{Value, json};

fn instance(lab: &mut Lab) -> Value {
    lab.get(&format!("{ZONE}/instances/vm"))
}

#[test]
fn labels_are_replaced_with_the_current_fingerprint() {
    let mut lab = Lab::new();
    lab.running("vm");
    let print = instance(&mut lab)["labelFingerprint"].clone();
    let set = format!("POST {ZONE}/instances/vm/setLabels");
    let change = |value: &str| json!({ "labelFingerprint": print, "labels": { "a": value } });
    let first = lab.ok(&set, &change("1"));
    let second = lab.ok(&set, &change("2"));
    // Nothing has changed yet, so both were taken; one of them fails.
    assert_eq!(instance(&mut lab)["labelFingerprint"], print);
    lab.pass(50);
    assert_eq!(codes(&lab.operation(&first)), [""; 0]);
    let late = lab.operation(&second);
    assert_eq!(
        (codes(&late), &late["httpErrorStatusCode"]),
        (vec!["CONDITION_NOT_MET"], &json!(412))
    );
    assert_eq!(instance(&mut lab)["labels"], json!({ "a": "1" }));
    assert_eq!(
        lab.refused(&set, &change("3")),
        reason(412, "conditionNotMet")
    );
    let without = json!({ "labels": {} });
    assert_eq!(lab.refused(&set, &without), reason(412, "conditionNotMet"));
    let bad = json!({ "labelFingerprint": print, "labels": { "A": "" } });
    assert_eq!(lab.refused(&set, &bad), reason(400, "invalid"));
    // All of them, none left.
    let print = instance(&mut lab)["labelFingerprint"]
        .as_str()
        .unwrap()
        .replace('+', "-");
    let print = print.replace('/', "_");
    lab.ok(&set, &json!({ "labelFingerprint": print }));
    lab.pass(50);
    assert!(lab.truth("vm").unwrap().labels.is_empty());
}

#[test]
fn metadata_is_replaced_with_the_current_fingerprint() {
    let mut lab = Lab::new();
    lab.running("vm");
    let print = instance(&mut lab)["metadata"]["fingerprint"].clone();
    let set = format!("POST {ZONE}/instances/vm/setMetadata");
    let items = json!([{ "key": "k", "value": "v" }, { "key": "empty", "value": "" }]);
    lab.ok(&set, &json!({ "fingerprint": print, "items": items }));
    lab.pass(50);
    assert_eq!(instance(&mut lab)["metadata"]["items"], items);
    let stale = json!({ "fingerprint": print, "items": [] });
    assert_eq!(lab.refused(&set, &stale), reason(412, "conditionNotMet"));
}

#[test]
fn the_machine_type_changes_while_it_is_stopped() {
    let mut lab = Lab::new();
    lab.running("vm");
    let set = format!("POST {ZONE}/instances/vm/setMachineType");
    let medium = json!({ "machineType": format!("{ZONE}/machineTypes/e2-medium") });
    assert_eq!(lab.refused(&set, &medium), reason(400, "invalid"));
    lab.post(&format!("{ZONE}/instances/vm/stop"));
    lab.pass(200);
    let unknown = json!({ "machineType": format!("{ZONE}/machineTypes/none") });
    assert_eq!(lab.refused(&set, &unknown), reason(400, "invalid"));
    lab.ok(&set, &medium);
    lab.pass(50);
    assert_eq!(lab.truth("vm").unwrap().machine_type, "e2-medium");
    let again = lab.ok(&set, &medium);
    lab.post(&format!("{ZONE}/instances/vm/start"));
    lab.pass(50);
    assert_eq!(codes(&lab.operation(&again)), ["RESOURCE_NOT_READY"]);
}
