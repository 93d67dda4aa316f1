//! External actions.

use super::{Fixture, ZONE, body};
use crate::{cloud::CloudEngine as _, gcp::ExternalAction};
use serde_json::{Value, json};

fn act(fixture: &mut Fixture, act: &Value) -> Result<Vec<String>, crate::gcp::Refusal> {
    let act: ExternalAction = serde_json::from_value(act.clone()).unwrap();
    fixture.engine.perform(act)
}

fn action_on(kind: &str) -> Value {
    json!({ "action": kind, "instance": format!("projects/p/{ZONE}/instances/vm") })
}

fn last_kind(fixture: &Fixture) -> String {
    fixture
        .oracle()
        .operations
        .last()
        .unwrap()
        .operation_type
        .clone()
}

#[test]
fn external_actor_creates_instances_and_disks() {
    let mut fixture = Fixture::new();
    let launch = json!({
        "action": "launch_external", "project": "p", "zone": "us-central1-b", "name": "theirs", "count": 2,
        "labels": { "team": "other" }, "metadata": { "a": "b" },
    });
    assert_eq!(act(&mut fixture, &launch).unwrap().len(), 2);
    fixture.advance(200);
    let oracle_instance = fixture.oracle_instance("theirs-1").unwrap();
    assert!(oracle_instance.external);
    assert_eq!(
        (
            oracle_instance.status.as_str(),
            oracle_instance.zone.as_str()
        ),
        ("RUNNING", "us-central1-b")
    );
    assert_eq!(
        (
            &*oracle_instance.labels["team"],
            &*oracle_instance.metadata["a"]
        ),
        ("other", "b")
    );
    let disk = json!({ "action": "add_disk", "project": "p", "zone": "us-central1-a", "name": "left", "gib": 7 });
    act(&mut fixture, &disk).unwrap();
    assert_eq!(fixture.get(&format!("{ZONE}/disks/left"))["sizeGb"], "7");
    assert_eq!(last_kind(&fixture), "insert");
    assert!(act(&mut fixture, &disk).is_err());
    // An external actor cannot do more than the API.
    for (field, value) in [("zone", "us-central1-z"), ("machine_type", "e2-gigantic")] {
        let mut odd = launch.clone();
        odd[field] = value.into();
        assert_eq!(act(&mut fixture, &odd).unwrap_err().status, 400, "{field}");
    }
    let mut nowhere = disk.clone();
    nowhere["zone"] = "us-central1-z".into();
    assert_eq!(act(&mut fixture, &nowhere).unwrap_err().status, 400);
}

#[test]
fn external_launch_that_exceeds_a_limit_creates_nothing() {
    let launch = |count: u32| json!({ "action": "launch_external", "project": "p", "zone": "us-central1-a", "count": count });
    // The default subnetwork is a /20, of which Compute Engine reserves four addresses.
    let mut fixture = Fixture::new();
    let refusal = act(&mut fixture, &launch(4_093)).unwrap_err();
    assert_eq!((refusal.status, &*refusal.reason), (400, "limitExceeded"));
    assert!(
        refusal.message.contains("IP_SPACE_EXHAUSTED"),
        "{}",
        refusal.message
    );
    assert!(fixture.oracle().instances.is_empty());
    assert_eq!(act(&mut fixture, &launch(4_092)).unwrap().len(), 4_092);
    fixture.advance(200);
    assert_eq!(fixture.oracle().instances.len(), 4_092, "all of them stay");
    assert!(act(&mut fixture, &launch(1)).is_err());
    let mut fixture = Fixture::with(|knobs| knobs.capacity = vec![crate::gcp::Capacity::of(2)]);
    assert!(act(&mut fixture, &launch(3)).is_err());
    assert_eq!(act(&mut fixture, &launch(2)).unwrap().len(), 2);
}

