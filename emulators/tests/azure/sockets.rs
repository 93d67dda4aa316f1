//! The protocol over real sockets: tokens, versions, paths, refusals, control.

use std::{sync::Arc, thread, time::Duration};

use crate::{
    client::{AUTHORIZATION, GROUP, VERSION, VMS, body, get, put, send, text},
    shared::http::exchange,
};
use fleetwright_chaos::ManualClock;
use fleetwright_emulators::azure::{AzureEmulator, ExternalAction, Knobs};
use serde_json::{Value, json};

fn start() -> AzureEmulator {
    AzureEmulator::start(Knobs::default()).unwrap()
}

#[test]
fn invalid_request_gets_azures_error() {
    let emulator = start();
    let list = format!("{VMS}?{VERSION}");
    let large = vec![b'a'; (1 << 20) + 1];
    let nowhere = format!("/subscriptions/s/providers/Contoso.Dogs/dogs?{VERSION}");
    for (method, path, headers, body, status, code) in [
        (
            "GET",
            list.as_str(),
            "",
            &b""[..],
            401,
            "AuthenticationFailed",
        ),
        (
            "GET",
            &list,
            "Authorization: Basic dGVzdA==\r\n",
            b"",
            401,
            "AuthenticationFailed",
        ),
        (
            "GET",
            &list,
            "Authorization: Bearer\r\n",
            b"",
            401,
            "AuthenticationFailed",
        ),
        (
            "GET",
            VMS,
            AUTHORIZATION,
            b"",
            400,
            "MissingApiVersionParameter",
        ),
        (
            "GET",
            &format!("{VMS}?api-version=new"),
            AUTHORIZATION,
            b"",
            400,
            "InvalidApiVersionParameter",
        ),
        ("GET", &nowhere, AUTHORIZATION, b"", 501, "NotEmulated"),
        (
            "GET",
            &format!("/?{VERSION}"),
            AUTHORIZATION,
            b"",
            404,
            "MissingSubscription",
        ),
        ("TRACE", &list, AUTHORIZATION, b"", 501, "NotEmulated"),
        (
            "PUT",
            &format!("{VMS}/vm?{VERSION}"),
            AUTHORIZATION,
            b"{",
            400,
            "InvalidRequestContent",
        ),
        (
            "PUT",
            &format!("{VMS}/vm?{VERSION}"),
            AUTHORIZATION,
            b"",
            400,
            "InvalidRequestContent",
        ),
        (
            "PUT",
            &format!("{VMS}/vm?{VERSION}"),
            AUTHORIZATION,
            &large,
            413,
            "RequestContentTooLarge",
        ),
    ] {
        let response = exchange(emulator.address(), method, path, headers, body).unwrap();
        assert_eq!(
            (response.status, response.code().as_str()),
            (status, code),
            "{method} {path}"
        );
        assert!(response.header("x-ms-request-id").is_some());
    }
    assert!(emulator.oracle().vms.is_empty());
}

#[test]
fn tokens_and_subscriptions_can_be_named() {
    let mut knobs = Knobs::default();
    knobs.tokens = ["other".to_owned()].into();
    knobs.subscriptions = ["s".to_owned()].into();
    let emulator = AzureEmulator::start(knobs).unwrap();
    let refused = get(&emulator, VMS).unwrap();
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (401, "InvalidAuthenticationToken")
    );
    let list = |subscription: &str| {
        let path = format!(
            "{}?{VERSION}",
            VMS.replace("/s/", &format!("/{subscription}/"))
        );
        let headers = "Authorization: bearer other\r\n";
        exchange(emulator.address(), "GET", &path, headers, b"").unwrap()
    };
    assert_eq!(list("s").status, 200);
    assert_eq!(list("t").code(), "SubscriptionNotFound");
}

#[test]
fn paths_are_of_any_case_and_names_are_decoded() {
    let emulator = start();
    put(&emulator, "Vm-1").unwrap();
    let path = format!("{}/%76m-1", VMS.to_uppercase().replace("/S/", "/s/"));
    let document = get(&emulator, &path).unwrap().json();
    assert_eq!(document["name"], "Vm-1");
}

#[test]
fn concurrent_creations_of_a_name_create_one() {
    let emulator = start();
    let statuses: Vec<u16> = thread::scope(|scope| {
        let racers: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| put(&emulator, "vm")))
            .collect();
        let responses = racers
            .into_iter()
            .map(|racer| racer.join().unwrap().unwrap());
        responses.map(|response| response.status).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 15);
    let truth = emulator.oracle();
    assert_eq!(
        (truth.vms.len(), truth.nics.len(), truth.disks.len()),
        (1, 1, 1)
    );
}

