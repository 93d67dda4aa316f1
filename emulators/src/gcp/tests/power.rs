//! stop, start, reset, suspend, resume, delete.

use super::{Lab, ZONE, body, codes, reason};
use serde_json::{Value, json};

fn post(verb: &str) -> String {
    format!("{ZONE}/instances/vm/{verb}")
}

#[test]
fn stop_releases_only_the_machine_and_external_address() {
    let mut lab = Lab::new();
    lab.running("vm");
    let before = lab.truth("vm").unwrap();
    let stop = lab.post(&post("stop"));
    assert_eq!(lab.status("vm"), "STOPPING");
    assert_eq!(lab.truth("vm").unwrap().nat_ip, None);
    lab.pass(100);
    assert_eq!(lab.operation(&stop)["status"], "DONE");
    let stopped = lab.truth("vm").unwrap();
    assert_eq!(
        (stopped.status.as_str(), stopped.holds_machine),
        ("TERMINATED", false)
    );
    assert_eq!((&stopped.id, &stopped.disks), (&before.id, &before.disks));
    assert_eq!(stopped.internal_ip, before.internal_ip);
    let start = lab.post(&post("start"));
    assert_eq!(lab.status("vm"), "PROVISIONING");
    lab.pass(200);
    assert_eq!(lab.operation(&start)["status"], "DONE");
    let again = lab.truth("vm").unwrap();
    assert_eq!((again.status.as_str(), again.boots), ("RUNNING", 2));
    assert_ne!(again.nat_ip, before.nat_ip);
    assert_eq!(again.internal_ip, before.internal_ip);
}

#[test]
fn call_in_the_target_state_is_an_operation_without_effect() {
    let mut lab = Lab::new();
    lab.running("vm");
    let start = lab.post(&post("start"));
    lab.pass(50);
    assert_eq!(lab.operation(&start)["status"], "DONE");
    assert_eq!(lab.truth("vm").unwrap().boots, 1);
    lab.post(&post("stop"));
    let twice = lab.post(&post("stop"));
    lab.pass(100);
    let stop = lab.post(&post("stop"));
    lab.pass(50);
    assert_eq!(lab.operation(&twice)["status"], "DONE");
    assert_eq!(lab.operation(&stop)["status"], "DONE");
    assert_eq!(lab.status("vm"), "TERMINATED");
}

#[test]
fn resource_that_is_not_ready_is_refused() {
    let mut lab = Lab::new();
    lab.insert(&body("vm"));
    for verb in ["stop", "suspend", "reset"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            lab.refused(&request, &Value::Null),
            reason(400, "resourceNotReady"),
            "{verb}"
        );
    }
    lab.pass(200);
    lab.post(&post("stop"));
    for verb in ["start", "suspend", "resume", "reset"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            lab.refused(&request, &Value::Null),
            reason(400, "resourceNotReady"),
            "{verb}"
        );
    }
    lab.pass(200);
    let resume = format!("POST {}", post("resume"));
    assert_eq!(lab.refused(&resume, &Value::Null), reason(400, "invalid"));
    let missing = format!("POST {ZONE}/instances/other/stop");
    assert_eq!(lab.refused(&missing, &Value::Null), reason(404, "notFound"));
}

#[test]
fn a_suspended_instance_is_resumed_and_not_started() {
    let mut lab = Lab::new();
    lab.running("vm");
    lab.post(&post("suspend"));
    assert_eq!(lab.status("vm"), "SUSPENDING");
    lab.pass(100);
    let truth = lab.truth("vm").unwrap();
    assert_eq!(
        (truth.status.as_str(), truth.holds_machine),
        ("SUSPENDED", false)
    );
    let start = format!("POST {}", post("start"));
    assert_eq!(lab.refused(&start, &Value::Null), reason(400, "invalid"));
    lab.post(&post("resume"));
    lab.pass(200);
    let truth = lab.truth("vm").unwrap();
    assert_eq!((truth.status.as_str(), truth.boots), ("RUNNING", 1));
    lab.post(&post("suspend"));
    lab.pass(100);
    lab.post(&post("stop"));
    lab.pass(100);
    assert_eq!(lab.status("vm"), "TERMINATED");
}

