//! Operations: get, list, wait, and their results.

use super::{Fixture, ZONE, body, codes, names, reason};
use crate::{
    cloud::{fault::Failure, inject::CallContext},
    gcp::{methods, wire::route},
};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn filters_and_orders_apply() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    fixture.insert_running("other");
    fixture.post(&format!("{ZONE}/instances/vm/stop"));
    fixture.advance(100);
    let kinds = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let kind = |item: &Value| item["operationType"].as_str().unwrap().to_owned();
        items.iter().map(kind).collect()
    };
    let all = fixture.get(&format!("{ZONE}/operations"));
    assert_eq!(kinds(&all), ["stop", "insert", "insert"]);
    fixture.engine.core.knobs.newest_operations_first = false;
    let all = fixture.get(&format!("{ZONE}/operations"));
    assert_eq!(kinds(&all), ["insert", "insert", "stop"]);
    let newest = format!("{ZONE}/operations?orderBy=creationTimestamp%20desc");
    assert_eq!(kinds(&fixture.get(&newest)), ["stop", "insert", "insert"]);
    let by_name = fixture.get(&format!("{ZONE}/operations?orderBy=name"));
    assert!(names(&by_name).is_sorted());
    let id = fixture.oracle_instance("vm").unwrap().id;
    let of_vm = fixture.get(&format!("{ZONE}/operations?filter=targetId%3D{id}"));
    assert_eq!(kinds(&of_vm), ["insert", "stop"]);
    let link = all["items"][0]["targetLink"].as_str().unwrap();
    let both = format!("(targetLink=\"{link}\") (operationType=insert)").replace(' ', "%20");
    let both = fixture.get(&format!(
        "{ZONE}/operations?filter={}",
        both.replace('=', "%3D")
    ));
    assert_eq!(kinds(&both), ["insert"]);
    let name = names(&all)[0].to_owned();
    let one = fixture.get(&format!("{ZONE}/operations?filter=name%3D{name}"));
    assert_eq!(names(&one), [&name]);
    let first = fixture.get(&format!("{newest}&maxResults=2"));
    assert_eq!(kinds(&first), ["stop", "insert"]);
    let token = first["nextPageToken"].as_str().unwrap();
    let rest = fixture.get(&format!("{newest}&maxResults=2&pageToken={token}"));
    assert_eq!(
        (kinds(&rest), rest.get("nextPageToken")),
        (vec!["insert".to_owned()], None)
    );
    let everywhere = fixture.get("aggregated/operations");
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
    assert_eq!(
        names(&fixture.get("regions/us-central1/operations")),
        [""; 0]
    );
}

#[test]
fn operations_are_forgotten() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.timing.operation_retention = Duration::from_millis(500);
    });
    let insert = fixture.insert(&body("vm"));
    fixture.advance(200);
    assert_eq!(fixture.operation(&insert)["status"], "DONE");
    fixture.advance(500);
    let name = insert["name"].as_str().unwrap();
    let get = format!("GET {ZONE}/operations/{name}");
    assert_eq!(fixture.refusal(&get, &Value::Null), reason(404, "notFound"));
    assert_eq!(names(&fixture.get(&format!("{ZONE}/operations"))), [""; 0]);
    assert_eq!(fixture.status("vm"), "RUNNING");
}

#[test]
fn operation_is_found_in_its_scope_only() {
    let mut fixture = Fixture::new();
    let insert = fixture.insert(&body("vm"));
    let name = insert["name"].as_str().unwrap();
    for place in ["zones/us-central1-b", "regions/us-central1", "global"] {
        let get = format!("GET {place}/operations/{name}");
        assert_eq!(
            fixture.refusal(&get, &Value::Null),
            reason(404, "notFound"),
            "{place}"
        );
    }
    let other = format!("GET /projects/q/{ZONE}/operations/{name}");
    assert_eq!(
        fixture.refusal(&other, &Value::Null),
        reason(404, "notFound")
    );
    let id = insert["id"].as_str().unwrap();
    assert_eq!(
        fixture.get(&format!("{ZONE}/operations/{id}"))["name"],
        name
    );
}

