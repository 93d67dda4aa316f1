//! Operations: get, list, wait, and their results.

use super::{Lab, ZONE, body, codes, names, reason};
use crate::{
    cloud::{fault::Failure, inject::CallContext},
    gcp::{methods, wire::route},
};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn filters_and_orders_apply() {
    let mut lab = Lab::new();
    lab.running("vm");
    lab.running("other");
    lab.post(&format!("{ZONE}/instances/vm/stop"));
    lab.pass(100);
    let kinds = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let kind = |item: &Value| item["operationType"].as_str().unwrap().to_owned();
        items.iter().map(kind).collect()
    };
    let all = lab.get(&format!("{ZONE}/operations"));
    assert_eq!(kinds(&all), ["stop", "insert", "insert"]);
    lab.engine.core.knobs.newest_operations_first = false;
    let all = lab.get(&format!("{ZONE}/operations"));
    assert_eq!(kinds(&all), ["insert", "insert", "stop"]);
    let newest = format!("{ZONE}/operations?orderBy=creationTimestamp%20desc");
    assert_eq!(kinds(&lab.get(&newest)), ["stop", "insert", "insert"]);
    let by_name = lab.get(&format!("{ZONE}/operations?orderBy=name"));
    assert!(names(&by_name).is_sorted());
    let id = lab.truth("vm").unwrap().id;
    let of_vm = lab.get(&format!("{ZONE}/operations?filter=targetId%3D{id}"));
    assert_eq!(kinds(&of_vm), ["insert", "stop"]);
    let link = all["items"][0]["targetLink"].as_str().unwrap();
    let both = format!("(targetLink=\"{link}\") (operationType=insert)").replace(' ', "%20");
    let both = lab.get(&format!(
        "{ZONE}/operations?filter={}",
        both.replace('=', "%3D")
    ));
    assert_eq!(kinds(&both), ["insert"]);
    let name = names(&all)[0].to_owned();
    let one = lab.get(&format!("{ZONE}/operations?filter=name%3D{name}"));
    assert_eq!(names(&one), [&name]);
    let first = lab.get(&format!("{newest}&maxResults=2"));
    assert_eq!(kinds(&first), ["stop", "insert"]);
    let token = first["nextPageToken"].as_str().unwrap();
    let rest = lab.get(&format!("{newest}&maxResults=2&pageToken={token}"));
    assert_eq!(
        (kinds(&rest), rest.get("nextPageToken")),
        (vec!["insert".to_owned()], None)
    );
    let everywhere = lab.get("aggregated/operations");
    assert_eq!(
        everywhere["items"][ZONE]["operations"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        everywhere["items"]["global"]["warning"]["code"],
        "NO_RESULTS_ON_PAGE"
    );
    assert_eq!(names(&lab.get("regions/us-central1/operations")), [""; 0]);
}

#[test]
fn operations_are_forgotten() {
    let mut lab = Lab::with(|knobs| {
        knobs.timing.operation_retention = Duration::from_millis(500);
    });
    let insert = lab.insert(&body("vm"));
    lab.pass(200);
    assert_eq!(lab.operation(&insert)["status"], "DONE");
    lab.pass(500);
    let name = insert["name"].as_str().unwrap();
    let get = format!("GET {ZONE}/operations/{name}");
    assert_eq!(lab.refused(&get, &Value::Null), reason(404, "notFound"));
    assert_eq!(names(&lab.get(&format!("{ZONE}/operations"))), [""; 0]);
    assert_eq!(lab.status("vm"), "RUNNING");
}

#[test]
fn an_operation_is_of_its_scope() {
    let mut lab = Lab::new();
    let insert = lab.insert(&body("vm"));
    let name = insert["name"].as_str().unwrap();
    for place in ["zones/us-central1-b", "regions/us-central1", "global"] {
        let get = format!("GET {place}/operations/{name}");
        assert_eq!(
            lab.refused(&get, &Value::Null),
            reason(404, "notFound"),
            "{place}"
        );
    }
    let other = format!("GET /projects/q/{ZONE}/operations/{name}");
    assert_eq!(lab.refused(&other, &Value::Null), reason(404, "notFound"));
    let id = insert["id"].as_str().unwrap();
    assert_eq!(lab.get(&format!("{ZONE}/operations/{id}"))["name"], name);
}

