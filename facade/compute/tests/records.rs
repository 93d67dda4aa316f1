//! The stored form of every kind of record: what today's types write, and what they do with records of other versions.
//!
//! `records/` has records as this version writes them. A change of the stored form fails here: raise `Document::VERSION`, keep the file as
//! the record of an older version that must stay readable, and add one of the new form.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod kinds;

use std::{collections::BTreeSet, fs, path::Path};

use fleetwright_facade_testkit::{TestFacade, operator};
use fleetwright_identity::{Account, Limits};
use fleetwright_store::{RecordId, Store as _, Transaction};
use serde_json::{Map, Value, json};

use kinds::Kind;

/// A record of this version.
struct Golden {
    name: String,
    value: Value,
    kind: Kind,
}

/// The records in the folder. A file is called after its kind, with another word if there are several.
fn golden_records() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let records = files.into_iter().filter_map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let kind = name.split('.').next().unwrap().to_owned();
        let value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        (kind != "quota-account").then(|| Golden {
            kind: Kind::named(&kind).unwrap(),
            name,
            value,
        })
    });
    records.collect()
}

#[test]
fn types_write_the_golden_records() {
    let records = golden_records();
    for golden in &records {
        assert_eq!(
            (golden.kind.as_new)(&golden.value).unwrap(),
            golden.value,
            "{}",
            golden.name
        );
    }
    let kinds: BTreeSet<_> = records
        .iter()
        .map(|golden| golden.name.split('.').next().unwrap())
        .collect();
    let schema = fleetwright_facade_testkit::schema();
    for (kind, _) in schema.kinds() {
        // The account has a test of its own, an entry of the audit log is never written again, and a date has no parts.
        let elsewhere = ["quota-account", "audit-entry", "audit-prune-date"];
        let is_elsewhere = elsewhere.contains(&kind.as_str());
        let is_covered = kinds.contains(kind.as_str()) || is_elsewhere;
        assert!(is_covered, "kind {kind} has no golden record");
    }
}

/// The objects that are not of a type to which members can be added: data of tenants and operators, variants of enums, and durations.
const CLOSED: [&str; 11] = [
    "tags",
    "amounts",
    "plan",
    "limits",
    "used",
    "release_to",
    "visibility",
    "origin",
    "presence",
    "tick",
    "scope",
];

/// Calls `change` with a copy of the value for each place in it, and with the place.
fn at_every_place(
    value: &Value,
    change: &mut dyn FnMut(&str, &mut Value) -> bool,
    check: &mut dyn FnMut(&str, Value),
) {
    let mut places = Vec::new();
    collect(value, &mut String::new(), &mut places);
    for place in places {
        let mut changed = value.clone();
        if change(&place, changed.pointer_mut(&place).unwrap()) {
            check(&place, changed);
        }
    }
}

