//! The protocol over real sockets: signatures, methods, refusals, control, shutdown.

use std::{
    io::{Read as _, Write as _},
    num::NonZeroU32,
    sync::Arc,
    thread,
    time::Duration,
};

use crate::client::{AUTHORIZATION, LAUNCH, open, post, request};
use fleetwright_chaos::ManualClock;
use fleetwright_emulators::ec2::{Ec2Emulator, Knobs, Throttle};
use serde_json::{Value, json};

fn start() -> Ec2Emulator {
    Ec2Emulator::start(Knobs::default()).unwrap()
}

#[test]
fn get_and_post_are_the_same() {
    let emulator = start();
    assert!(emulator.address().ip().is_loopback());
    let posted = post(&emulator, LAUNCH).unwrap();
    assert_eq!(posted.status, 200);
    let path = "/?Action=DescribeInstances&Version=2016-11-15";
    let got = request(&emulator, "GET", path, AUTHORIZATION, b"").unwrap();
    assert_eq!(got.all("instanceId"), posted.all("instanceId"));
    assert_eq!(emulator.oracle().calls["DescribeInstances"], 1);
}

#[test]
fn invalid_request_gets_ec2s_error() {
    let mut knobs = Knobs::default();
    knobs.access_keys.insert("test".to_owned());
    let emulator = Ec2Emulator::start(knobs).unwrap();
    let describe = b"Action=DescribeInstances&Version=2016-11-15";
    let other_key = AUTHORIZATION.replace("Credential=test", "Credential=AKIASOMEBODY");
    let large = vec![b'a'; (1 << 20) + 1];
    for (method, path, authorization, body, status, code) in [
        (
            "POST",
            "/",
            AUTHORIZATION,
            &b"Version=2016-11-15"[..],
            400,
            "MissingAction",
        ),
        (
            "POST",
            "/",
            AUTHORIZATION,
            b"Action=RunDogs&Version=2016-11-15",
            400,
            "InvalidAction",
        ),
        (
            "POST",
            "/",
            AUTHORIZATION,
            b"Action=DescribeInstances",
            400,
            "MissingParameter",
        ),
        (
            "POST",
            "/",
            AUTHORIZATION,
            b"Action=DescribeInstances&Version=2006-01-01",
            400,
            "NoSuchVersion",
        ),
        (
            "POST",
            "/",
            AUTHORIZATION,
            b"Action=DescribeInstances&Version=2016-11-15&X=%00",
            400,
            "InvalidCharacter",
        ),
        ("POST", "/", "", describe, 403, "MissingAuthenticationToken"),
        (
            "POST",
            "/",
            "Basic dGVzdA==",
            describe,
            400,
            "IncompleteSignature",
        ),
        ("POST", "/", &other_key, describe, 401, "AuthFailure"),
        (
            "POST",
            "/",
            AUTHORIZATION,
            b"Action=CreateFleet&Version=2016-11-15",
            400,
            "UnsupportedOperation",
        ),
        ("PUT", "/", AUTHORIZATION, describe, 400, "InvalidRequest"),
        (
            "POST",
            "/",
            AUTHORIZATION,
            &large,
            413,
            "RequestEntityTooLarge",
        ),
    ] {
        let response = request(&emulator, method, path, authorization, body).unwrap();
        assert_eq!((response.status, response.code().as_str()), (status, code));
        assert!(!response.all("RequestID").is_empty());
    }
    // Every request is recorded; those for actions that are not emulated are counted.
    let calls = emulator.calls();
    let fleet = calls
        .iter()
        .find(|call| call.operation == "CreateFleet")
        .unwrap();
    assert_eq!(fleet.code.as_deref(), Some("UnsupportedOperation"));
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.operation == "DescribeInstances")
            .count(),
        6
    );
    let counts = emulator.oracle().calls;
    assert_eq!(counts.get("CreateFleet"), Some(&1));
    assert!(!counts.contains_key("DescribeInstances"));
}

#[test]
fn one_connection_carries_many_requests() {
    let emulator = start();
    let mut stream = open(emulator.address()).unwrap();
    let request = format!(
        "GET /?Action=DescribeInstances&Version=2016-11-15 HTTP/1.1\r\nHost: x\r\nAuthorization: {AUTHORIZATION}\r\n\
         X-Amz-Date: 20260101T000000Z\r\n\r\n"
    );
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).unwrap();
        let (mut found, mut buffer) = (Vec::new(), [0; 4096]);
        while !found.ends_with(b"</DescribeInstancesResponse>") {
            let count = stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0);
            found.extend_from_slice(&buffer[..count]);
        }
    }
    assert_eq!(emulator.oracle().calls["DescribeInstances"], 3);
}