#[test]
fn a_reset_boots_again() {
    let mut lab = Lab::new();
    lab.running("vm");
    let address = lab.truth("vm").unwrap().nat_ip;
    let reset = lab.post(&post("reset"));
    lab.pass(50);
    assert_eq!(lab.operation(&reset)["operationType"], "reset");
    let truth = lab.truth("vm").unwrap();
    assert_eq!(
        (truth.boots, truth.nat_ip, truth.status.as_str()),
        (2, address, "RUNNING")
    );
    let serial = lab.get(&format!("{ZONE}/instances/vm/serialPort"));
    assert_eq!(
        serial["contents"]
            .as_str()
            .unwrap()
            .matches("booted")
            .count(),
        2
    );
    let next = serial["next"].as_str().unwrap();
    let rest = lab.get(&format!(
        "{ZONE}/instances/vm/serialPort?start={next}&port=1"
    ));
    assert_eq!(
        (&rest["contents"], &rest["start"]),
        (&json!(""), &serial["next"])
    );
    let port = format!("GET {ZONE}/instances/vm/serialPort?port=5");
    assert_eq!(lab.refused(&port, &Value::Null), reason(400, "invalid"));
}

#[test]
fn local_ssd_requires_discard_option() {
    let mut lab = Lab::new();
    let mut asked = body("vm");
    let local = json!({
        "type": "SCRATCH",
        "autoDelete": true,
        "initializeParams": { "diskType": format!("{ZONE}/diskTypes/local-ssd") },
    });
    asked["disks"].as_array_mut().unwrap().push(local);
    lab.insert(&asked);
    lab.pass(200);
    for verb in ["stop", "suspend"] {
        let request = format!("POST {}", post(verb));
        assert_eq!(
            lab.refused(&request, &Value::Null),
            reason(400, "badRequest")
        );
    }
    assert_eq!(lab.status("vm"), "RUNNING");
    for discard in ["true", "False"] {
        lab.post(&post(&format!("stop?discardLocalSsd={discard}")));
        lab.pass(100);
        assert_eq!(lab.status("vm"), "TERMINATED");
        lab.post(&post("start"));
        lab.pass(200);
    }
}

#[test]
fn deleted_instance_is_stopping_and_then_not_found() {
    let mut lab = Lab::new();
    lab.running("vm");
    let delete = format!("DELETE {ZONE}/instances/vm");
    let answered = lab.ok(&delete, &Value::Null);
    assert_eq!(lab.status("vm"), "STOPPING");
    // Once more is taken, and then it is too much.
    let again = lab.ok(&delete, &Value::Null);
    assert_ne!(again["name"], answered["name"]);
    assert_eq!(
        lab.refused(&delete, &Value::Null),
        reason(403, "rateLimitExceeded")
    );
    lab.pass(100);
    assert_eq!(lab.status("vm"), "gone");
    assert_eq!(lab.operation(&answered)["status"], "DONE");
    assert_eq!(lab.operation(&again)["status"], "DONE");
    assert_eq!(lab.refused(&delete, &Value::Null), reason(404, "notFound"));
    let oracle = lab.oracle();
    assert!(oracle.instances.is_empty() && oracle.disks.is_empty());
}

#[test]
fn protection_holds() {
    let mut lab = Lab::new();
    let mut asked = body("vm");
    asked["deletionProtection"] = json!(true);
    lab.insert(&asked);
    lab.pass(200);
    let delete = format!("DELETE {ZONE}/instances/vm");
    assert_eq!(
        lab.refused(&delete, &Value::Null),
        reason(400, "invalidResourceUsage")
    );
    assert_eq!(lab.status("vm"), "RUNNING");
}

#[test]
fn delete_preempts_a_running_operation() {
    let mut lab = Lab::new();
    let insert = lab.insert(&body("vm"));
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    let insert = lab.operation(&insert);
    assert_eq!(
        (&insert["status"], codes(&insert)),
        (&json!("DONE"), vec!["RESOURCE_NOT_FOUND"])
    );
    assert_eq!(insert["httpErrorStatusCode"], 404);
    lab.pass(300);
    assert_eq!(lab.status("vm"), "gone");
    lab.running("vm");
    let stop = lab.post(&post("stop"));
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    assert_eq!(codes(&lab.operation(&stop)), [""; 0]);
}

#[test]
fn stop_operation_can_end_before_the_instance_stops() {
    let mut lab = Lab::with(|knobs| knobs.stop_done_early = true);
    lab.running("vm");
    let stop = lab.post(&post("stop"));
    lab.pass(50);
    assert_eq!(lab.operation(&stop)["status"], "DONE");
    assert_eq!(lab.status("vm"), "STOPPING");
    lab.pass(100);
    assert_eq!(lab.status("vm"), "TERMINATED");
}
