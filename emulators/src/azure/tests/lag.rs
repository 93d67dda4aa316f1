//! Stale reads, and calls that do not find new resources yet.

use super::*;
use crate::cloud::lag::ReadLag;

fn stale(fixture: &mut Fixture, path: &str) -> Result<ApiResponse, Refusal> {
    let context = CallContext {
        read_lag: ReadLag::Maximum,
        ..CallContext::default()
    };
    fixture.call_as(&format!("GET {path}"), Value::Null, &context)
}

#[test]
fn stale_read_returns_the_past() {
    let mut fixture = Fixture::with(|knobs| knobs.lag.reads = Duration::from_secs(10));
    fixture.advance(10_000);
    fixture.put("a", vm_body());
    assert_eq!(
        stale(&mut fixture, &format!("{VMS}/a")).unwrap_err().code,
        "ResourceNotFound"
    );
    assert!(stale(&mut fixture, VMS).unwrap().body.contains("[]"));
    let nics = format!("{NETWORK}/networkInterfaces");
    assert!(stale(&mut fixture, &nics).unwrap().body.contains("[]"));
    fixture.advance(100);
    fixture.advance(10_000);
    assert!(
        stale(&mut fixture, &format!("{VMS}/a"))
            .unwrap()
            .body
            .contains("Succeeded")
    );
    fixture.delete("a");
    // A deleted resource is still listed, but no longer found by its name.
    assert!(stale(&mut fixture, VMS).unwrap().body.contains("\"a\""));
    fixture.advance(10_000);
    assert!(stale(&mut fixture, VMS).unwrap().body.contains("[]"));
}

#[test]
fn stale_read_without_lag_is_current() {
    let mut fixture = Fixture::new();
    fixture.put("a", vm_body());
    assert!(stale(&mut fixture, &format!("{VMS}/a")).is_ok());
}

#[test]
fn new_resource_may_not_be_found() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.lag.writes = Duration::from_secs(1000);
        knobs.seed = 7;
    });
    fixture.put("a", vm_body());
    fixture.advance(100);
    let mut outcomes: Vec<bool> = Vec::new();
    for _ in 0..10 {
        let call = fixture.call(&format!("POST {VMS}/a/start"), Value::Null);
        outcomes.push(call.is_ok());
    }
    assert!(outcomes.contains(&false));
    fixture.advance(1_000_000);
    assert!(
        fixture
            .call(&format!("POST {VMS}/a/start"), Value::Null)
            .is_ok()
    );
}
