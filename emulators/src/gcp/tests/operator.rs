//! External actions.

use super::{Lab, ZONE, body};
use crate::{cloud::CloudEngine as _, gcp::ExternalAction};
use serde_json::{Value, json};

fn act(lab: &mut Lab, act: &Value) -> Result<Vec<String>, crate::gcp::Refusal> {
    let act: ExternalAction = serde_json::from_value(act.clone()).unwrap();
    lab.engine.perform(act)
}

fn on(kind: &str) -> Value {
    json!({ "action": kind, "instance": format!("projects/p/{ZONE}/instances/vm") })
}

fn last_kind(lab: &Lab) -> String {
    lab.oracle()
        .operations
        .last()
        .unwrap()
        .operation_type
        .clone()
}

#[test]
fn external_actor_creates_instances_and_disks() {
    let mut lab = Lab::new();
    let launch = json!({
        "action": "launch_external", "project": "p", "zone": "us-central1-b", "name": "theirs", "count": 2,
        "labels": { "team": "other" }, "metadata": { "a": "b" },
    });
    assert_eq!(act(&mut lab, &launch).unwrap().len(), 2);
    lab.pass(200);
    let truth = lab.truth("theirs-1").unwrap();
    assert!(truth.external);
    assert_eq!(
        (truth.status.as_str(), truth.zone.as_str()),
        ("RUNNING", "us-central1-b")
    );
    assert_eq!(
        (&*truth.labels["team"], &*truth.metadata["a"]),
        ("other", "b")
    );
    let disk = json!({ "action": "add_disk", "project": "p", "zone": "us-central1-a", "name": "left", "gib": 7 });
    act(&mut lab, &disk).unwrap();
    assert_eq!(lab.get(&format!("{ZONE}/disks/left"))["sizeGb"], "7");
    assert!(act(&mut lab, &disk).is_err());
}

#[test]
fn external_actor_stops_suspends_repairs_and_deletes() {
    let mut lab = Lab::new();
    lab.running("vm");
    act(&mut lab, &on("stop")).unwrap();
    lab.pass(200);
    assert_eq!(lab.status("vm"), "TERMINATED");
    assert!(act(&mut lab, &on("stop")).is_err());
    lab.post(&format!("{ZONE}/instances/vm/start"));
    lab.pass(200);
    act(&mut lab, &on("repair")).unwrap();
    assert_eq!(lab.status("vm"), "REPAIRING");
    lab.pass(200);
    assert_eq!(
        (lab.status("vm").as_str(), lab.truth("vm").unwrap().boots),
        ("RUNNING", 3)
    );
    act(&mut lab, &on("suspend")).unwrap();
    lab.pass(200);
    assert_eq!(lab.status("vm"), "SUSPENDED");
    lab.post(&format!("{ZONE}/instances/vm/resume"));
    lab.pass(200);
    act(&mut lab, &on("guest_shutdown")).unwrap();
    assert_eq!(last_kind(&lab), "compute.instances.guestTerminate");
    lab.pass(200);
    assert_eq!(lab.status("vm"), "TERMINATED");
    act(&mut lab, &on("delete")).unwrap();
    lab.pass(200);
    assert_eq!(lab.status("vm"), "gone");
    assert!(act(&mut lab, &on("delete")).is_err());
    let nonsense = json!({ "action": "stop", "instance": "vm" });
    assert!(act(&mut lab, &nonsense).is_err());
}

#[test]
fn spot_machine_is_preempted() {
    let mut lab = Lab::new();
    for (action, after) in [("STOP", "TERMINATED"), ("DELETE", "gone")] {
        let mut spot = body("vm");
        spot["scheduling"] =
            json!({ "provisioningModel": "SPOT", "instanceTerminationAction": action });
        lab.insert(&spot);
        lab.pass(200);
        act(&mut lab, &on("preempt")).unwrap();
        assert_eq!(last_kind(&lab), "compute.instances.preempted");
        lab.pass(200);
        assert_eq!(lab.status("vm"), after);
        if after != "gone" {
            act(&mut lab, &on("delete")).unwrap();
            lab.pass(200);
        }
    }
    let mut spot = body("vm");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    let insert = lab.insert(&spot);
    act(&mut lab, &on("preempt")).unwrap();
    assert_eq!(
        super::codes(&lab.operation(&insert)),
        ["UNSUPPORTED_OPERATION"]
    );
    lab.pass(200);
    assert_eq!(lab.status("vm"), "TERMINATED");
}

#[test]
fn external_actor_changes_labels_metadata_and_images() {
    let mut lab = Lab::new();
    lab.running("vm");
    let mut labels = on("set_labels");
    labels["labels"] = json!({ "x": "y" });
    act(&mut lab, &labels).unwrap();
    let mut metadata = on("set_metadata");
    metadata["metadata"] = json!({ "k": "v" });
    act(&mut lab, &metadata).unwrap();
    let truth = lab.truth("vm").unwrap();
    assert_eq!((&*truth.labels["x"], &*truth.metadata["k"]), ("y", "v"));
    labels["labels"] = json!({ "X": "" });
    assert!(act(&mut lab, &labels).is_err());
    let image = json!({
        "action": "delete_image", "project": "debian-cloud", "name": "debian-12-bookworm-v20260201",
    });
    act(&mut lab, &image).unwrap();
    let newest = lab.get("/projects/debian-cloud/global/images/family/debian-12");
    assert_eq!(newest["name"], "debian-12-bookworm-v20260101");
    assert!(act(&mut lab, &image).is_err());
    let knobs = lab.engine.core.knobs.clone();
    lab.engine.set_knobs(knobs);
    assert!(act(&mut lab, &image).is_err());
}
