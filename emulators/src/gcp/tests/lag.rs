//! Eventual consistency: reads that lag behind, and calls that do not find new resources.

use super::{Lab, ZONE, body, names, reason};
use crate::cloud::{inject::CallContext, lag::ReadLag};
use serde_json::Value;
use std::time::Duration;

fn stale() -> CallContext {
    CallContext {
        read_lag: ReadLag::Maximum,
        ..CallContext::default()
    }
}

fn lagging() -> Lab {
    let mut lab = Lab::with(|knobs| knobs.lag.reads = Duration::from_secs(1));
    lab.pass(5_000);
    lab
}

#[test]
fn stale_read_returns_the_past() {
    let mut lab = lagging();
    lab.insert(&body("vm"));
    let get = format!("GET {ZONE}/instances/vm");
    let list = format!("GET {ZONE}/instances");
    let early = lab.call_as(&get, &Value::Null, &stale()).unwrap_err();
    assert_eq!(early.status, 404);
    assert_eq!(
        names(&lab.call_as(&list, &Value::Null, &stale()).unwrap()),
        [""; 0]
    );
    lab.pass(1_000);
    assert_eq!(lab.status("vm"), "RUNNING");
    assert_eq!(
        lab.call_as(&get, &Value::Null, &stale()).unwrap()["status"],
        "PROVISIONING"
    );
    lab.pass(1_000);
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(500);
    // It is deleted, but a lagging read may still return it.
    assert_eq!(lab.status("vm"), "gone");
    assert_eq!(
        lab.call_as(&get, &Value::Null, &stale()).unwrap()["status"],
        "RUNNING"
    );
    let running = format!("{list}?filter=status%3DRUNNING");
    assert_eq!(
        names(&lab.call_as(&running, &Value::Null, &stale()).unwrap()),
        ["vm"]
    );
    let stop = format!("POST {ZONE}/instances/vm/stop");
    assert_eq!(lab.refused(&stop, &Value::Null), reason(404, "notFound"));
    lab.pass(1_000);
    assert_eq!(
        lab.call_as(&get, &Value::Null, &stale())
            .unwrap_err()
            .status,
        404
    );
    assert!(lab.engine.instances.is_empty());
}

#[test]
fn stale_read_of_a_reused_name_returns_the_old_instance() {
    let mut lab = lagging();
    lab.insert(&body("vm"));
    lab.pass(2_000);
    let first = lab.truth("vm").unwrap().id;
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(100);
    lab.insert(&body("vm"));
    let second = lab.truth("vm").unwrap().id;
    let get = format!("GET {ZONE}/instances/vm");
    assert_eq!(
        lab.call_as(&get, &Value::Null, &stale()).unwrap()["id"],
        first
    );
    lab.pass(1_000);
    assert_eq!(
        lab.call_as(&get, &Value::Null, &stale()).unwrap()["id"],
        second
    );
}

#[test]
fn new_resource_may_not_be_found() {
    let mut lab = Lab::with(|knobs| knobs.lag.writes = Duration::from_secs(60));
    lab.insert(&body("vm"));
    lab.pass(200);
    let reset = format!("POST {ZONE}/instances/vm/reset");
    let refused = (0..20)
        .filter(|_| lab.call(&reset, &Value::Null).is_err())
        .count();
    assert!(refused > 10, "{refused}");
    lab.pass(60_000);
    lab.ok(&reset, &Value::Null);
    // Its name is taken all the same.
    let insert = format!("POST {ZONE}/instances");
    assert_eq!(
        lab.refused(&insert, &body("vm")),
        reason(409, "alreadyExists")
    );
}
