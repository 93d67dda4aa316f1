//! The API over real sockets: paths, tokens, throttling, refusals, control.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use crate::{
    client::{INSTANCES, body, get, insert, post, send},
    shared::http::exchange,
};
use fleetwright_chaos::ManualClock;
use fleetwright_emulators::gcp::{ExternalAction, GcpEmulator, Knobs, Throttle};
use serde_json::{Value, json};

fn start() -> GcpEmulator {
    GcpEmulator::start(Knobs::default()).unwrap()
}

#[test]
fn instance_lifecycle() {
    let emulator = start();
    assert!(emulator.address().ip().is_loopback());
    let operation = insert(&emulator, "vm").unwrap();
    assert!(operation.head.contains("content-type: application/json"));
    let name = operation.json()["name"].as_str().unwrap().to_owned();
    let wait = INSTANCES.replace("instances", &format!("operations/{name}/wait"));
    let finished = post(&emulator, &wait, &Value::Null).unwrap().json();
    assert_eq!(finished["status"], "DONE");
    let found = get(&emulator, &format!("{INSTANCES}/vm")).unwrap().json();
    assert_eq!(found["status"], "RUNNING");
    let short = INSTANCES.strip_prefix("/compute/v1").unwrap();
    assert_eq!(
        get(&emulator, &format!("{short}/vm")).unwrap().json(),
        found
    );
    send(&emulator, "DELETE", &format!("{INSTANCES}/vm"), b"").unwrap();
    emulator.advance(Duration::from_secs(1));
    assert_eq!(
        get(&emulator, &format!("{INSTANCES}/vm")).unwrap().reason(),
        "notFound"
    );
    assert!(emulator.oracle().instances.is_empty());
    assert_eq!(emulator.oracle().calls["instances.get"], 3);
}

#[test]
fn client_query_additions_are_accepted() {
    let emulator = start();
    for query in [
        "alt=json",
        "$alt=json",
        "prettyPrint=true&alt=json",
        "filter=&pageToken=",
    ] {
        let response = get(&emulator, &format!("{INSTANCES}?{query}")).unwrap();
        assert_eq!(response.status, 200, "{query}");
    }
    for query in ["fields=items(name)", "alt=media", "nonsense=1", "filter=x"] {
        let response = get(&emulator, &format!("{INSTANCES}?{query}")).unwrap();
        assert_eq!(response.status, 400, "{query}");
    }
}

#[test]
fn invalid_request_gets_an_error() {
    let emulator = start();
    let large = vec![b' '; (1 << 20) + 1];
    for (method, path, body, status) in [
        ("GET", "/", &b""[..], 404),
        (
            "GET",
            "/compute/v1/projects/p/zones/us-central1-a/dogs",
            b"",
            404,
        ),
        ("PUT", INSTANCES, b"{}", 404),
        ("POST", INSTANCES, b"", 400),
        ("POST", INSTANCES, b"{", 400),
        ("POST", INSTANCES, b"[]", 400),
        ("POST", INSTANCES, &large, 413),
    ] {
        let response = send(&emulator, method, path, body).unwrap();
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.json()["error"]["code"], status);
    }
    assert!(emulator.oracle().instances.is_empty());
}

#[test]
fn tokens_are_checked_if_configured() {
    let mut knobs = Knobs::default();
    knobs.access_tokens.insert("secret".to_owned());
    let emulator = GcpEmulator::start(knobs).unwrap();
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Basic secret\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
    ] {
        let response = exchange(emulator.address(), "GET", INSTANCES, headers, b"").unwrap();
        assert_eq!(response.status, status, "{headers}");
    }
}

