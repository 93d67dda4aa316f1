//! Disks and images: what goes, what is left, what is made of it.

use super::{Lab, ZONE, body, names, reason};
use serde_json::{Value, json};

#[test]
fn disk_is_deleted_with_its_instance_or_remains() {
    let mut lab = Lab::new();
    let mut asked = body("vm");
    asked["disks"][0]["autoDelete"] = json!(false);
    let data = json!({
        "autoDelete": true,
        "initializeParams": { "diskName": "data", "diskSizeGb": "50", "diskType": format!("{ZONE}/diskTypes/pd-ssd") },
    });
    asked["disks"].as_array_mut().unwrap().push(data);
    lab.insert(&asked);
    lab.pass(200);
    assert_eq!(lab.truth("vm").unwrap().disks, ["vm", "data"]);
    assert_eq!(names(&lab.get(&format!("{ZONE}/disks"))), ["vm", "data"]);
    let busy = format!("DELETE {ZONE}/disks/vm");
    assert_eq!(
        lab.refused(&busy, &Value::Null),
        reason(400, "resourceInUseByAnotherResource")
    );
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(200);
    let left = lab.oracle().disks;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].name.as_str(), &left[0].attached_to), ("vm", &None));
    // It is in the way of an instance of that name, until it is used or deleted.
    let insert = format!("POST {ZONE}/instances");
    assert_eq!(
        lab.refused(&insert, &body("vm")),
        reason(409, "alreadyExists")
    );
    let mut using = body("vm");
    using["disks"] = json!([{ "boot": true, "source": format!("{ZONE}/disks/vm") }]);
    lab.insert(&using);
    let mut second = body("second");
    second["disks"] = using["disks"].clone();
    assert_eq!(
        lab.refused(&insert, &second),
        reason(400, "resourceInUseByAnotherResource")
    );
    lab.ok(&format!("DELETE {ZONE}/instances/vm"), &Value::Null);
    lab.pass(200);
    lab.ok(&busy, &Value::Null);
    lab.pass(200);
    assert!(lab.oracle().disks.is_empty());
    assert_eq!(lab.refused(&busy, &Value::Null), reason(404, "notFound"));
    assert_eq!(lab.refused(&insert, &using), reason(404, "notFound"));
}

#[test]
fn images_are_found_by_name_and_by_family() {
    let mut lab = Lab::new();
    let debian = "/projects/debian-cloud/global/images";
    assert_eq!(names(&lab.get(debian)).len(), 3);
    let newest = lab.get(&format!("{debian}/family/debian-12"));
    assert_eq!(newest["name"], "debian-12-bookworm-v20260201");
    let older = lab.get(&format!("{debian}/debian-12-bookworm-v20260101"));
    assert_eq!(
        (&older["status"], &older["diskSizeGb"]),
        (&json!("READY"), &json!("10"))
    );
    for missing in ["none", "family/none"] {
        let get = format!("GET {debian}/{missing}");
        assert_eq!(lab.refused(&get, &Value::Null), reason(404, "notFound"));
    }
    let delete = format!("DELETE {debian}/debian-12-bookworm-v20260101");
    assert_eq!(lab.refused(&delete, &Value::Null), reason(403, "forbidden"));
}

#[test]
fn an_image_is_made_of_a_disk() {
    let mut lab = Lab::new();
    lab.running("vm");
    let insert = "POST global/images";
    let order = json!({
        "name": "mine",
        "family": "ours",
        "sourceDisk": format!("projects/p/{ZONE}/disks/vm"),
        "labels": { "a": "b" },
    });
    assert_eq!(
        lab.refused(insert, &order),
        reason(400, "resourceInUseByAnotherResource")
    );
    let answered = lab.ok("POST global/images?forceCreate=true", &order);
    assert!(answered.get("zone").is_none());
    assert_eq!(lab.get("global/images/mine")["status"], "PENDING");
    let mut early = body("early");
    early["disks"][0]["initializeParams"]["sourceImage"] = json!("global/images/mine");
    let request = format!("POST {ZONE}/instances");
    assert_eq!(
        lab.refused(&request, &early),
        reason(400, "resourceNotReady")
    );
    lab.pass(200);
    let name = answered["name"].as_str().unwrap();
    assert_eq!(
        lab.get(&format!("global/operations/{name}"))["status"],
        "DONE"
    );
    assert_eq!(lab.get("global/images/family/ours")["status"], "READY");
    lab.insert(&early);
    assert_eq!(
        lab.truth("early").unwrap().image.as_deref(),
        Some("projects/p/global/images/mine")
    );
    assert_eq!(lab.refused(insert, &order), reason(409, "alreadyExists"));
    for (field, value, status, why) in [
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
        let mut bad = order.clone();
        bad["name"] = json!("other");
        bad[field] = value;
        assert_eq!(lab.refused(insert, &bad), reason(status, why), "{field}");
    }
    lab.ok("DELETE global/images/mine", &Value::Null);
    lab.pass(200);
    assert_eq!(names(&lab.get("global/images")), [""; 0]);
}
