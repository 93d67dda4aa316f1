//! Every fault over real sockets: the response to the client, and the effect of the call.

use std::time::Duration;

use crate::client::{INSTANCES, Response, get, insert, post};
use crate::shared::faults::{PHASES, check_no_response, send_hanging, start_with_fault};
use fleetwright_emulators::gcp::{
    Failure, Fault, FaultRule, Gcp, GcpEmulator, Knobs, Method, Phase, Timing,
};
use serde_json::Value;

/// Inserts an instance with a fault injected. Returns the response, and how many instances exist.
fn insert_with_fault(fault: Fault) -> (std::io::Result<Response>, usize) {
    let emulator = start_with_fault::<Gcp>(fault, Method::InstancesInsert);
    let response = insert(&emulator, "vm");
    assert!(emulator.unused_faults().is_empty());
    assert_eq!(emulator.oracle().calls["instances.insert"], 1);
    let created = emulator.oracle().instances.len();
    // The fault does not apply to the next call.
    assert_eq!(insert(&emulator, "other").unwrap().status, 200);
    (response, created)
}

#[test]
fn lost_call_gets_no_byte_and_phase_decides_the_effect() {
    for (phase, created) in PHASES {
        let (response, found) = insert_with_fault(Fault::Lost { phase });
        assert!(response.is_err());
        assert_eq!(found, created);
    }
}

#[test]
fn broken_responses_are_sent() {
    let (response, created) = insert_with_fault(Fault::Reset);
    assert!(response.is_err() && created == 1);
    let (response, created) = insert_with_fault(Fault::Truncated);
    let body = response.unwrap().body;
    assert!(body.starts_with('{') && serde_json::from_str::<Value>(&body).is_err() && created == 1);
    let (response, created) = insert_with_fault(Fault::Malformed);
    let response = response.unwrap();
    assert!(response.status == 200 && response.body.starts_with("<html>") && created == 1);
}

#[test]
fn refusals_have_their_reasons_and_no_effect() {
    let throttled = Fault::Throttled {
        retry_after_secs: Some(7),
    };
    let before = Fault::ServerError {
        phase: Phase::Before,
    };
    let other = Fault::Refused {
        status: 409,
        code: "operationInProgress".to_owned(),
        message: "wait".to_owned(),
    };
    for (fault, status, reason) in [
        (throttled, 403, "rateLimitExceeded"),
        (before, 500, "backendError"),
        (Fault::ExpiredCredentials, 401, "authError"),
        (Fault::Forbidden, 403, "forbidden"),
        (Fault::Capacity, 503, "ZONE_RESOURCE_POOL_EXHAUSTED"),
        (Fault::Quota, 403, "quotaExceeded"),
        (other, 409, "operationInProgress"),
    ] {
        let after = matches!(fault, Fault::Throttled { .. });
        let (response, created) = insert_with_fault(fault);
        let response = response.unwrap();
        assert_eq!(
            (response.status, response.reason().as_str(), created),
            (status, reason, 0)
        );
        assert_eq!(response.head.contains("retry-after: 7"), after);
    }
    let (response, created) = insert_with_fault(Fault::ServerError {
        phase: Phase::After,
    });
    assert_eq!((response.unwrap().status, created), (500, 1));
}

#[test]
fn delay_and_hang_faults_apply() {
    for (phase, created) in PHASES {
        let by = Duration::from_millis(30);
        let (response, found) = insert_with_fault(Fault::Delay { phase, by });
        assert_eq!((response.unwrap().status, found), (200, 1));
        let emulator = start_with_fault::<Gcp>(Fault::Hang { phase }, Method::ZonesList);
        let head = "GET /compute/v1/projects/p/zones HTTP/1.1\r\nHost: x\r\n\r\n";
        let stream = send_hanging(&emulator, head);
        // The phase decides whether the call is executed.
        assert_eq!(emulator.calls()[0].status.is_some(), created == 1);
        check_no_response(emulator, stream);
    }
}

#[test]
fn operation_faults_apply() {
    let errors = vec![Failure::new("ONE", "first"), Failure::new("TWO", "second")];
    let late = Fault::LateFailure {
        code: "ONE".to_owned(),
        message: "first".to_owned(),
    };
    for (fault, count) in [(Fault::OperationError { errors }, 2), (late, 1)] {
        let emulator = start_with_fault::<Gcp>(fault, Method::InstancesInsert);
        let operation = insert(&emulator, "vm").unwrap().json();
        let name = operation["name"].as_str().unwrap();
        let path = INSTANCES.replace("instances", &format!("operations/{name}"));
        let operation = post(&emulator, &format!("{path}/wait"), &Value::Null)
            .unwrap()
            .json();
        assert_eq!(operation["status"], "DONE");
        assert_eq!(
            operation["error"]["errors"].as_array().unwrap().len(),
            count
        );
        assert_eq!(emulator.oracle().instances.len(), 0);
        for method in [Method::ZoneOperationsGet, Method::ZoneOperationsWait] {
            emulator.add_fault(FaultRule::nth(method, 1, Fault::OperationExpired));
        }
        assert_eq!(get(&emulator, &path).unwrap().reason(), "notFound");
        let wait = post(&emulator, &format!("{path}/wait"), &Value::Null).unwrap();
        assert_eq!(wait.status, 404);
        assert_eq!(get(&emulator, &path).unwrap().status, 200);
    }
}

#[test]
fn page_and_read_faults_apply() {
    let emulator = GcpEmulator::start(Knobs::default()).unwrap();
    insert(&emulator, "vm").unwrap();
    let list = Method::InstancesList;
    let state = "PONDERING".to_owned();
    emulator.add_fault(FaultRule::nth(list, 1, Fault::EmptyPage));
    emulator.add_fault(FaultRule::nth(list, 2, Fault::RepeatedToken));
    emulator.add_fault(FaultRule::nth(list, 3, Fault::UnknownState { state }));
    emulator.add_fault(FaultRule::nth(list, 4, Fault::StaleRead));
    let empty = get(&emulator, INSTANCES).unwrap().json();
    assert!(empty.get("items").is_none());
    let token = empty["nextPageToken"].as_str().unwrap();
    let repeated = get(&emulator, &format!("{INSTANCES}?pageToken={token}")).unwrap();
    assert_eq!(repeated.json()["nextPageToken"], token);
    let unknown = get(&emulator, INSTANCES).unwrap().json();
    assert_eq!(unknown["items"][0]["status"], "PONDERING");
    let mut knobs = emulator.knobs();
    knobs.lag.reads = Duration::from_secs(3600);
    emulator.set_knobs(knobs);
    assert!(
        get(&emulator, INSTANCES)
            .unwrap()
            .json()
            .get("items")
            .is_none()
    );
    assert!(emulator.unused_faults().is_empty());
}

#[test]
fn wait_returns_after_the_timeout() {
    let mut knobs = Knobs::default();
    knobs.timing = Timing::all(Duration::from_secs(3600));
    knobs.timing.wait = Duration::from_millis(20);
    let emulator = GcpEmulator::start(knobs).unwrap();
    let operation = insert(&emulator, "vm").unwrap().json();
    let name = operation["name"].as_str().unwrap();
    let path = INSTANCES.replace("instances", &format!("operations/{name}/wait"));
    let waited = post(&emulator, &path, &Value::Null).unwrap().json();
    assert_eq!(waited["status"], "PENDING");
    emulator.advance(Duration::from_secs(2 * 3600));
    let waited = post(&emulator, &path, &Value::Null).unwrap().json();
    assert_eq!(waited["status"], "DONE");
}