#[test]
fn too_many_calls_are_refused() {
    let clock = Arc::new(ManualClock::new());
    let mut knobs = Knobs::default();
    let mut throttle = Throttle::new(Duration::from_secs(3), NonZeroU32::MIN);
    throttle.retry_after = true;
    knobs.throttle.insert("instances.list".to_owned(), throttle);
    let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let emulator = GcpEmulator::start_on(address, knobs.clone(), clock.clone()).unwrap();
    assert_eq!(get(&emulator, INSTANCES).unwrap().status, 200);
    let refused = get(&emulator, INSTANCES).unwrap();
    assert_eq!(
        (refused.status, refused.reason().as_str()),
        (403, "rateLimitExceeded")
    );
    assert!(refused.head.contains("retry-after: 3"));
    clock.advance(Duration::from_secs(3));
    assert_eq!(get(&emulator, INSTANCES).unwrap().status, 200);
    knobs.throttle_status = 429;
    emulator.set_knobs(knobs);
    get(&emulator, INSTANCES).unwrap();
    assert_eq!(get(&emulator, INSTANCES).unwrap().status, 429);
    assert_eq!(
        get(&emulator, &format!("{INSTANCES}/vm")).unwrap().status,
        404
    );
}

#[test]
fn call_record_has_the_parameters() {
    let emulator = start();
    let id = "11111111-1111-4111-8111-111111111111";
    let path = format!("{INSTANCES}?requestId={id}");
    let mut requested = body("vm");
    requested["labels"] = json!({ "a": "b" });
    post(&emulator, &path, &requested).unwrap();
    let calls = emulator.calls();
    let parameters = &calls[0].parameters;
    assert_eq!(parameters["requestId"], id);
    assert_eq!(
        (&*parameters["project"], &*parameters["zone"]),
        ("p", "us-central1-a")
    );
    assert_eq!(parameters["body.labels"], r#"{"a":"b"}"#);
    assert_eq!((calls[0].status, &calls[0].code), (Some(200), &None));
}

#[test]
fn control_endpoint_matches_the_handle() {
    let emulator = start();
    let control = |method: &str, path: &str, body: &Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        send(
            &emulator,
            method,
            &format!("/_emulator{path}"),
            body.as_bytes(),
        )
        .unwrap()
    };
    let about = control("GET", "", &Value::Null).json();
    assert_eq!(about["cloud"], "gcp");
    let patch = json!({ "timing": { "stop": 7 }, "unreachable_zones": ["us-central1-f"] });
    let knobs = control("PATCH", "/knobs", &patch).json();
    assert_eq!(
        (&knobs["timing"]["stop"], &knobs["timing"]["stage"]),
        (&json!(7), &json!(50))
    );
    assert_eq!(emulator.knobs().timing.stop, Duration::from_millis(7));
    assert_eq!(
        control("PATCH", "/knobs", &json!({ "timing": { "nap": 1 } })).status,
        400
    );
    let rule = json!({ "operation": "instances.insert", "nth": 1, "fault": { "kind": "operation_error",
        "errors": [{ "code": "X", "message": "y" }] } });
    assert_eq!(control("POST", "/faults", &rule).status, 200);
    assert_eq!(
        control("GET", "/faults", &Value::Null).json(),
        json!([rule])
    );
    control("DELETE", "/faults", &Value::Null);
    assert!(emulator.unused_faults().is_empty());
    let launch = json!({ "action": "launch_external", "project": "p", "name": "theirs" });
    let ids = control("POST", "/external-actions", &launch).json();
    control("POST", "/advance", &json!({ "millis": 5000 }));
    let oracle = control("GET", "/oracle", &Value::Null).json();
    assert_eq!(oracle["instances"][0]["id"], ids["ids"][0]);
    assert_eq!(oracle["instances"][0]["status"], "RUNNING");
    assert_eq!(control("POST", "/external-actions", &launch).status, 400);
    let stop = ExternalAction::Stop {
        instance: "projects/p/zones/us-central1-a/instances/theirs".to_owned(),
    };
    assert_eq!(emulator.perform_external(stop).unwrap().len(), 1);
    control("POST", "/reset", &json!({ "seed": 9 }));
    assert_eq!(
        (emulator.knobs().seed, emulator.oracle().instances.len()),
        (9, 0)
    );
    assert_eq!(control("GET", "/calls", &Value::Null).json(), json!([]));
    assert_eq!(control("GET", "/nonsense", &Value::Null).status, 404);
}