#[test]
fn stalled_client_does_not_block_others() {
    let emulator = start();
    let mut stalled = Vec::new();
    for piece in [
        "POST / HT",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nAction=Ru",
    ] {
        let mut stream = open(emulator.address()).unwrap();
        stream.write_all(piece.as_bytes()).unwrap();
        stalled.push(stream);
    }
    assert_eq!(post(&emulator, LAUNCH).unwrap().status, 200);
    assert_eq!(emulator.oracle().calls["RunInstances"], 1);
}

#[test]
fn same_seed_gives_the_same_responses_to_the_byte() {
    let run = |seed: u64| {
        let mut knobs = Knobs::default();
        knobs.seed = seed;
        let clock = Arc::new(ManualClock::new());
        let address = ([127, 0, 0, 1], 0).into();
        let emulator = Ec2Emulator::start_on(address, knobs, clock.clone()).unwrap();
        let launched = post(&emulator, &format!("{LAUNCH}&ClientToken=t"))
            .unwrap()
            .body;
        clock.advance(Duration::from_secs(1));
        let described = post(&emulator, "Action=DescribeInstances").unwrap().body;
        let refused = post(&emulator, "Action=TerminateInstances").unwrap().body;
        [launched, described, refused]
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn concurrent_launches_with_one_token_launch_once() {
    let emulator = start();
    let form = format!("{LAUNCH}&ClientToken=race");
    let ids: Vec<Vec<String>> = thread::scope(|scope| {
        let racers: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| post(&emulator, &form).unwrap().all("instanceId")))
            .collect();
        racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect()
    });
    assert!(ids.iter().all(|other| *other == ids[0]));
    assert_eq!(emulator.oracle().instances.len(), 1);
}

#[test]
fn token_bucket_is_refilled_by_the_clock() {
    let clock = Arc::new(ManualClock::new());
    let mut knobs = Knobs::default();
    let throttle = Throttle::new(Duration::from_secs(1), NonZeroU32::MIN);
    knobs.throttle.insert("DescribeTags".to_owned(), throttle);
    let emulator = Ec2Emulator::start_on(([127, 0, 0, 1], 0).into(), knobs, clock.clone()).unwrap();
    let status = || post(&emulator, "Action=DescribeTags").unwrap().status;
    assert_eq!([status(), status()], [200, 503]);
    clock.advance(Duration::from_secs(1));
    assert_eq!([status(), status()], [200, 503]);
}

fn control(emulator: &Ec2Emulator, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let path = format!("/_emulator{path}");
    let response = request(emulator, method, &path, "", body.as_bytes()).unwrap();
    (
        response.status,
        serde_json::from_str(&response.body).unwrap(),
    )
}

