//! Reads and calls that lag behind.

use super::*;
use crate::cloud::lag::ReadLag;

fn stale(lab: &mut Lab, path: &str) -> Result<ApiResponse, Refusal> {
    let context = CallContext {
        read_lag: ReadLag::Maximum,
        ..CallContext::default()
    };
    lab.call_as(&format!("GET {path}"), Value::Null, &context)
}

#[test]
fn stale_read_returns_the_past() {
    let mut lab = Lab::with(|knobs| knobs.lag.reads = Duration::from_secs(10));
    lab.pass(10_000);
    lab.put("a", order());
    assert_eq!(
        stale(&mut lab, &format!("{VMS}/a")).unwrap_err().code,
        "ResourceNotFound"
    );
    assert!(stale(&mut lab, VMS).unwrap().body.contains("[]"));
    let nics = format!("{NETWORK}/networkInterfaces");
    assert!(stale(&mut lab, &nics).unwrap().body.contains("[]"));
    lab.pass(100);
    lab.pass(10_000);
    assert!(
        stale(&mut lab, &format!("{VMS}/a"))
            .unwrap()
            .body
            .contains("Succeeded")
    );
    lab.delete("a");
    // What is gone is still listed, and shown no more by its name.
    assert!(stale(&mut lab, VMS).unwrap().body.contains("\"a\""));
    lab.pass(10_000);
    assert!(stale(&mut lab, VMS).unwrap().body.contains("[]"));
}

#[test]
fn stale_read_without_lag_is_current() {
    let mut lab = Lab::new();
    lab.put("a", order());
    assert!(stale(&mut lab, &format!("{VMS}/a")).is_ok());
}

#[test]
fn new_resource_may_not_be_found() {
    let mut lab = Lab::with(|knobs| {
        knobs.lag.writes = Duration::from_secs(1000);
        knobs.seed = 7;
    });
    lab.put("a", order());
    lab.pass(100);
    let mut outcomes: Vec<bool> = Vec::new();
    for _ in 0..10 {
        let call = lab.call(&format!("POST {VMS}/a/start"), Value::Null);
        outcomes.push(call.is_ok());
    }
    assert!(outcomes.contains(&false));
    lab.pass(1_000_000);
    assert!(
        lab.call(&format!("POST {VMS}/a/start"), Value::Null)
            .is_ok()
    );
}
