//! stop, start, reset, suspend, resume, delete.

use super::{Fixture, ZONE, body, codes, reason};
use serde_json::{Value, json};

fn post(verb: &str) -> String {
    format!("{ZONE}/instances/vm/{verb}")
}

#[test]
fn stop_releases_only_the_machine_and_external_address() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let before = fixture.oracle_instance("vm").unwrap();
    let stop = fixture.post(&post("stop"));
    assert_eq!(fixture.status("vm"), "STOPPING");
    assert_eq!(fixture.oracle_instance("vm").unwrap().nat_ip, None);
    fixture.advance(100);
    assert_eq!(fixture.operation(&stop)["status"], "DONE");
    let stopped = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (stopped.status.as_str(), stopped.holds_machine),
        ("TERMINATED", false)
    );
    assert_eq!((&stopped.id, &stopped.disks), (&before.id, &before.disks));
    assert_eq!(stopped.internal_ip, before.internal_ip);
    let start = fixture.post(&post("start"));
    assert_eq!(fixture.status("vm"), "PROVISIONING");
    fixture.advance(200);
    assert_eq!(fixture.operation(&start)["status"], "DONE");
    let again = fixture.oracle_instance("vm").unwrap();
    assert_eq!((again.status.as_str(), again.boots), ("RUNNING", 2));
    assert_ne!(again.nat_ip, before.nat_ip);
    assert_eq!(again.internal_ip, before.internal_ip);
}

#[test]
fn call_in_the_target_state_is_an_operation_without_effect() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let start = fixture.post(&post("start"));
    fixture.advance(50);
    assert_eq!(fixture.operation(&start)["status"], "DONE");
    assert_eq!(fixture.oracle_instance("vm").unwrap().boots, 1);
    fixture.post(&post("stop"));
    let twice = fixture.post(&post("stop"));
    fixture.advance(100);
    let stop = fixture.post(&post("stop"));
    fixture.advance(50);
    assert_eq!(fixture.operation(&twice)["status"], "DONE");
    assert_eq!(fixture.operation(&stop)["status"], "DONE");
    assert_eq!(fixture.status("vm"), "TERMINATED");
}

#[test]
fn resource_that_is_not_ready_is_refused() {
    let mut fixture = Fixture::new();
    fixture.insert(&body("vm"));
    for verb in ["stop", "suspend", "reset"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            fixture.refusal(&request, &Value::Null),
            reason(400, "resourceNotReady"),
            "{verb}"
        );
    }
    fixture.advance(200);
    fixture.post(&post("stop"));
    for verb in ["start", "suspend", "resume", "reset"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            fixture.refusal(&request, &Value::Null),
            reason(400, "resourceNotReady"),
            "{verb}"
        );
    }
    fixture.advance(200);
    let resume = format!("POST {}", post("resume"));
    assert_eq!(
        fixture.refusal(&resume, &Value::Null),
        reason(400, "invalid")
    );
    let missing = format!("POST {ZONE}/instances/other/stop");
    assert_eq!(
        fixture.refusal(&missing, &Value::Null),
        reason(404, "notFound")
    );
}

#[test]
fn suspended_instance_is_resumed_and_not_started() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    fixture.post(&post("suspend"));
    assert_eq!(fixture.status("vm"), "SUSPENDING");
    fixture.advance(100);
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (
            oracle_instance.status.as_str(),
            oracle_instance.holds_machine
        ),
        ("SUSPENDED", false)
    );
    let start = format!("POST {}", post("start"));
    assert_eq!(
        fixture.refusal(&start, &Value::Null),
        reason(400, "invalid")
    );
    fixture.post(&post("resume"));
    fixture.advance(200);
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (oracle_instance.status.as_str(), oracle_instance.boots),
        ("RUNNING", 1)
    );
    fixture.post(&post("suspend"));
    fixture.advance(100);
    fixture.post(&post("stop"));
    fixture.advance(100);
    assert_eq!(fixture.status("vm"), "TERMINATED");
}