#[test]
fn control_endpoint_matches_the_handle() {
    let clock = Arc::new(ManualClock::new());
    let emulator =
        Ec2Emulator::start_on(([127, 0, 0, 1], 0).into(), Knobs::default(), clock).unwrap();
    let send = |method: &str, path: &str, body: Value| control(&emulator, method, path, &body);
    let (_, root) = send("GET", "", Value::Null);
    assert_eq!(
        (&root["cloud"], &root["region"]),
        (&json!("ec2"), &json!("us-east-1"))
    );
    assert!(
        root["actions"]
            .as_array()
            .unwrap()
            .contains(&json!("RunInstances"))
    );

    let (status, knobs) = send(
        "PATCH",
        "/knobs",
        json!({ "timing": { "boot": 5000 }, "page_size": 2 }),
    );
    assert_eq!(
        (status, &knobs["timing"]["boot"], &knobs["timing"]["stop"]),
        (200, &json!(5000), &json!(100))
    );
    assert_eq!(emulator.knobs().timing.boot, Duration::from_secs(5));
    assert_eq!(send("GET", "/knobs", Value::Null).1["page_size"], 2);

    let (_, created) = send(
        "POST",
        "/external-actions",
        json!({ "action": "launch_external", "count": 3 }),
    );
    assert_eq!(created["ids"].as_array().unwrap().len(), 3);
    let state = || emulator.oracle().instances[0].state.clone();
    assert_eq!(state(), "pending");
    send("POST", "/advance", json!({ "millis": 5000 }));
    assert_eq!(state(), "running");

    let rule =
        json!({ "operation": "DescribeInstances", "nth": 1, "fault": { "kind": "throttled" } });
    send("POST", "/faults", rule.clone());
    assert_eq!(send("GET", "/faults", Value::Null).1, json!([rule]));
    assert_eq!(
        post(&emulator, "Action=DescribeInstances").unwrap().code(),
        "RequestLimitExceeded"
    );
    assert_eq!(send("GET", "/faults", Value::Null).1, json!([]));
    send(
        "POST",
        "/faults",
        json!([{ "fault": { "kind": "forbidden" } }, { "fault": { "kind": "reset" } }]),
    );
    assert_eq!(
        send("GET", "/oracle", Value::Null).1["unused_faults"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    send("DELETE", "/faults", Value::Null);
    assert_eq!(
        post(&emulator, "Action=DescribeInstances")
            .unwrap()
            .all("nextToken")
            .len(),
        1
    );

    let (_, oracle) = send("GET", "/oracle", Value::Null);
    assert_eq!(oracle["instances"].as_array().unwrap().len(), 3);
    assert_eq!(oracle["volumes"].as_array().unwrap().len(), 3);
    assert_eq!(oracle["network_interfaces"].as_array().unwrap().len(), 3);
    assert_eq!(oracle["calls"], json!({ "DescribeInstances": 2 }));
    let (_, calls) = send("GET", "/calls", Value::Null);
    assert_eq!(
        (&calls[0]["code"], &calls[1]["status"]),
        (&json!("RequestLimitExceeded"), &json!(200))
    );

    send("POST", "/reset", json!({ "seed": 9 }));
    assert!(emulator.oracle().instances.is_empty() && emulator.oracle().calls.is_empty());
    assert_eq!(emulator.knobs().seed, 9);
}

#[test]
fn invalid_control_request_is_refused_and_changes_nothing() {
    let emulator = start();
    let before = emulator.knobs();
    for (method, path, body, status) in [
        ("PATCH", "/knobs", json!({ "colour": "red" }), 400),
        ("PATCH", "/knobs", json!({ "page_size": 0 }), 400),
        (
            "POST",
            "/faults",
            json!({ "fault": { "kind": "earthquake" } }),
            400,
        ),
        (
            "POST",
            "/external-actions",
            json!({ "action": "stop", "id": "i-00000000000000bad" }),
            400,
        ),
        ("POST", "/advance", json!({}), 400),
        ("POST", "/reset", json!({ "sed": 1 }), 400),
        ("GET", "/nothing", Value::Null, 404),
        ("PUT", "/oracle", Value::Null, 404),
    ] {
        let (got, response) = control(&emulator, method, path, &body);
        assert_eq!(got, status, "{method} {path}");
        assert!(!response["error"].as_str().unwrap().is_empty());
    }
    assert_eq!(emulator.knobs(), before);
}

#[test]
fn call_records_have_tokens_and_no_signature() {
    let emulator = start();
    post(&emulator, &format!("{LAUNCH}&ClientToken=abc")).unwrap();
    let calls = emulator.calls();
    assert_eq!(calls[0].operation, "RunInstances");
    assert_eq!(calls[0].parameters["ClientToken"], "abc");
    assert!(!calls[0].parameters.contains_key("Action"));
}

#[test]
fn dropped_emulator_closes_its_port_and_connections() {
    let emulator = start();
    let address = emulator.address();
    let mut idle = open(address).unwrap();
    drop(emulator);
    assert_eq!(idle.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn time_ends_before_years_with_five_digits() {
    let emulator = start();
    let advance = |millis: u64| {
        let body = format!(r#"{{"millis": {millis}}}"#);
        request(&emulator, "POST", "/_emulator/advance", "", body.as_bytes()).unwrap()
    };
    let refused = advance(u64::MAX);
    assert_eq!(refused.status, 400);
    assert!(
        refused.body.contains("after the year 9900"),
        "{}",
        refused.body
    );
    emulator.advance(std::time::Duration::MAX);
    assert_eq!(advance(3_600_000).status, 400);
    let launched = post(&emulator, LAUNCH).unwrap().all("launchTime").remove(0);
    assert!(
        launched.starts_with("9900-01-01T") || launched.starts_with("9899-12-31T"),
        "{launched}"
    );
}
