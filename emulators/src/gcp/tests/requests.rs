//! Request ids: the same request is executed once.

use super::{Fixture, ZONE, body, reason};
use serde_json::Value;
use std::time::Duration;

const ID: &str = "11111111-1111-4111-8111-111111111111";

fn insert(id: &str) -> String {
    format!("POST {ZONE}/instances?requestId={id}")
}

#[test]
fn same_request_returns_the_same_operation() {
    let mut fixture = Fixture::new();
    let first = fixture.ok(&insert(ID), &body("vm"));
    fixture.advance(200);
    let second = fixture.ok(&insert(ID), &body("vm"));
    assert_eq!(second["name"], first["name"]);
    assert_eq!(second["status"], "DONE");
    assert_eq!(
        fixture.oracle_instance("vm").unwrap().request_id.as_deref(),
        Some(ID)
    );
    // The operation is still returned after the instance is deleted.
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(200);
    assert_eq!(fixture.ok(&insert(ID), &body("vm"))["name"], first["name"]);
    assert!(fixture.oracle().instances.is_empty());
    let other = "22222222-2222-4222-8222-222222222222";
    assert_ne!(
        fixture.ok(&insert(other), &body("vm"))["name"],
        first["name"]
    );
}

#[test]
fn another_body_is_refused_and_another_target_is_another_request() {
    let mut fixture = Fixture::new();
    fixture.ok(&insert(ID), &body("vm"));
    assert_eq!(
        fixture.refusal(&insert(ID), &body("other")),
        reason(400, "invalid")
    );
    fixture.advance(200);
    fixture.insert_running("two");
    for name in ["vm", "two"] {
        fixture.post(&format!("{ZONE}/instances/{name}/stop?requestId={ID}"));
    }
    fixture.advance(200);
    assert_eq!(
        (fixture.status("vm"), fixture.status("two")),
        ("TERMINATED".to_owned(), "TERMINATED".to_owned())
    );
    // The same stop after a start returns the first operation and does not stop again.
    fixture.post(&format!("{ZONE}/instances/vm/start"));
    fixture.advance(200);
    fixture.post(&format!("{ZONE}/instances/vm/stop?requestId={ID}"));
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "RUNNING");
}

#[test]
fn immediately_refused_request_is_not_remembered() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    assert_eq!(
        fixture.refusal(&insert(ID), &body("vm")),
        reason(409, "alreadyExists")
    );
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(200);
    fixture.ok(&insert(ID), &body("vm"));
    assert_eq!(fixture.status("vm"), "PROVISIONING");
}

#[test]
fn requests_are_forgotten_and_never_outlive_their_operation() {
    for (request, operation) in [(400, 10_000), (10_000, 200)] {
        let mut fixture = Fixture::with(|knobs| {
            knobs.timing.request_retention = Duration::from_millis(request);
            knobs.timing.operation_retention = Duration::from_millis(operation);
        });
        fixture.ok(&insert(ID), &body("vm"));
        fixture.advance(100);
        fixture.ok(&insert(ID), &body("vm"));
        fixture.advance(400);
        assert_eq!(
            fixture.refusal(&insert(ID), &body("vm")),
            reason(409, "alreadyExists")
        );
    }
}

#[test]
fn request_id_is_remembered_from_its_last_use() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.timing.request_retention = Duration::from_millis(1_000);
        knobs.timing.operation_retention = Duration::from_millis(300);
    });
    fixture.insert_stopped("vm");
    let start = format!("{ZONE}/instances/vm/start?requestId={ID}");
    let first = fixture.post(&start);
    fixture.advance(900);
    let again = fixture.post(&start);
    assert_ne!(again["name"], first["name"]);
    // The first use has expired by now; the repeated use has not.
    fixture.advance(200);
    assert_eq!(fixture.post(&start)["name"], again["name"]);
}

#[test]
fn request_id_is_a_uuid_that_is_not_zero() {
    let mut fixture = Fixture::new();
    for invalid in ["1", "00000000-0000-0000-0000-000000000000"] {
        assert_eq!(
            fixture.refusal(&insert(invalid), &body("vm")),
            reason(400, "invalid")
        );
    }
    assert!(fixture.oracle().instances.is_empty());
    // An empty id is the same as none.
    fixture.ok(&insert(""), &body("vm"));
}
