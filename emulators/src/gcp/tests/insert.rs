//! instances.insert: what it creates, and what it refuses.

use super::{Lab, ZONE, body, names, reason};
use serde_json::{Value, json};

const INSERT: &str = "POST zones/us-central1-a/instances";

/// The body with one field set, by its JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut changed = body("vm");
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap()[field] = value;
    changed
}

#[test]
fn an_instance_passes_its_states_and_its_operation_follows() {
    let mut lab = Lab::new();
    let answered = lab.insert(&body("vm"));
    assert_eq!(answered["kind"], "compute#operation");
    assert_eq!(answered["operationType"], "insert");
    assert_eq!(
        (&answered["status"], &answered["progress"]),
        (&json!("PENDING"), &json!(0))
    );
    let mut seen = Vec::new();
    for _ in 0..4 {
        let operation = lab.operation(&answered)["status"].clone();
        seen.push((lab.status("vm"), operation.as_str().unwrap().to_owned()));
        lab.pass(30);
    }
    let seen: Vec<_> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("PROVISIONING", "PENDING"),
            ("PROVISIONING", "RUNNING"),
            ("STAGING", "RUNNING"),
            ("STAGING", "RUNNING"),
        ]
    );
    let done = lab.operation(&answered);
    assert_eq!(
        (&done["status"], &done["progress"]),
        (&json!("DONE"), &json!(100))
    );
    assert_eq!(done.get("error"), None);
    let instance = lab.get(&format!("{ZONE}/instances/vm"));
    assert_eq!(instance["status"], "RUNNING");
    assert_eq!(instance["id"], done["targetId"]);
    assert_eq!(instance["selfLink"], done["targetLink"]);
    let truth = lab.truth("vm").unwrap();
    assert_eq!(
        (truth.boots, truth.holds_machine, truth.boot_disk_gib),
        (1, true, Some(10))
    );
    assert_eq!(
        truth.image.as_deref(),
        Some("projects/debian-cloud/global/images/debian-12-bookworm-v20260201")
    );
}

#[test]
fn requested_properties_are_returned() {
    let mut lab = Lab::new();
    let mut asked = body("vm");
    asked["labels"] = json!({ "owner": "me", "empty": "" });
    asked["metadata"] = json!({ "items": [{ "key": "startup-script", "value": "#!/bin/sh\n" }] });
    asked["tags"] = json!({ "items": ["web", "db"] });
    asked["description"] = json!("mine");
    asked["hostname"] = json!("vm.example.com");
    asked["serviceAccounts"] = json!([{ "email": "default", "scopes": ["a"] }]);
    asked["disks"][0]["initializeParams"]["diskSizeGb"] = json!(20);
    asked["disks"][0]["initializeParams"]["labels"] = json!({ "owner": "me" });
    lab.insert(&asked);
    lab.pass(200);
    let seen = lab.get(&format!("{ZONE}/instances/vm"));
    for field in ["labels", "description", "hostname", "serviceAccounts"] {
        assert_eq!(seen[field], asked[field], "{field}");
    }
    assert_eq!(seen["metadata"]["items"], asked["metadata"]["items"]);
    assert_eq!(seen["tags"]["items"], asked["tags"]["items"]);
    assert_eq!(seen["disks"][0]["diskSizeGb"], "20");
    let disk = lab.get(&format!("{ZONE}/disks/vm"));
    assert_eq!(
        (&disk["sizeGb"], &disk["labels"]["owner"]),
        (&json!("20"), &json!("me"))
    );
    assert_eq!(disk["users"][0], seen["selfLink"]);
    let nic = &seen["networkInterfaces"][0];
    assert_eq!(nic["networkIP"], "10.128.0.2");
    assert!(nic["accessConfigs"][0]["natIP"].is_string());
}

#[test]
fn links_are_taken_in_every_form() {
    let mut lab = Lab::new();
    let root = "https://www.googleapis.com/compute/v1/projects/p";
    let types = [
        format!("{root}/{ZONE}/machineTypes/e2-small"),
        format!("projects/p/{ZONE}/machineTypes/e2-small"),
        format!("{ZONE}/machineTypes/e2-small"),
    ];
    for (number, link) in types.into_iter().enumerate() {
        let mut asked = body(&format!("vm-{number}"));
        asked["machineType"] = json!(link);
        lab.insert(&asked);
    }
    let list = lab.get(&format!("{ZONE}/instances"));
    assert_eq!(names(&list), ["vm-0", "vm-1", "vm-2"]);
    let whole = format!("{root}/{ZONE}/machineTypes/e2-small");
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["machineType"], whole);
    }
}

