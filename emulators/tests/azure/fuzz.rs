//! Random requests: each one gets a response or an error of Azure's, and the next request is not
//! affected.

use std::sync::LazyLock;

use crate::{
    client::{AUTHORIZATION, GROUP, Response, VERSION, VMS, body, get, send},
    shared::http::{exchange, send_raw},
};
use fleetwright_emulators::azure::{AzureEmulator, Knobs, Operation};
use proptest::prelude::*;
use serde_json::{Value, json};

static EMULATOR: LazyLock<AzureEmulator> = LazyLock::new(|| {
    let mut knobs = Knobs::default();
    // Bounded, so that the machines of one case do not exhaust the addresses of the next.
    knobs.vm_quota = Some(200);
    AzureEmulator::start(knobs).unwrap()
});

/// Segments of valid paths, and invalid ones.
const SEGMENTS: [&str; 22] = [
    "virtualMachines",
    "disks",
    "images",
    "networkInterfaces",
    "publicIPAddresses",
    "virtualNetworks",
    "vnet",
    "subnets",
    "vm",
    "start",
    "powerOff",
    "instanceView",
    "locations",
    "eastus",
    "operations",
    "usages",
    "skus",
    "bootdiagnostics",
    "%2F",
    "%FF",
    "..",
    "",
];

/// Returns random JSON values, some of which are valid somewhere.
fn any_value() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "Delete",
        "Static",
        "/",
        GROUP,
        "latest",
        "-1",
        "é\u{1F600}",
        "PT1H",
        "Spot",
    ];
    let leaf = prop_oneof![
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            inner.clone().prop_map(|value| json!({ "id": value })),
            inner.prop_map(|value| json!({ "properties": value })),
        ]
    })
}

/// Collects the JSON pointers of all values in a document.
fn collect_pointers(value: &Value, path: &str, found: &mut Vec<String>) {
    let mut descend = |name: &str, member: &Value| {
        let path = format!("{path}/{name}");
        found.push(path.clone());
        collect_pointers(member, &path, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, it)| descend(name, it)),
        Value::Array(items) => (0..).zip(items).for_each(|(index, it): (u32, _)| {
            descend(&index.to_string(), it);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

static POINTERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut found = Vec::new();
    collect_pointers(&body(), "", &mut found);
    found
});

/// Checks that a response is a success, or a client error with a code; never a server error.
fn check_response(response: &Response) -> Result<(), TestCaseError> {
    if response.status < 300 {
        let empty = matches!(response.status, 200 | 202 | 204) && response.body.is_empty();
        prop_assert!(empty || serde_json::from_str::<Value>(&response.body).is_ok());
        return Ok(());
    }
    // What Azure has and the emulator does not is neither the client's mistake nor a missing resource.
    let not_emulated = response.status == 501 && response.code() == "NotEmulated";
    let refused = (400..500).contains(&response.status) || not_emulated;
    prop_assert!(refused, "{}", response.body);
    prop_assert!(!response.code().is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document(index in 0..200_usize, value in any_value(), method in prop::sample::select(vec!["PUT", "PATCH"])) {
        let mut document = body();
        let index = &POINTERS[index % POINTERS.len()];
        *document.pointer_mut(index).unwrap() = value;
        let path = format!("{VMS}/fuzz");
        check_response(&send(&EMULATOR, method, &path, &document).unwrap())?;
        check_response(&get(&EMULATOR, &path).unwrap())?;
        check_response(&send(&EMULATOR, "DELETE", &path, &Value::Null).unwrap())?;
    }

    #[test]
    fn any_part(kind in prop::sample::select(vec![
        "Microsoft.Compute/disks", "Microsoft.Compute/images", "Microsoft.Network/networkInterfaces",
        "Microsoft.Network/publicIPAddresses",
    ]), properties in any_value(), name in "[a-z/%]{0,6}") {
        let path = format!("{GROUP}/{kind}/{name}");
        let document = json!({ "location": "eastus", "properties": properties });
        check_response(&send(&EMULATOR, "PUT", &path, &document).unwrap())?;
        check_response(&get(&EMULATOR, &path).unwrap())?;
        check_response(&send(&EMULATOR, "DELETE", &path, &Value::Null).unwrap())?;
    }

    #[test]
    fn any_path(
        method in prop::sample::select(vec!["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"]),
        segments in prop::collection::vec(prop::sample::select(SEGMENTS.to_vec()), 0..4),
        query in "[a-zA-Z$=&%0-9'-]{0,30}",
        base in prop::sample::select(vec![format!("{GROUP}/Microsoft.Compute"), format!("{GROUP}/Microsoft.Network"),
            "/subscriptions/s/providers/Microsoft.Compute".to_owned(), String::new()]),
    ) {
        let path = format!("{base}/{}?{VERSION}&{query}", segments.join("/"));
        // The response to HEAD has the length of a body that is not sent.
        if let Ok(response) = exchange(EMULATOR.address(), method, &path, AUTHORIZATION, b"") {
            check_response(&response)?;
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        send_raw(EMULATOR.address(), &bytes).unwrap();
        for method in ["PUT", "PATCH", "POST"] {
            let path = format!("{VMS}/vm/start?{VERSION}").replace("/start", if method == "POST" { "/start" } else { "" });
            check_response(&exchange(EMULATOR.address(), method, &path, AUTHORIZATION, &bytes).unwrap())?;
        }
        prop_assert_eq!(get(&EMULATOR, VMS).unwrap().status, 200);
    }

    #[test]
    fn any_link_and_any_operation(token in "[ -~]{0,40}") {
        let token: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
        check_response(&get(&EMULATOR, &format!("{VMS}?{VERSION}&$skiptoken={token}")).unwrap())?;
        let path = format!("/subscriptions/s/providers/Microsoft.Compute/locations/eastus/operations/{token}");
        check_response(&get(&EMULATOR, &path).unwrap())?;
    }

    #[test]
    fn any_rule(nth in any::<i64>(), kind in "[a-z_]{0,12}", name in prop::sample::select(
        Operation::all().map(Operation::name).collect::<Vec<_>>())) {
        let rule = json!({ "operation": name, "nth": nth, "fault": { "kind": kind } });
        let path = "/_emulator/faults?";
        let response = send(&EMULATOR, "POST", path, &rule).unwrap();
        prop_assert!(response.status == 400 || response.status == 200);
        EMULATOR.clear_faults();
    }
}
