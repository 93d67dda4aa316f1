//! instances.insert: what it creates, and what it refuses.

use super::{Fixture, ZONE, body, names, reason};
use serde_json::{Value, json};

const INSERT: &str = "POST zones/us-central1-a/instances";

/// Returns the body with one field set, by its JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut changed = body("vm");
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap()[field] = value;
    changed
}

#[test]
fn instance_and_its_operation_pass_their_states() {
    let mut fixture = Fixture::new();
    let response = fixture.insert(&body("vm"));
    assert_eq!(response["kind"], "compute#operation");
    assert_eq!(response["operationType"], "insert");
    assert_eq!(
        (&response["status"], &response["progress"]),
        (&json!("PENDING"), &json!(0))
    );
    let mut found = Vec::new();
    for _ in 0..4 {
        let operation = fixture.operation(&response)["status"].clone();
        found.push((fixture.status("vm"), operation.as_str().unwrap().to_owned()));
        fixture.advance(30);
    }
    let found: Vec<_> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("PROVISIONING", "PENDING"),
            ("PROVISIONING", "RUNNING"),
            ("STAGING", "RUNNING"),
            ("STAGING", "RUNNING"),
        ]
    );
    let finished = fixture.operation(&response);
    assert_eq!(
        (&finished["status"], &finished["progress"]),
        (&json!("DONE"), &json!(100))
    );
    assert_eq!(finished.get("error"), None);
    let instance = fixture.get(&format!("{ZONE}/instances/vm"));
    assert_eq!(instance["status"], "RUNNING");
    assert_eq!(instance["id"], finished["targetId"]);
    assert_eq!(instance["selfLink"], finished["targetLink"]);
    let oracle_instance = fixture.oracle_instance("vm").unwrap();
    assert_eq!(
        (
            oracle_instance.boots,
            oracle_instance.holds_machine,
            oracle_instance.boot_disk_gib
        ),
        (1, true, Some(10))
    );
    assert_eq!(
        oracle_instance.image.as_deref(),
        Some("projects/debian-cloud/global/images/debian-12-bookworm-v20260201")
    );
}

#[test]
fn requested_properties_are_returned() {
    let mut fixture = Fixture::new();
    let mut requested = body("vm");
    requested["labels"] = json!({ "owner": "me", "empty": "" });
    requested["metadata"] =
        json!({ "items": [{ "key": "startup-script", "value": "#!/bin/sh\n" }] });
    requested["tags"] = json!({ "items": ["web", "db"] });
    requested["description"] = json!("mine");
    requested["hostname"] = json!("vm.example.com");
    requested["serviceAccounts"] = json!([{ "email": "default", "scopes": ["a"] }]);
    requested["disks"][0]["initializeParams"]["diskSizeGb"] = json!(20);
    requested["disks"][0]["initializeParams"]["labels"] = json!({ "owner": "me" });
    fixture.insert(&requested);
    fixture.advance(200);
    let found = fixture.get(&format!("{ZONE}/instances/vm"));
    for field in ["labels", "description", "hostname", "serviceAccounts"] {
        assert_eq!(found[field], requested[field], "{field}");
    }
    assert_eq!(found["metadata"]["items"], requested["metadata"]["items"]);
    assert_eq!(found["tags"]["items"], requested["tags"]["items"]);
    assert_eq!(found["disks"][0]["diskSizeGb"], "20");
    let disk = fixture.get(&format!("{ZONE}/disks/vm"));
    assert_eq!(
        (&disk["sizeGb"], &disk["labels"]["owner"]),
        (&json!("20"), &json!("me"))
    );
    assert_eq!(disk["users"][0], found["selfLink"]);
    let nic = &found["networkInterfaces"][0];
    assert_eq!(nic["networkIP"], "10.128.0.2");
    assert!(nic["accessConfigs"][0]["natIP"].is_string());
}

