//! Sends Compute Engine's requests and parses its responses.

use std::io;

pub(crate) use crate::shared::http::Response;
use crate::shared::http::exchange;
use fleetwright_emulators::gcp::GcpEmulator;
use serde_json::{Value, json};

/// The path of the instances in the zone that all tests use.
pub(crate) const INSTANCES: &str = "/compute/v1/projects/p/zones/us-central1-a/instances";

/// Returns the minimal body of an insert.
pub(crate) fn body(name: &str) -> Value {
    json!({
        "name": name,
        "machineType": "zones/us-central1-a/machineTypes/e2-small",
        "disks": [{
            "boot": true,
            "autoDelete": true,
            "initializeParams": { "sourceImage": "projects/debian-cloud/global/images/family/debian-12" },
        }],
        "networkInterfaces": [{ "accessConfigs": [{ "type": "ONE_TO_ONE_NAT" }] }],
    })
}

impl Response {
    /// Returns the document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the reason of an error; empty if there is none.
    pub(crate) fn reason(&self) -> String {
        let reason = &self.json()["error"]["errors"][0]["reason"];
        reason.as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn insert(emulator: &GcpEmulator, name: &str) -> io::Result<Response> {
    post(emulator, INSTANCES, &body(name))
}

pub(crate) fn post(emulator: &GcpEmulator, path: &str, body: &Value) -> io::Result<Response> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send(emulator, "POST", path, body.as_bytes())
}

pub(crate) fn get(emulator: &GcpEmulator, path: &str) -> io::Result<Response> {
    send(emulator, "GET", path, b"")
}

pub(crate) fn send(
    emulator: &GcpEmulator,
    method: &str,
    path: &str,
    body: &[u8],
) -> io::Result<Response> {
    let headers = "Authorization: Bearer token\r\nContent-Type: application/json\r\n";
    exchange(emulator.address(), method, path, headers, body)
}
