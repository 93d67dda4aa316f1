//! Every request gets a response or Google's error in well-formed JSON, and the next client is not
//! affected.

use std::sync::LazyLock;

use crate::{
    client::{Response, body, get, send},
    shared::http::send_raw,
};
use fleetwright_emulators::gcp::{GcpEmulator, Knobs};
use proptest::prelude::*;
use serde_json::{Value, json};

static EMULATOR: LazyLock<GcpEmulator> = LazyLock::new(|| {
    let mut knobs = Knobs::default();
    // Inserts must not exhaust the region for the cases that follow.
    knobs.instance_quota = Some(500);
    GcpEmulator::start(knobs).unwrap()
});

const ZONES: &str = "/compute/v1/projects/p/zones";

/// Parts of paths, some of which form valid paths.
const PARTS: [&str; 26] = [
    "projects",
    "p",
    "zones",
    "us-central1-a",
    "nowhere-a",
    "regions",
    "us-central1",
    "global",
    "aggregated",
    "instances",
    "disks",
    "images",
    "family",
    "operations",
    "machineTypes",
    "networks",
    "vm",
    "bulkInsert",
    "stop",
    "start",
    "setLabels",
    "wait",
    "serialPort",
    "",
    "https%3A%2F%2Fx",
    "%FF%00",
];

/// Values of fields, of any type.
fn value() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "vm",
        "Not a name",
        "zones/us-central1-a/machineTypes/e2-small",
        "-1",
        "é",
        "true",
        "18446744073709551616",
        "projects/debian-cloud/global/images/family/debian-12",
        "SPOT",
        "zones/us-central1-a/disks/vm",
        "global/networks/default",
        "\u{1F600}",
    ];
    let leaf = prop_oneof![
        5 => prop::sample::select(texts.to_vec()).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop::sample::select(NAMES.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(|fields| {
                Value::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

const NAMES: [&str; 24] = [
    "name",
    "machineType",
    "disks",
    "boot",
    "autoDelete",
    "initializeParams",
    "sourceImage",
    "diskSizeGb",
    "networkInterfaces",
    "accessConfigs",
    "type",
    "labels",
    "metadata",
    "items",
    "key",
    "value",
    "scheduling",
    "provisioningModel",
    "count",
    "minCount",
    "namePattern",
    "instanceProperties",
    "labelFingerprint",
    "nonsense",
];

/// Checks that a response is a document or an error, well-formed in either case.
fn check_response(response: &Response) -> Result<(), TestCaseError> {
    let document: Result<Value, _> = serde_json::from_str(&response.body);
    prop_assert!(document.is_ok(), "{}", response.body);
    let document = document.unwrap();
    if response.status == 200 {
        prop_assert!(
            document["kind"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("compute#"))
        );
        return Ok(());
    }
    prop_assert!(
        (400..500).contains(&response.status),
        "{} {}",
        response.status,
        response.body
    );
    prop_assert_eq!(&document["error"]["code"], &json!(response.status));
    prop_assert!(document["error"]["errors"][0]["reason"].is_string());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_path(
        method in prop::sample::select(vec!["GET", "POST", "DELETE", "PUT", "PATCH"]),
        parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..6),
        query in "[a-zA-Z=&%0-9$.:*()-]{0,30}",
    ) {
        let path = format!("/compute/v1/projects/p/{}?{query}", parts.join("/"));
        check_response(&send(&EMULATOR, method, &path, b"").unwrap())?;
    }

    #[test]
    fn any_filter(filter in "[a-z.=:*<>()\"' -]{0,40}", list in prop::sample::select(vec!["instances", "operations", "disks"])) {
        let filter: String = filter.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("{ZONES}/us-central1-a/{list}?filter={filter}");
        check_response(&get(&EMULATOR, &path).unwrap())?;
    }

    #[test]
    fn any_field(pointer in prop::sample::select(vec![
        "/name", "/machineType", "/disks", "/disks/0/boot", "/disks/0/initializeParams",
        "/networkInterfaces", "/networkInterfaces/0/accessConfigs", "/labels", "/metadata", "/tags",
        "/scheduling", "/serviceAccounts", "/guestAccelerators",
    ]), value in value()) {
        let mut body = body("vm");
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[field] = value;
        let path = format!("{ZONES}/us-central1-a/instances");
        check_response(&send(&EMULATOR, "POST", &path, body.to_string().as_bytes()).unwrap())?;
        check_response(&send(&EMULATOR, "DELETE", &format!("{path}/vm"), b"").unwrap())?;
    }

    #[test]
    fn any_body(
        path in prop::sample::select(vec![
            "us-central1-a/instances", "us-central1-a/instances/bulkInsert",
            "us-central1-a/instances/vm/setLabels", "us-central1-a/instances/vm/setMetadata",
            "us-central1-a/instances/vm/setMachineType",
        ]),
        value in value(),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let path = format!("{ZONES}/{path}");
        check_response(&send(&EMULATOR, "POST", &path, value.to_string().as_bytes()).unwrap())?;
        check_response(&send(&EMULATOR, "POST", &path, &bytes).unwrap())?;
        check_response(&send(&EMULATOR, "POST", "/compute/v1/projects/p/global/images", value.to_string().as_bytes()).unwrap())?;
    }

    #[test]
    fn any_control(path in "/[a-z]{0,10}", body in prop::collection::vec(any::<u8>(), 0..60)) {
        let path = format!("/_emulator{path}");
        for method in ["POST", "PATCH", "DELETE", "GET"] {
            let response = send(&EMULATOR, method, &path, &body).unwrap();
            prop_assert!(serde_json::from_str::<Value>(&response.body).is_ok());
        }
    }

    #[test]
    fn any_bytes_on_the_wire(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        send_raw(EMULATOR.address(), &bytes).unwrap();
        prop_assert_eq!(get(&EMULATOR, ZONES).unwrap().status, 200);
    }
}