#[test]
fn links_are_accepted_in_every_form() {
    let mut fixture = Fixture::new();
    let root = "https://www.googleapis.com/compute/v1/projects/p";
    let types = [
        format!("{root}/{ZONE}/machineTypes/e2-small"),
        format!("projects/p/{ZONE}/machineTypes/e2-small"),
        format!("{ZONE}/machineTypes/e2-small"),
    ];
    for (number, link) in types.into_iter().enumerate() {
        let mut requested = body(&format!("vm-{number}"));
        requested["machineType"] = json!(link);
        fixture.insert(&requested);
    }
    let list = fixture.get(&format!("{ZONE}/instances"));
    assert_eq!(names(&list), ["vm-0", "vm-1", "vm-2"]);
    let absolute = format!("{root}/{ZONE}/machineTypes/e2-small");
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["machineType"], absolute);
    }
}

#[test]
fn invalid_creation_is_refused_and_creates_nothing() {
    let mut fixture = Fixture::new();
    let image = "projects/debian-cloud/global/images/none";
    let initialize = "/disks/0/initializeParams";
    for (requested, status, expected) in [
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
        assert_eq!(
            fixture.refusal(INSERT, &requested),
            reason(status, expected),
            "{requested}"
        );
    }
    assert_eq!(
        fixture.refusal(INSERT, &Value::Null),
        reason(400, "required")
    );
    let oracle = fixture.oracle();
    assert!(oracle.instances.is_empty() && oracle.disks.is_empty() && oracle.operations.is_empty());
}

#[test]
fn missing_projects_zones_and_regions_are_refused() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.projects.insert("p".to_owned());
    });
    assert_eq!(
        fixture.refusal("POST zones/nowhere-a/instances", &body("vm")),
        reason(400, "invalid")
    );
    let other = format!("POST /projects/other/{ZONE}/instances");
    assert_eq!(
        fixture.refusal(&other, &body("vm")),
        reason(404, "notFound")
    );
    assert_eq!(
        fixture.refusal("GET zones/nowhere-a", &Value::Null),
        reason(404, "notFound")
    );
    assert_eq!(
        fixture.refusal("GET regions/nowhere/addresses", &Value::Null),
        reason(400, "invalid")
    );
    // Everyone can read public images.
    fixture.get("/projects/debian-cloud/global/images");
}

#[test]
fn names_are_unique_in_a_zone() {
    let mut fixture = Fixture::new();
    fixture.insert(&body("vm"));
    assert_eq!(
        fixture.refusal(INSERT, &body("vm")),
        reason(409, "alreadyExists")
    );
    let other = "zones/us-central1-b";
    let mut in_other_zone = body("vm");
    in_other_zone["machineType"] = json!(format!("{other}/machineTypes/e2-small"));
    fixture.ok(&format!("POST {other}/instances"), &in_other_zone);
    fixture.ok(&format!("POST /projects/q/{ZONE}/instances"), &body("vm"));
    assert_eq!(fixture.oracle().instances.len(), 3);
    // The name is free as soon as the instance is removed.
    let first = fixture.get(&format!("{ZONE}/instances/vm"))["id"].clone();
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    assert_eq!(
        fixture.refusal(INSERT, &body("vm")),
        reason(409, "alreadyExists")
    );
    fixture.advance(200);
    fixture.insert(&body("vm"));
    assert_ne!(fixture.get(&format!("{ZONE}/instances/vm"))["id"], first);
}

#[test]
fn spot_requires_its_scheduling_options() {
    let mut fixture = Fixture::new();
    let mut spot = body("spot");
    spot["scheduling"] = json!({
        "provisioningModel": "SPOT",
        "instanceTerminationAction": "DELETE",
        "automaticRestart": false,
        "onHostMaintenance": "TERMINATE",
    });
    fixture.insert(&spot);
    let found = fixture.get(&format!("{ZONE}/instances/spot"));
    assert_eq!(found["scheduling"]["provisioningModel"], "SPOT");
    assert_eq!(found["scheduling"]["instanceTerminationAction"], "DELETE");
    assert!(fixture.oracle_instance("spot").unwrap().spot);
}
