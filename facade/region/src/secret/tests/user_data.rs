//! Fields with user data: sealed for one record, field and tenant, and never read as absent.

use fleetwright_store::Record;

use super::*;
use crate::{
    schema::sealed_fields,
    server::{Server, ServerSpec},
};

fn sealed_store(raw: &Arc<dyn Store>, text: &str) -> SealedStore {
    let entropy = Arc::new(CountingEntropy::default());
    let keyring = Some(Arc::new(ring(text)));
    SealedStore::new(Arc::clone(raw), keyring, entropy, sealed_fields())
}

/// A record with user data in each field that is sealed, and a field beside them.
fn value() -> Value {
    let data = "aHVudGVyMg==";
    json!({
        "organization": organization(1), "project": project(1), "name": "web",
        "spec": { "user_data": data },
        "launch": { "spec": { "user_data": data }, "config": { "user_data": data, "image": "debian" } },
        "machine": { "applied": { "user_data": data } },
    })
}

fn server(key: &str) -> RecordId {
    RecordId::new("server", key).unwrap()
}

async fn stored(raw: &Arc<dyn Store>, key: &str) -> Record {
    raw.get(&server(key)).await.unwrap().unwrap()
}

/// A store with the record `a`, sealed with the key of May, as it is and as the store that seals returns it.
async fn with_sealed_record() -> (Arc<dyn Store>, SealedStore) {
    let raw = store();
    let sealing = sealed_store(&raw, MAY);
    let put = Transaction::new().put(server("a"), value());
    sealing.commit(&put).await.unwrap();
    (raw, sealing)
}

/// The same store with no key, and with another one.
fn without_the_key(raw: &Arc<dyn Store>) -> [SealedStore; 2] {
    let entropy = Arc::new(CountingEntropy::default());
    let keyless = SealedStore::new(Arc::clone(raw), None, entropy, sealed_fields());
    [keyless, sealed_store(raw, JUNE)]
}

