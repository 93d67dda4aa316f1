//! Long-running operations over real sockets: the URLs of a response, and the results of polling.

use std::time::Duration;

use crate::client::{VMS, follow, get, put, send};
use fleetwright_emulators::azure::{AzureEmulator, Knobs, Timing};
use serde_json::Value;

fn slow() -> AzureEmulator {
    let mut knobs = Knobs::default();
    knobs.timing = Timing::all(Duration::from_secs(3600));
    AzureEmulator::start(knobs).unwrap()
}

#[test]
fn creation_is_polled_by_absolute_urls() {
    let emulator = slow();
    let response = put(&emulator, "vm").unwrap();
    assert_eq!(
        (response.status, response.header("retry-after")),
        (201, Some("0"))
    );
    let url = response.header("azure-asyncoperation").unwrap();
    assert!(url.starts_with(&emulator.endpoint()), "{url}");
    let status = follow(&emulator, url).unwrap();
    assert_eq!(
        (status.status, &status.json()["status"]),
        (200, &Value::from("InProgress"))
    );
    emulator.advance(Duration::from_secs(3600));
    assert_eq!(
        follow(&emulator, url).unwrap().json()["status"],
        "Succeeded"
    );
    assert_eq!(emulator.oracle().vms[0].boots, 1);
}

#[test]
fn deletion_is_polled_by_its_location_until_not_found() {
    let emulator = slow();
    put(&emulator, "vm").unwrap();
    emulator.advance(Duration::from_secs(3600));
    let response = send(&emulator, "DELETE", &format!("{VMS}/vm"), &Value::Null).unwrap();
    assert_eq!((response.status, response.body.as_str()), (202, ""));
    let url = response.header("location").unwrap().to_owned();
    assert_eq!(follow(&emulator, &url).unwrap().status, 202);
    emulator.advance(Duration::from_secs(3600));
    assert_eq!(follow(&emulator, &url).unwrap().status, 204);
    assert_eq!(
        get(&emulator, &format!("{VMS}/vm")).unwrap().code(),
        "NotFound"
    );
    emulator.advance(Duration::from_secs(25 * 3600));
    let forgotten = follow(&emulator, &url).unwrap();
    assert_eq!(
        (forgotten.status, forgotten.code().as_str()),
        (404, "NotFound")
    );
    assert_eq!(
        get(&emulator, &format!("{VMS}/vm")).unwrap().code(),
        "ResourceNotFound"
    );
}

#[test]
fn deleting_a_missing_resource_has_no_body() {
    let emulator = slow();
    let response = send(&emulator, "DELETE", &format!("{VMS}/none"), &Value::Null).unwrap();
    assert_eq!((response.status, response.body.as_str()), (204, ""));
}