fn collect(value: &Value, place: &mut String, places: &mut Vec<String>) {
    places.push(place.clone());
    let mut within = |step: String, inner: &Value| {
        let length = place.len();
        place.push('/');
        place.push_str(&step.replace('~', "~0").replace('/', "~1"));
        collect(inner, place, places);
        place.truncate(length);
    };
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, inner)| within(name.clone(), inner)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, inner)| within(at.to_string(), inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_closed(place: &str) -> bool {
    CLOSED
        .iter()
        .any(|name| place.ends_with(&format!("/{name}")))
}

#[test]
fn unknown_member_at_every_place_survives_a_write() {
    for golden in golden_records() {
        let mut places = 0;
        let mut add = |place: &str, value: &mut Value| match value {
            Value::Object(members) if !is_closed(place) => {
                members.insert(
                    "added_by_a_newer_version".to_owned(),
                    json!({"n": [1, null]}),
                );
                true
            }
            Value::Object(_)
            | Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => false,
        };
        let mut check = |place: &str, changed: Value| {
            places += 1;
            match (golden.kind.again)(&changed) {
                Ok(written) => assert_eq!(written, changed, "{} {place}", golden.name),
                Err(damaged) => panic!("{} {place}: {}", golden.name, damaged.reason),
            }
        };
        at_every_place(&golden.value, &mut add, &mut check);
        assert!(places > 0, "{}", golden.name);
    }
}

/// An unknown variant is a text, or an object with one member.
#[test]
fn unknown_variant_at_every_place_is_kept_or_refused() {
    for golden in golden_records() {
        for variant in [
            json!("of-a-newer-version"),
            json!({"of-a-newer-version": {"n": 1}}),
        ] {
            let mut replace = |_: &str, value: &mut Value| {
                let is_text = value.is_string();
                if is_text {
                    *value = variant.clone();
                }
                is_text
            };
            let mut check = |place: &str, changed: Value| {
                if let Ok(written) = (golden.kind.again)(&changed) {
                    assert_eq!(written, changed, "{} {place}", golden.name);
                }
            };
            at_every_place(&golden.value, &mut replace, &mut check);
        }
    }
}

/// The places of enums on which decisions depend, and of those on which none does.
#[test]
fn unknown_variants_of_enums_are_recognized() {
    let refused = [
        ("instance.running", "/intent/power"),
        ("instance.running", "/intent/reboot_how"),
        ("instance.running", "/consent"),
        ("instance.running", "/status/phase"),
        ("instance.running", "/status/health"),
        ("instance.running", "/spec/networking/public_ip"),
        ("instance.running", "/created_by/type"),
        ("instance.deleting", "/deletion/cause"),
        ("server.running", "/intent/power"),
        ("server.running", "/observed/state"),
        ("server.running", "/observed/presence"),
        ("server.changing", "/machine/termination/reason"),
        ("server.changing", "/machine/termination/response"),
        ("server.changing", "/machine/last_action/action"),
        ("server.changing", "/machine/unconfirmed/fields/0"),
        ("network", "/state"),
        ("security-group", "/rules/0/protocol"),
        ("security-group", "/rules/0/direction"),
        ("flavor", "/architecture"),
        ("image.file", "/architecture"),
        ("image.file", "/state"),
        ("image.file", "/virtualization"),
        ("image.file", "/os/kernel"),
        ("image.snapshot", "/origin"),
    ];
    let left_out = [
        ("instance.running", "/events/0/kind"),
        ("instance.running", "/events/0/by/type"),
        ("instance.deleting", "/status/conditions/0/kind"),
        ("server.running", "/events/0/kind"),
        ("server.running", "/events/0/by"),
        ("server.changing", "/conditions/0/kind"),
        ("server.changing", "/drift/0"),
        ("region-scan", "/orphans/0/outcome"),
    ];
    let records = golden_records();
    let changed = |name: &str, place: &str| {
        let golden = records.iter().find(|golden| golden.name == name).unwrap();
        let mut value = golden.value.clone();
        *value.pointer_mut(place).unwrap() = json!("of-a-newer-version");
        ((golden.kind.again)(&value), value)
    };
    for (name, place) in refused {
        let damaged = changed(name, place).0.unwrap_err();
        assert!(damaged.is_newer, "{name} {place}: {}", damaged.reason);
        assert!(
            damaged.reason.contains(place),
            "{name} {place}: {}",
            damaged.reason
        );
        assert!(
            damaged.reason.contains("upgrade this program"),
            "{}",
            damaged.reason
        );
    }
    for (name, place) in left_out {
        let (written, value) = changed(name, place);
        assert_eq!(written.unwrap(), value, "{name} {place}");
    }
}

#[tokio::test]
async fn account_of_a_newer_version_keeps_its_unknown_members() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    let text = fs::read_to_string(folder.join("quota-account.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let organization = golden["organization"].as_str().unwrap().parse().unwrap();
    let project = golden["project"].as_str().unwrap().parse().unwrap();
    let account = Account::Project(organization, project);
    let limits: Limits = serde_json::from_value(golden["limits"].clone()).unwrap();
    let facade = TestFacade::new().await;
    let id = RecordId::new("quota-account", format!("{organization}/{project}")).unwrap();
    let write = async |limits: &Limits| {
        let (ledger, operator) = (&facade.ledger, operator());
        let set = ledger.set_limits(Transaction::new(), &operator, &account, limits);
        facade.store.commit(&set.await.unwrap()).await.unwrap();
        facade
            .store
            .get(&id)
            .await
            .unwrap()
            .map(|record| record.value)
    };
    assert_eq!(write(&limits).await, Some(golden.clone().into()));
    let mut newer = golden;
    newer["held"] = json!({"servers": 3});
    let put = Transaction::new().put(id.clone(), newer.clone());
    facade.store.commit(&put).await.unwrap();
    assert_eq!(write(&limits).await, Some(newer.clone().into()));
    // Without limits and use it says the same as its absence, apart from what only the newer version knows.
    newer["limits"] = Value::Object(Map::new());
    assert_eq!(write(&Limits::new()).await, Some(newer.into()));
}

#[tokio::test]
async fn catalog_file_keeps_unknown_members_and_leaves_newer_entries_alone() {
    let facade = TestFacade::new().await;
    let catalog = fleetwright_facade_testkit::CATALOG;
    facade
        .patch("flavor", "small", |flavor| {
            flavor["colors"] = json!(["red"]);
        })
        .await;
    let renamed = catalog.replace("id = \"small\",", "id = \"small\", name = \"Tiny\",");
    facade.catalog.load(&renamed).await.unwrap();
    let id = RecordId::new("flavor", "small").unwrap();
    let stored = facade.store.get(&id).await.unwrap().unwrap().value;
    assert_eq!(
        (&stored["name"], &stored["colors"]),
        (&json!("Tiny"), &json!(["red"]))
    );
    facade
        .patch("flavor", "small", |flavor| {
            flavor["architecture"] = json!("riscv64");
        })
        .await;
    let newer = facade.store.get(&id).await.unwrap().unwrap().value;
    // An older process starts during an upgrade: the rest of its file is loaded.
    let renamed = catalog.replace("id = \"large\",", "id = \"large\", name = \"Big\",");
    let changes = facade.catalog.load(&renamed).await.unwrap();
    let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            "flavor large changed: name",
            "flavor small is of a newer version of this program and stays as it is: upgrade this program",
        ]
    );
    assert_eq!(facade.store.get(&id).await.unwrap().unwrap().value, newer);
    // So is the mapping, which names it.
    facade.planner.reload(&facade.mapping()).await.unwrap();
}