/// A change of a record, which is written under a key.
type Move = (&'static str, fn(&mut Value));

/// Moves of what is sealed to another record, another tenant and another field.
const MOVES: [Move; 3] = [
    ("b", |_| {}),
    ("a", |value| value["project"] = json!(project(2))),
    ("a", |value| {
        value["spec"] = value["machine"]["applied"].clone();
    }),
];

#[tokio::test]
async fn every_copy_is_sealed_and_opened() {
    let (raw, sealing) = with_sealed_record().await;
    let text = stored(&raw, "a").await.value.to_string();
    assert!(!text.contains("aHVudGVyMg"), "{text}");
    assert_eq!(text.matches("\"sealed:may:").count(), 4, "{text}");
    assert!(text.contains("debian") && text.contains("web"), "{text}");
    let read = sealing.get(&server("a")).await.unwrap().unwrap();
    assert_eq!(read.value, value());
    let mut watch = sealing
        .watch(Revision::ZERO, Interest::all())
        .await
        .unwrap();
    let commit = watch.next().await.unwrap();
    assert_eq!(commit.changes[0].record().value, value());
    assert_eq!(watch.position(), raw.head().await.unwrap());
    // A record that is written as it was read is sealed again, and one that did not open is stored as it was.
    let blind = sealed_store(&raw, JUNE);
    let read = blind.get(&server("a")).await.unwrap().unwrap();
    let put = Transaction::new().put(server("a"), read.value);
    blind.commit(&put).await.unwrap();
    assert_eq!(stored(&raw, "a").await.value.to_string(), text);
}

#[tokio::test]
async fn record_without_user_data_is_shared_by_its_readers() {
    let raw = store();
    let sealing = sealed_store(&raw, MAY);
    let plain = json!({ "organization": organization(1), "spec": { "user_data": null } });
    let put = Transaction::new().put(server("a"), plain);
    sealing.commit(&put).await.unwrap();
    let parsed = async || {
        let read = sealing.get(&server("a")).await.unwrap().unwrap();
        read.value.parse::<Value>().unwrap()
    };
    assert!(Arc::ptr_eq(&parsed().await, &parsed().await));
}

#[tokio::test]
async fn sealed_value_opens_nowhere_else() {
    let (raw, sealing) = with_sealed_record().await;
    let original = stored(&raw, "a").await.value;
    for (key, change) in MOVES {
        let mut value = original.clone();
        change(&mut value);
        let put = Transaction::new().put(server(key), value);
        raw.commit(&put).await.unwrap();
        let read = sealing.get(&server(key)).await.unwrap().unwrap();
        let pointer = sealed_fields().next().unwrap().unopened;
        let unopened = read.value.pointer(pointer).unwrap().clone();
        let unopened: UnopenedUserData = serde_json::from_value(unopened).unwrap();
        assert_eq!(unopened.key, "may");
        let problem = unopened.problem;
        assert!(problem.contains("does not open with key may"), "{problem}");
    }
}

/// A whole record of a server from the fields that are sealed.
fn with_rest(pointer: &str, value: &Value) -> Value {
    let mut spec = value.pointer(pointer).unwrap().clone();
    spec["flavor"] = json!("small");
    spec["image"] = json!("debian");
    spec["network"] = json!(Uuid::from_u128(1));
    spec["public_ip"] = json!("absent");
    spec
}

const SPECS: [&str; 3] = ["/spec", "/launch/spec", "/machine/applied"];

#[tokio::test]
async fn sealed_record_is_never_read_without_its_user_data() {
    let (raw, _) = with_sealed_record().await;
    // Past the store that opens them, no part deserializes.
    let expected =
        "the user data is sealed with key may: open the store with the keyring that has this key";
    let record = stored(&raw, "a").await;
    for pointer in SPECS {
        let spec = with_rest(pointer, &record.value);
        let error = serde_json::from_value::<ServerSpec>(spec).unwrap_err();
        assert_eq!(error.to_string(), expected, "{pointer}");
    }
    let config = record.value.pointer("/launch/config").unwrap().clone();
    assert_eq!(read_config(config).unwrap_err().to_string(), expected);
    let table = fleetwright_store::Table::<Server>::new(Arc::clone(&raw)).unwrap();
    assert!(table.get(&server("a").key).await.is_err());
    // Through a store without the key, each part says that it has user data, and why it is not there.
    for store in without_the_key(&raw) {
        let record = store.get(&server("a")).await.unwrap().unwrap();
        let launch = record.value.pointer("/launch/sealed_user_data").cloned();
        let mut unopened: Vec<UnopenedUserData> =
            vec![serde_json::from_value(launch.unwrap()).unwrap()];
        for pointer in SPECS {
            let spec = with_rest(pointer, &record.value);
            let spec: ServerSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(spec.user_data, None, "{pointer}");
            unopened.extend(spec.sealed_user_data);
        }
        assert_eq!(unopened.len(), 4);
        for one in unopened {
            assert_eq!(one.key, "may");
            let problem = one.problem;
            assert!(problem.contains("add its line"), "{problem}");
        }
    }
}

#[tokio::test]
async fn what_does_not_open_is_written_to_its_own_field_or_not_at_all() {
    let (raw, _) = with_sealed_record().await;
    let original = stored(&raw, "a").await.value;
    for blind in without_the_key(&raw) {
        let read = blind.get(&server("a")).await.unwrap().unwrap().value;
        for (key, change) in MOVES {
            let mut value = read.clone().into_value();
            change(&mut value);
            let put = Transaction::new().put(server(key), value);
            let refused = blind.commit(&put).await.unwrap_err().to_string();
            assert!(refused.contains("does not belong there"), "{refused}");
        }
        // Other members can be changed, and nothing of the user data is lost.
        let mut value = read.clone().into_value();
        value["name"] = json!("db");
        let put = Transaction::new().put(server("a"), value);
        blind.commit(&put).await.unwrap();
        let mut expected = original.clone().into_value();
        expected["name"] = json!("db");
        assert_eq!(stored(&raw, "a").await.value, expected);
    }
    // Other user data replaces it.
    let blind = sealed_store(&raw, JUNE);
    let mut value = blind
        .get(&server("a"))
        .await
        .unwrap()
        .unwrap()
        .value
        .into_value();
    value["spec"]["user_data"] = json!("aHVudGVyMw==");
    let put = Transaction::new().put(server("a"), value);
    blind.commit(&put).await.unwrap();
    let read = blind.get(&server("a")).await.unwrap().unwrap().value;
    assert_eq!(read["spec"], json!({ "user_data": "aHVudGVyMw==" }));
}