#[test]
fn invalid_creation_is_refused_and_creates_nothing() {
    let mut lab = Lab::new();
    let image = "projects/debian-cloud/global/images/none";
    let initialize = "/disks/0/initializeParams";
    for (asked, status, why) in [
        (with("/name", json!("Upper")), 400, "invalid"),
        (with("/name", json!("")), 400, "required"),
        (with("/name", json!("a".repeat(64))), 400, "invalid"),
        (with("/machineType", json!("e2-small")), 400, "invalid"),
        (
            with("/machineType", json!(format!("{ZONE}/machineTypes/none"))),
            400,
            "invalid",
        ),
        (
            with(
                "/machineType",
                json!("zones/us-central1-b/machineTypes/e2-small"),
            ),
            400,
            "invalid",
        ),
        (
            with(
                "/machineType",
                json!(format!("{ZONE}/machineTypes/t2a-standard-1")),
            ),
            400,
            "invalid",
        ),
        (with("/disks", json!([])), 400, "invalid"),
        (with("/disks/0/boot", json!(false)), 400, "invalid"),
        (
            with(&format!("{initialize}/sourceImage"), json!(image)),
            400,
            "invalid",
        ),
        (
            with(
                &format!("{initialize}/sourceImage"),
                json!("global/images/family/none"),
            ),
            404,
            "notFound",
        ),
        (
            with(&format!("{initialize}/diskSizeGb"), json!("5")),
            400,
            "invalid",
        ),
        (
            with(&format!("{initialize}/diskSizeGb"), json!("0")),
            400,
            "invalid",
        ),
        (
            with(
                &format!("{initialize}/diskType"),
                json!(format!("{ZONE}/diskTypes/x")),
            ),
            400,
            "invalid",
        ),
        (
            with(&format!("{initialize}/sourceSnapshot"), json!("x")),
            400,
            "notSupported",
        ),
        (with("/networkInterfaces", json!([])), 400, "invalid"),
        (
            with(
                "/networkInterfaces/0/network",
                json!("global/networks/none"),
            ),
            404,
            "notFound",
        ),
        (
            with(
                "/networkInterfaces/0/subnetwork",
                json!("regions/us-central1/subnetworks/none"),
            ),
            404,
            "notFound",
        ),
        (
            with(
                "/networkInterfaces/0/accessConfigs/0/natIP",
                json!("1.2.3.4"),
            ),
            400,
            "invalid",
        ),
        (with("/labels", json!({ "Upper": "x" })), 400, "invalid"),
        (with("/labels", json!({ "a": 1 })), 400, "badRequest"),
        (
            with(
                "/metadata",
                json!({ "items": [{ "key": "a b", "value": "" }] }),
            ),
            400,
            "invalid",
        ),
        (
            with("/tags", json!({ "items": ["Not a name"] })),
            400,
            "invalid",
        ),
        (with("/nonsense", json!(1)), 400, "badRequest"),
        (
            with("/advancedMachineFeatures", json!({ "threadsPerCore": 1 })),
            400,
            "notSupported",
        ),
        (
            with(
                "/scheduling",
                json!({ "instanceTerminationAction": "DELETE" }),
            ),
            400,
            "invalid",
        ),
        (
            with(
                "/scheduling",
                json!({ "provisioningModel": "SPOT", "automaticRestart": true }),
            ),
            400,
            "invalid",
        ),
        (
            with(
                "/scheduling",
                json!({ "provisioningModel": "SPOT", "onHostMaintenance": "MIGRATE" }),
            ),
            400,
            "invalid",
        ),
        (
            with(
                "/guestAccelerators",
                json!([{ "acceleratorCount": 1, "acceleratorType": "x" }]),
            ),
            400,
            "invalid",
        ),
    ] {
        assert_eq!(lab.refused(INSERT, &asked), reason(status, why), "{asked}");
    }
    assert_eq!(lab.refused(INSERT, &Value::Null), reason(400, "required"));
    let oracle = lab.oracle();
    assert!(oracle.instances.is_empty() && oracle.disks.is_empty() && oracle.operations.is_empty());
}

#[test]
fn places_that_are_not_there_are_refused() {
    let mut lab = Lab::with(|knobs| {
        knobs.projects.insert("p".to_owned());
    });
    assert_eq!(
        lab.refused("POST zones/nowhere-a/instances", &body("vm")),
        reason(400, "invalid")
    );
    let other = format!("POST /projects/other/{ZONE}/instances");
    assert_eq!(lab.refused(&other, &body("vm")), reason(404, "notFound"));
    assert_eq!(
        lab.refused("GET zones/nowhere-a", &Value::Null),
        reason(404, "notFound")
    );
    assert_eq!(
        lab.refused("GET regions/nowhere/addresses", &Value::Null),
        reason(400, "invalid")
    );
    // Everyone can read public images.
    lab.get("/projects/debian-cloud/global/images");
}

#[test]
fn names_are_unique_in_a_zone() {
    let mut lab = Lab::new();
    lab.insert(&body("vm"));
    assert_eq!(
        lab.refused(INSERT, &body("vm")),
        reason(409, "alreadyExists")
    );
    let other = "zones/us-central1-b";
    let mut elsewhere = body("vm");
    elsewhere["machineType"] = json!(format!("{other}/machineTypes/e2-small"));
    lab.ok(&format!("POST {other}/instances"), &elsewhere);
    lab.ok(&format!("POST /projects/q/{ZONE}/instances"), &body("vm"));
    assert_eq!(lab.oracle().instances.len(), 3);
    // The name is free as soon as nothing is there.
    let first = lab.get(&format!("{ZONE}/instances/vm"))["id"].clone();
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    assert_eq!(
        lab.refused(INSERT, &body("vm")),
        reason(409, "alreadyExists")
    );
    lab.pass(200);
    lab.insert(&body("vm"));
    assert_ne!(lab.get(&format!("{ZONE}/instances/vm"))["id"], first);
}

#[test]
fn spot_requires_its_scheduling_options() {
    let mut lab = Lab::new();
    let mut spot = body("spot");
    spot["scheduling"] = json!({
        "provisioningModel": "SPOT",
        "instanceTerminationAction": "DELETE",
        "automaticRestart": false,
        "onHostMaintenance": "TERMINATE",
    });
    lab.insert(&spot);
    let seen = lab.get(&format!("{ZONE}/instances/spot"));
    assert_eq!(seen["scheduling"]["provisioningModel"], "SPOT");
    assert_eq!(seen["scheduling"]["instanceTerminationAction"], "DELETE");
    assert!(lab.truth("spot").unwrap().spot);
}
