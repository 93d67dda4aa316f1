//! The OpenAPI document that is checked in is the one that is served.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may panic"
)]

mod support;

use std::path::Path;

use support::Running;

#[test]
fn the_document_is_the_one_that_is_checked_in() {
    let running = Running::sample();
    let mut client = running.client("");
    client.token = None;
    let served = client.get("/openapi.json").expect(200).text;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("FLEETWRIGHT_UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, format!("{served}\n")).unwrap();
    }
    let checked_in = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        checked_in.trim_end(),
        served,
        "run this test with FLEETWRIGHT_UPDATE_OPENAPI=1 and read the difference"
    );

    let page = client.get("/docs").expect(200);
    assert!(
        page.text.contains("POST /api/v2/instances"),
        "{}",
        page.text
    );
    assert!(!page.text.contains("<script") && !page.text.contains("src="));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
}

#[test]
fn every_address_and_every_schema_has_a_description() {
    let running = Running::sample();
    let mut client = running.client("");
    client.token = None;
    let document = client.get("/openapi.json").expect(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    for (address, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            assert!(operation["summary"].is_string(), "{address}");
            assert!(operation["responses"]["default"].is_object(), "{address}");
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
    }
}