#[test]
fn same_seed_gives_the_same_responses_to_the_byte() {
    let responses = |seed: u64| {
        let mut knobs = Knobs::default();
        knobs.seed = seed;
        let clock = Arc::new(ManualClock::new());
        let address = ([127, 0, 0, 1], 0).into();
        let emulator = AzureEmulator::start_on(address, knobs, clock.clone()).unwrap();
        let created = put(&emulator, "vm").unwrap().body;
        clock.advance(Duration::from_secs(1));
        let view = get(&emulator, &format!("{VMS}/vm/instanceView"))
            .unwrap()
            .body;
        let nics = get(
            &emulator,
            &format!("{GROUP}/Microsoft.Network/networkInterfaces"),
        );
        [created, view, nics.unwrap().body]
    };
    assert_eq!(responses(7), responses(7));
    assert_ne!(responses(7), responses(8));
}

#[test]
fn calls_are_recorded_without_secrets() {
    let emulator = start();
    let mut requested = body();
    requested["tags"] = json!({ "owner": "me" });
    send(&emulator, "PUT", &format!("{VMS}/vm"), &requested).unwrap();
    let call = &emulator.calls()[0];
    assert_eq!(call.operation, "VirtualMachines_CreateOrUpdate");
    assert_eq!(call.parameters["body.tags.owner"], "me");
    assert_eq!(call.parameters["api-version"], "2024-11-01");
    assert_eq!((call.status, call.fault.as_ref()), (Some(201), None));
    assert!(!format!("{call:?}").contains("Secret-1"));
    assert!(!format!("{call:?}").contains("Bearer"));
}

#[test]
fn console_needs_no_token() {
    let emulator = start();
    let mut requested = body();
    requested["properties"]["diagnosticsProfile"] =
        json!({ "bootDiagnostics": { "enabled": true } });
    let path = format!("{VMS}/vm");
    send(&emulator, "PUT", &path, &requested).unwrap();
    emulator.advance(Duration::from_secs(1));
    let retrieve = format!("{path}/retrieveBootDiagnosticsData");
    let urls = send(&emulator, "POST", &retrieve, &Value::Null)
        .unwrap()
        .json();
    let url = urls["serialConsoleLogBlobUri"].as_str().unwrap();
    let path = url.strip_prefix(&emulator.endpoint()).unwrap();
    let console = exchange(emulator.address(), "GET", path, "", b"").unwrap();
    assert_eq!(console.status, 200);
    assert!(console.body.contains("booted"));
    assert_eq!(
        console.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
}

#[test]
fn control_endpoint_changes_knobs_performs_actions_and_resets() {
    let emulator = start();
    let control = |method: &str, path: &str, body: &Value| {
        let body = text(body);
        let path = format!("/_emulator{path}");
        let response = exchange(emulator.address(), method, &path, "", body.as_bytes()).unwrap();
        (response.status, response.json())
    };
    let (_, description) = control("GET", "", &Value::Null);
    assert_eq!(description["cloud"], "azure");
    let (status, knobs) = control("PATCH", "/knobs", &json!({ "timing": { "boot": 5 } }));
    assert_eq!((status, &knobs["timing"]["boot"]), (200, &json!(5)));
    assert_eq!(emulator.knobs().timing.boot, Duration::from_millis(5));
    let action = json!({ "action": "create_external", "count": 2, "subscription": "s" });
    assert_eq!(
        control("POST", "/external-actions", &action).1["ids"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        control("POST", "/external-actions", &json!({ "action": "dance" })).0,
        400
    );
    let fault =
        json!({ "operation": "VirtualMachines_Get", "fault": { "kind": "operation_expired" } });
    assert_eq!(control("POST", "/faults", &fault).0, 200);
    assert_eq!(emulator.unused_faults().len(), 1);
    control("POST", "/advance", &json!({ "millis": 1000 }));
    let (_, oracle) = control("GET", "/oracle", &Value::Null);
    assert_eq!(oracle["vms"][0]["power_state"], "running");
    control("POST", "/reset", &json!({ "seed": 9 }));
    assert!(emulator.oracle().vms.is_empty());
    assert_eq!(emulator.knobs().seed, 9);
    let id = format!("{VMS}/none");
    assert!(
        emulator
            .perform_external(ExternalAction::Delete { id })
            .is_err()
    );
}
