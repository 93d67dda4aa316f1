//! Disks and images: what is deleted with an instance, what remains, and images of disks.

use super::{Fixture, ZONE, body, names, reason};
use serde_json::{Value, json};

#[test]
fn disk_is_deleted_with_its_instance_or_remains() {
    let mut fixture = Fixture::new();
    let mut requested = body("vm");
    requested["disks"][0]["autoDelete"] = json!(false);
    let data = json!({
        "autoDelete": true,
        "initializeParams": { "diskName": "data", "diskSizeGb": "50", "diskType": format!("{ZONE}/diskTypes/pd-ssd") },
    });
    requested["disks"].as_array_mut().unwrap().push(data);
    fixture.insert(&requested);
    fixture.advance(200);
    assert_eq!(fixture.oracle_instance("vm").unwrap().disks, ["vm", "data"]);
    assert_eq!(
        names(&fixture.get(&format!("{ZONE}/disks"))),
        ["vm", "data"]
    );
    let busy = format!("DELETE {ZONE}/disks/vm");
    assert_eq!(
        fixture.refusal(&busy, &Value::Null),
        reason(400, "resourceInUseByAnotherResource")
    );
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(200);
    let left = fixture.oracle().disks;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].name.as_str(), &left[0].attached_to), ("vm", &None));
    // An instance cannot get a new disk of that name until the disk is used or deleted.
    let insert = format!("POST {ZONE}/instances");
    assert_eq!(
        fixture.refusal(&insert, &body("vm")),
        reason(409, "alreadyExists")
    );
    let mut using = body("vm");
    using["disks"] = json!([{ "boot": true, "source": format!("{ZONE}/disks/vm") }]);
    fixture.insert(&using);
    let mut second = body("second");
    second["disks"] = using["disks"].clone();
    assert_eq!(
        fixture.refusal(&insert, &second),
        reason(400, "resourceInUseByAnotherResource")
    );
    fixture.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    fixture.advance(200);
    fixture.ok(&busy, &Value::Null);
    fixture.advance(200);
    assert!(fixture.oracle().disks.is_empty());
    assert_eq!(
        fixture.refusal(&busy, &Value::Null),
        reason(404, "notFound")
    );
    assert_eq!(fixture.refusal(&insert, &using), reason(404, "notFound"));
}

#[test]
fn images_are_found_by_name_and_by_family() {
    let mut fixture = Fixture::new();
    let debian = "/projects/debian-cloud/global/images";
    assert_eq!(names(&fixture.get(debian)).len(), 3);
    let newest = fixture.get(&format!("{debian}/family/debian-12"));
    assert_eq!(newest["name"], "debian-12-bookworm-v20260201");
    let older = fixture.get(&format!("{debian}/debian-12-bookworm-v20260101"));
    assert_eq!(
        (&older["status"], &older["diskSizeGb"]),
        (&json!("READY"), &json!("10"))
    );
    for missing in ["none", "family/none"] {
        let get = format!("GET {debian}/{missing}");
        assert_eq!(fixture.refusal(&get, &Value::Null), reason(404, "notFound"));
    }
    let delete = format!("DELETE {debian}/debian-12-bookworm-v20260101");
    assert_eq!(
        fixture.refusal(&delete, &Value::Null),
        reason(403, "forbidden")
    );
}

#[test]
fn image_is_created_from_a_disk() {
    let mut fixture = Fixture::new();
    fixture.insert_running("vm");
    let insert = "POST global/images";
    let order = json!({
        "name": "mine",
        "family": "ours",
        "sourceDisk": format!("projects/p/{ZONE}/disks/vm"),
        "labels": { "a": "b" },
    });
    assert_eq!(
        fixture.refusal(insert, &order),
        reason(400, "resourceInUseByAnotherResource")
    );
    let response = fixture.ok("POST global/images?forceCreate=true", &order);
    assert!(response.get("zone").is_none());
    assert_eq!(fixture.get("global/images/mine")["status"], "PENDING");
    let mut early = body("early");
    early["disks"][0]["initializeParams"]["sourceImage"] = json!("global/images/mine");
    let request = format!("POST {ZONE}/instances");
    assert_eq!(
        fixture.refusal(&request, &early),
        reason(400, "resourceNotReady")
    );
    fixture.advance(200);
    let name = response["name"].as_str().unwrap();
    assert_eq!(
        fixture.get(&format!("global/operations/{name}"))["status"],
        "DONE"
    );
    assert_eq!(fixture.get("global/images/family/ours")["status"], "READY");
    fixture.insert(&early);
    assert_eq!(
        fixture.oracle_instance("early").unwrap().image.as_deref(),
        Some("projects/p/global/images/mine")
    );
    assert_eq!(
        fixture.refusal(insert, &order),
        reason(409, "alreadyExists")
    );
    for (field, value, status, expected) in [
        ("name", json!("Bad"), 400, "invalid"),
        ("sourceDisk", json!("vm"), 400, "invalid"),
        (
            "sourceDisk",
            json!(format!("{ZONE}/disks/none")),
            404,
            "notFound",
        ),
        ("sourceDisk", Value::Null, 400, "required"),
        ("labels", json!({ "A": "" }), 400, "invalid"),
        ("rawDisk", json!({ "source": "x" }), 400, "notSupported"),
    ] {
        let mut invalid = order.clone();
        invalid["name"] = json!("other");
        invalid[field] = value;
        assert_eq!(
            fixture.refusal(insert, &invalid),
            reason(status, expected),
            "{field}"
        );
    }
    fixture.ok("DELETE global/images/mine", &Value::Null);
    fixture.advance(200);
    assert_eq!(names(&fixture.get("global/images")), [""; 0]);
}