#[test]
fn wait_ends_with_the_operation_or_the_timeout() {
    let mut lab = Lab::with(|knobs| knobs.timing.wait = Duration::from_millis(60));
    let insert = lab.insert(&body("vm"));
    let name = insert["name"].as_str().unwrap();
    let path = format!("/projects/p/{ZONE}/operations/{name}/wait");
    let (method, target) = route::find(&hyper::Method::POST, &path).unwrap();
    let call = methods::Call {
        method,
        target,
        query: crate::gcp::wire::query::Query::default(),
        body: bytes::Bytes::new(),
    };
    let since = lab.engine.now();
    let left = |lab: &Lab| methods::remaining_wait(&call, &lab.engine, since);
    assert_eq!(left(&lab), Some(Duration::from_millis(60)));
    lab.pass(60);
    assert_eq!(left(&lab), Some(Duration::ZERO));
    assert_eq!(
        lab.post(&format!("{ZONE}/operations/{name}/wait"))["status"],
        "RUNNING"
    );
    lab.pass(100);
    assert_eq!(left(&lab), None);
    assert_eq!(
        lab.post(&format!("{ZONE}/operations/{name}/wait"))["status"],
        "DONE"
    );
}

#[test]
fn failing_insert_is_listed_until_it_fails() {
    let mut lab = Lab::new();
    let context = CallContext {
        planned_failures: vec![Failure::new("ONE", "first"), Failure::new("TWO", "second")],
        ..CallContext::default()
    };
    let insert = format!("POST {ZONE}/instances");
    let answered = lab.call_as(&insert, &body("vm"), &context).unwrap();
    assert_eq!(names(&lab.get(&format!("{ZONE}/instances"))), ["vm"]);
    lab.pass(60);
    let done = lab.operation(&answered);
    assert_eq!(
        (&done["status"], codes(&done)),
        (&json!("DONE"), vec!["ONE", "TWO"])
    );
    assert_eq!(done["error"]["errors"][0]["message"], "first");
    assert_eq!(
        (&done["httpErrorStatusCode"], &done["httpErrorMessage"]),
        (&json!(400), &json!("BAD REQUEST"))
    );
    assert_eq!(names(&lab.get(&format!("{ZONE}/instances"))), [""; 0]);
    let oracle = lab.oracle();
    assert!(oracle.disks.is_empty());
    lab.running("vm");
}

#[test]
fn every_operation_can_fail_by_a_fault() {
    let mut lab = Lab::new();
    lab.stopped("vm");
    let context = CallContext {
        planned_failures: vec![Failure::new("INTERNAL_ERROR", "broken")],
        ..CallContext::default()
    };
    let print = lab.get(&format!("{ZONE}/instances/vm"))["labelFingerprint"].clone();
    let labels = json!({ "labelFingerprint": print, "labels": { "a": "b" } });
    for (request, body) in [
        (format!("POST {ZONE}/instances/vm/start"), Value::Null),
        (format!("POST {ZONE}/instances/vm/stop"), Value::Null),
        (format!("POST {ZONE}/instances/vm/setLabels"), labels),
        (format!("DELETE {ZONE}/instances/vm"), Value::Null),
        (format!("DELETE {ZONE}/disks/vm"), Value::Null),
    ] {
        let answered = lab.call_as(&request, &body, &context).unwrap();
        lab.pass(100);
        let done = lab.operation(&answered);
        assert_eq!(codes(&done), ["INTERNAL_ERROR"], "{request}");
        assert_eq!(done["httpErrorStatusCode"], 500);
        assert_eq!(lab.status("vm"), "TERMINATED", "{request}");
    }
    let truth = lab.truth("vm").unwrap();
    assert!(truth.labels.is_empty() && !truth.holds_machine && truth.disks == ["vm"]);
}
