//! Request ids: the same request is executed once.

use super::{Lab, ZONE, body, reason};
use serde_json::Value;
use std::time::Duration;

const ID: &str = "11111111-1111-4111-8111-111111111111";

fn insert(id: &str) -> String {
    format!("POST {ZONE}/instances?requestId={id}")
}

#[test]
fn the_same_request_gives_the_same_operation() {
    let mut lab = Lab::new();
    let first = lab.ok(&insert(ID), &body("vm"));
    lab.pass(200);
    let second = lab.ok(&insert(ID), &body("vm"));
    assert_eq!(second["name"], first["name"]);
    assert_eq!(second["status"], "DONE");
    assert_eq!(lab.truth("vm").unwrap().request_id.as_deref(), Some(ID));
    // Even when the instance is gone: the operation stands for what was done.
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(200);
    assert_eq!(lab.ok(&insert(ID), &body("vm"))["name"], first["name"]);
    assert!(lab.oracle().instances.is_empty());
    let other = "22222222-2222-4222-8222-222222222222";
    assert_ne!(lab.ok(&insert(other), &body("vm"))["name"], first["name"]);
}

#[test]
fn another_body_is_refused_and_another_target_is_another_request() {
    let mut lab = Lab::new();
    lab.ok(&insert(ID), &body("vm"));
    assert_eq!(
        lab.refused(&insert(ID), &body("other")),
        reason(400, "invalid")
    );
    lab.pass(200);
    lab.running("two");
    for name in ["vm", "two"] {
        lab.post(&format!("{ZONE}/instances/{name}/stop?requestId={ID}"));
    }
    lab.pass(200);
    assert_eq!(
        (lab.status("vm"), lab.status("two")),
        ("TERMINATED".to_owned(), "TERMINATED".to_owned())
    );
    // A start in between, and the same stop again: it was done.
    lab.post(&format!("{ZONE}/instances/vm/start"));
    lab.pass(200);
    lab.post(&format!("{ZONE}/instances/vm/stop?requestId={ID}"));
    lab.pass(200);
    assert_eq!(lab.status("vm"), "RUNNING");
}

#[test]
fn immediately_refused_request_is_not_remembered() {
    let mut lab = Lab::new();
    lab.running("vm");
    assert_eq!(
        lab.refused(&insert(ID), &body("vm")),
        reason(409, "alreadyExists")
    );
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(200);
    lab.ok(&insert(ID), &body("vm"));
    assert_eq!(lab.status("vm"), "PROVISIONING");
}

#[test]
fn requests_are_forgotten_and_never_outlive_their_operation() {
    for (request, operation) in [(400, 10_000), (10_000, 200)] {
        let mut lab = Lab::with(|knobs| {
            knobs.timing.request_retention = Duration::from_millis(request);
            knobs.timing.operation_retention = Duration::from_millis(operation);
        });
        lab.ok(&insert(ID), &body("vm"));
        lab.pass(100);
        lab.ok(&insert(ID), &body("vm"));
        lab.pass(400);
        assert_eq!(
            lab.refused(&insert(ID), &body("vm")),
            reason(409, "alreadyExists")
        );
    }
}

#[test]
fn request_id_is_remembered_from_its_last_use() {
    let mut lab = Lab::with(|knobs| {
        knobs.timing.request_retention = Duration::from_millis(1_000);
        knobs.timing.operation_retention = Duration::from_millis(300);
    });
    lab.stopped("vm");
    let start = format!("{ZONE}/instances/vm/start?requestId={ID}");
    let first = lab.post(&start);
    lab.pass(900);
    let again = lab.post(&start);
    assert_ne!(again["name"], first["name"]);
    // What was remembered first is over by now, what came again is not.
    lab.pass(200);
    assert_eq!(lab.post(&start)["name"], again["name"]);
}

#[test]
fn an_id_is_a_uuid_that_is_not_zero() {
    let mut lab = Lab::new();
    for bad in ["1", "00000000-0000-0000-0000-000000000000"] {
        assert_eq!(
            lab.refused(&insert(bad), &body("vm")),
            reason(400, "invalid")
        );
    }
    assert!(lab.oracle().instances.is_empty());
    // An empty one is none.
    lab.ok(&insert(""), &body("vm"));
}
