//! Eventual consistency: reads that lag behind, and calls that do not find new resources.

use super::{Fixture, ZONE, body, names, reason};
use crate::cloud::{inject::CallContext, lag::ReadLag};
use serde_json::Value;
use std::time::Duration;

fn stale() -> CallContext {
    CallContext {
        read_lag: ReadLag::Maximum,
        ..CallContext::default()
    }
}

fn lagging() -> Fixture {
    let mut fixture = Fixture::with(|knobs| knobs.lag.reads = Duration::from_secs(1));
    fixture.advance(5_000);
    fixture
}

#[test]
fn stale_read_returns_the_past() {
    let mut fixture = lagging();
    fixture.insert(&body("vm"));
    let get = format!("GET {ZONE}/instances/vm");
    let list = format!("GET {ZONE}/instances");
    let early = fixture
        .call_with_context(&get, &Value::Null, &stale())
        .unwrap_err();
    assert_eq!(early.status, 404);
    assert_eq!(
        names(
            &fixture
                .call_with_context(&list, &Value::Null, &stale())
                .unwrap()
        ),
        [""; 0]
    );
    fixture.advance(1_000);
    assert_eq!(fixture.status("vm"), "RUNNING");
    assert_eq!(
        fixture
            .call_with_context(&get, &Value::Null, &stale())
            .unwrap()["status"],
        "PROVISIONING"
    );
    fixture.advance(1_000);
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(500);
    // It is deleted, but a lagging read may still return it.
    assert_eq!(fixture.status("vm"), "gone");
    assert_eq!(
        fixture
            .call_with_context(&get, &Value::Null, &stale())
            .unwrap()["status"],
        "RUNNING"
    );
    let running = format!("{list}?filter=status%3DRUNNING");
    assert_eq!(
        names(
            &fixture
                .call_with_context(&running, &Value::Null, &stale())
                .unwrap()
        ),
        ["vm"]
    );
    let stop = format!("POST {ZONE}/instances/vm/stop");
    assert_eq!(
        fixture.refusal(&stop, &Value::Null),
        reason(404, "notFound")
    );
    fixture.advance(1_000);
    assert_eq!(
        fixture
            .call_with_context(&get, &Value::Null, &stale())
            .unwrap_err()
            .status,
        404
    );
    assert!(fixture.engine.instances.is_empty());
}

#[test]
fn stale_read_of_a_reused_name_returns_the_old_instance() {
    let mut fixture = lagging();
    fixture.insert(&body("vm"));
    fixture.advance(2_000);
    let first = fixture.oracle_instance("vm").unwrap().id;
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(100);
    fixture.insert(&body("vm"));
    let second = fixture.oracle_instance("vm").unwrap().id;
    let get = format!("GET {ZONE}/instances/vm");
    assert_eq!(
        fixture
            .call_with_context(&get, &Value::Null, &stale())
            .unwrap()["id"],
        first
    );
    fixture.advance(1_000);
    assert_eq!(
        fixture
            .call_with_context(&get, &Value::Null, &stale())
            .unwrap()["id"],
        second
    );
}

#[test]
fn new_resource_may_not_be_found() {
    let mut fixture = Fixture::with(|knobs| knobs.lag.writes = Duration::from_secs(60));
    fixture.insert(&body("vm"));
    fixture.advance(200);
    let reset = format!("POST {ZONE}/instances/vm/reset");
    let refused = (0..20)
        .filter(|_| fixture.call(&reset, &Value::Null).is_err())
        .count();
    assert!(refused > 10, "{refused}");
    fixture.advance(60_000);
    fixture.ok(&reset, &Value::Null);
    // Its name is in use nevertheless.
    let insert = format!("POST {ZONE}/instances");
    assert_eq!(
        fixture.refusal(&insert, &body("vm")),
        reason(409, "alreadyExists")
    );
}