#[test]
fn external_actor_stops_suspends_repairs_and_deletes() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    act(&mut fixture, &action_on("stop")).unwrap();
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "TERMINATED");
    assert!(act(&mut fixture, &action_on("stop")).is_err());
    fixture.post(&format!("{ZONE}/instances/vm/start"));
    fixture.advance(200);
    act(&mut fixture, &action_on("repair")).unwrap();
    assert_eq!(last_kind(&fixture), "compute.instances.hostError");
    assert_eq!(fixture.status("vm"), "REPAIRING");
    fixture.advance(200);
    assert_eq!(
        (
            fixture.status("vm").as_str(),
            fixture.oracle_instance("vm").unwrap().boots
        ),
        ("RUNNING", 3)
    );
    act(&mut fixture, &action_on("suspend")).unwrap();
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "SUSPENDED");
    fixture.post(&format!("{ZONE}/instances/vm/resume"));
    fixture.advance(200);
    act(&mut fixture, &action_on("guest_shutdown")).unwrap();
    assert_eq!(last_kind(&fixture), "compute.instances.guestTerminate");
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "TERMINATED");
    act(&mut fixture, &action_on("delete")).unwrap();
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "gone");
    assert!(act(&mut fixture, &action_on("delete")).is_err());
    let invalid_path = json!({ "action": "stop", "instance": "vm" });
    assert!(act(&mut fixture, &invalid_path).is_err());
}

#[test]
fn spot_machine_is_preempted() {
    let mut fixture = Fixture::new();
    for (action, after) in [("STOP", "TERMINATED"), ("DELETE", "gone")] {
        let mut spot = body("vm");
        spot["scheduling"] =
            json!({ "provisioningModel": "SPOT", "instanceTerminationAction": action });
        fixture.insert(&spot);
        fixture.advance(200);
        act(&mut fixture, &action_on("preempt")).unwrap();
        assert_eq!(last_kind(&fixture), "compute.instances.preempted");
        fixture.advance(200);
        assert_eq!(fixture.status("vm"), after);
        if after != "gone" {
            act(&mut fixture, &action_on("delete")).unwrap();
            fixture.advance(200);
        }
    }
    let mut spot = body("vm");
    spot["scheduling"] = json!({ "provisioningModel": "SPOT" });
    let insert = fixture.insert(&spot);
    act(&mut fixture, &action_on("preempt")).unwrap();
    assert_eq!(
        super::codes(&fixture.operation(&insert)),
        ["UNSUPPORTED_OPERATION"]
    );
    fixture.advance(200);
    assert_eq!(fixture.status("vm"), "TERMINATED");
}

#[test]
fn external_actor_changes_labels_metadata_and_images() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let mut labels = action_on("set_labels");
    labels["labels"] = json!({ "x": "y" });
    act(&mut fixture, &labels).unwrap();
    assert_eq!(last_kind(&fixture), "setLabels");
    let mut metadata = action_on("set_metadata");
    metadata["metadata"] = json!({ "k": "v" });
    act(&mut fixture, &metadata).unwrap();
    assert_eq!(last_kind(&fixture), "setMetadata");
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (
            &*oracle_instance.labels["x"],
            &*oracle_instance.metadata["k"]
        ),
        ("y", "v")
    );
    labels["labels"] = json!({ "X": "" });
    assert!(act(&mut fixture, &labels).is_err());
    let image = json!({
        "action": "delete_image", "project": "debian-cloud", "name": "debian-12-bookworm-v20260201",
    });
    act(&mut fixture, &image).unwrap();
    assert_eq!(last_kind(&fixture), "delete");
    let newest = fixture.get("/projects/debian-cloud/global/images/family/debian-12");
    assert_eq!(newest["name"], "debian-12-bookworm-v20260101");
    assert!(act(&mut fixture, &image).is_err());
    let knobs = fixture.engine.core.knobs.clone();
    fixture.engine.set_knobs(knobs);
    assert!(act(&mut fixture, &image).is_err());
}