#[test]
fn wait_ends_with_the_operation_or_the_timeout() {
    let mut fixture = Fixture::with(|knobs| knobs.timing.wait = Duration::from_millis(60));
    let insert = fixture.insert(&body("vm"));
    let name = insert["name"].as_str().unwrap();
    let path = format!("/projects/p/{ZONE}/operations/{name}/wait");
    let (method, target) = route::find(&hyper::Method::POST, &path).unwrap();
    let call = methods::Call {
        method,
        target,
        query: crate::gcp::wire::query::Query::default(),
        body: bytes::Bytes::new(),
    };
    let since = fixture.engine.now();
    let left = |fixture: &Fixture| methods::remaining_wait(&call, &fixture.engine, since);
    assert_eq!(left(&fixture), Some(Duration::from_millis(60)));
    fixture.advance(60);
    assert_eq!(left(&fixture), Some(Duration::ZERO));
    assert_eq!(
        fixture.post(&format!("{ZONE}/operations/{name}/wait"))["status"],
        "RUNNING"
    );
    fixture.advance(100);
    assert_eq!(left(&fixture), None);
    assert_eq!(
        fixture.post(&format!("{ZONE}/operations/{name}/wait"))["status"],
        "DONE"
    );
}

#[test]
fn failing_insert_is_listed_until_it_fails() {
    let mut fixture = Fixture::new();
    let context = CallContext {
        planned_failures: vec![Failure::new("ONE", "first"), Failure::new("TWO", "second")],
        ..CallContext::default()
    };
    let insert = format!("POST {ZONE}/instances");
    let response = fixture
        .call_with_context(&insert, &body("vm"), &context)
        .unwrap();
    assert_eq!(names(&fixture.get(&format!("{ZONE}/instances"))), ["vm"]);
    fixture.advance(60);
    let finished = fixture.operation(&response);
    assert_eq!(
        (&finished["status"], codes(&finished)),
        (&json!("DONE"), vec!["ONE", "TWO"])
    );
    assert_eq!(finished["error"]["errors"][0]["message"], "first");
    assert_eq!(
        (
            &finished["httpErrorStatusCode"],
            &finished["httpErrorMessage"]
        ),
        (&json!(400), &json!("BAD REQUEST"))
    );
    assert_eq!(names(&fixture.get(&format!("{ZONE}/instances"))), [""; 0]);
    let oracle = fixture.oracle();
    assert!(oracle.disks.is_empty());
    fixture.insert_running("vm");
}

#[test]
fn every_operation_can_fail_by_a_fault() {
    let mut fixture = Fixture::new();
    fixture.insert_stopped("vm");
    let context = CallContext {
        planned_failures: vec![Failure::new("INTERNAL_ERROR", "broken")],
        ..CallContext::default()
    };
    let print = fixture.get(&format!("{ZONE}/instances/vm"))["labelFingerprint"].clone();
    let labels = json!({ "labelFingerprint": print, "labels": { "a": "b" } });
    for (request, body) in [
        (format!("POST {ZONE}/instances/vm/start"), Value::Null),
        (format!("POST {ZONE}/instances/vm/stop"), Value::Null),
        (format!("POST {ZONE}/instances/vm/setLabels"), labels),
        (format!("DELETE {ZONE}/instances/vm"), Value::Null),
        (format!("DELETE {ZONE}/disks/vm"), Value::Null),
    ] {
        let response = fixture
            .call_with_context(&request, &body, &context)
            .unwrap();
        fixture.advance(100);
        let finished = fixture.operation(&response);
        assert_eq!(codes(&finished), ["INTERNAL_ERROR"], "{request}");
        assert_eq!(finished["httpErrorStatusCode"], 500);
        assert_eq!(fixture.status("vm"), "TERMINATED", "{request}");
    }
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert!(
        oracle_instance.labels.is_empty()
            && !oracle_instance.holds_machine
            && oracle_instance.disks == ["vm"]
    );
}