#[test]
fn reset_boots_again() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let address = fixture.oracle_instance("vm").unwrap().nat_ip;
    let reset = fixture.post(&post("reset"));
    fixture.advance(50);
    assert_eq!(fixture.operation(&reset)["operationType"], "reset");
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (
            oracle_instance.boots,
            oracle_instance.nat_ip,
            oracle_instance.status.as_str()
        ),
        (2, address, "RUNNING")
    );
    let serial = fixture.get(&format!("{ZONE}/instances/vm/serialPort"));
    assert_eq!(
        serial["contents"]
            .as_str()
            .unwrap()
            .matches("booted")
            .count(),
        2
    );
    let next = serial["next"].as_str().unwrap();
    let rest = fixture.get(&format!(
        "{ZONE}/instances/vm/serialPort?start={next}&port=1"
    ));
    assert_eq!(
        (&rest["contents"], &rest["start"]),
        (&json!(""), &serial["next"])
    );
    let port = format!("GET {ZONE}/instances/vm/serialPort?port=5");
    assert_eq!(fixture.refusal(&port, &Value::Null), reason(400, "invalid"));
}

#[test]
fn local_ssd_requires_discard_option() {
    let mut fixture = Fixture::new();
    let mut requested = body("vm");
    let local = json!({
        "type": "SCRATCH",
        "autoDelete": true,
        "initializeParams": { "diskType": format!("{ZONE}/diskTypes/local-ssd") },
    });
    requested["disks"].as_array_mut().unwrap().push(local);
    fixture.insert(&requested);
    fixture.advance(200);
    for verb in ["stop", "suspend"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            fixture.refusal(&request, &Value::Null),
            reason(400, "badRequest")
        );
    }
    assert_eq!(fixture.status("vm"), "RUNNING");
    for discard in ["true", "False"] {
        fixture.post(&post(&format!("stop?discardLocalSsd={discard}")));
        fixture.advance(100);
        assert_eq!(fixture.status("vm"), "TERMINATED");
        fixture.post(&post("start"));
        fixture.advance(200);
    }
}

#[test]
fn deleted_instance_is_stopping_and_then_not_found() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let delete = format!("DELETE {ZONE}/instances/vm");
    let response = fixture.ok(&delete, &Value::Null);
    assert_eq!(fixture.status("vm"), "STOPPING");
    // One more delete is accepted; the next one is refused.
    let again = fixture.ok(&delete, &Value::Null);
    assert_ne!(again["name"], response["name"]);
    assert_eq!(
        fixture.refusal(&delete, &Value::Null),
        reason(403, "rateLimitExceeded")
    );
    fixture.advance(100);
    assert_eq!(fixture.status("vm"), "gone");
    assert_eq!(fixture.operation(&response)["status"], "DONE");
    assert_eq!(fixture.operation(&again)["status"], "DONE");
    assert_eq!(
        fixture.refusal(&delete, &Value::Null),
        reason(404, "notFound")
    );
    let oracle = fixture.oracle();
    assert!(oracle.instances.is_empty() && oracle.disks.is_empty());
}

#[test]
fn protected_instance_cannot_be_deleted() {
    let mut fixture = Fixture::new();
    let mut requested = body("vm");
    requested["deletionProtection"] = json!(true);
    fixture.insert(&requested);
    fixture.advance(200);
    let delete = format!("DELETE {ZONE}/instances/vm");
    assert_eq!(
        fixture.refusal(&delete, &Value::Null),
        reason(400, "invalidResourceUsage")
    );
    assert_eq!(fixture.status("vm"), "RUNNING");
}

#[test]
fn delete_preempts_a_running_operation() {
    let mut fixture = Fixture::new();
    let insert = fixture.insert(&body("vm"));
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    let insert = fixture.operation(&insert);
    assert_eq!(
        (&insert["status"], codes(&insert)),
        (&json!("DONE"), vec!["RESOURCE_NOT_FOUND"])
    );
    assert_eq!(insert["httpErrorStatusCode"], 404);
    fixture.advance(300);
    assert_eq!(fixture.status("vm"), "gone");
    fixture.insert_running("vm");
    let stop = fixture.post(&post("stop"));
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    assert_eq!(codes(&fixture.operation(&stop)), [""; 0]);
}

#[test]
fn stop_operation_can_end_before_the_instance_stops() {
    let mut fixture = Fixture::with(|knobs| knobs.stop_done_early = true);
    fixture.insert_running("vm");
    let stop = fixture.post(&post("stop"));
    fixture.advance(50);
    assert_eq!(fixture.operation(&stop)["status"], "DONE");
    assert_eq!(fixture.status("vm"), "STOPPING");
    fixture.advance(100);
    assert_eq!(fixture.status("vm"), "TERMINATED");
}
