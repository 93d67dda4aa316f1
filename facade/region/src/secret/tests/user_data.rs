//! Fields with user data: sealed for one record, field and tenant, and never read as absent.

use fleetwright_store::Record;

use super::*;
use crate::{schema::sealed_fields, server::Server};

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

#[tokio::test]
async fn every_copy_is_sealed_and_opened() {
    let raw = store();
    let sealing = sealed_store(&raw, MAY);
    let put = Transaction::new().put(server("a"), value());
    sealing.commit(&put).await.unwrap();
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
async fn sealed_value_opens_nowhere_else() {
    let raw = store();
    let sealing = sealed_store(&raw, MAY);
    let put = Transaction::new().put(server("a"), value());
    sealing.commit(&put).await.unwrap();
    let original = stored(&raw, "a").await.value;
    type Change = Box<dyn Fn(&mut Value)>;
    let moved: [(&str, Change); 3] = [
        ("b", Box::new(|_| {})),
        ("a", Box::new(|value| value["project"] = json!(project(2)))),
        (
            "a",
            Box::new(|value| value["spec"] = value["machine"]["applied"].clone()),
        ),
    ];
    for (key, change) in moved {
        let mut value = original.clone();
        change(&mut value);
        let put = Transaction::new().put(server(key), value);
        raw.commit(&put).await.unwrap();
        let read = sealing.get(&server(key)).await.unwrap().unwrap();
        let (id, problem) = sealed_with(&read.value, sealed_fields().next().unwrap()).unwrap();
        assert_eq!(id, "may");
        assert!(problem.contains("does not open with key may"), "{problem}");
    }
}

#[tokio::test]
async fn sealed_record_is_never_read_without_its_user_data() {
    let raw = store();
    let sealing = sealed_store(&raw, MAY);
    let put = Transaction::new().put(server("a"), value());
    sealing.commit(&put).await.unwrap();
    let entropy = Arc::new(CountingEntropy::default());
    let keyless = SealedStore::new(Arc::clone(&raw), None, entropy, sealed_fields());
    let keyless: Arc<dyn Store> = Arc::new(keyless);
    let blind: Arc<dyn Store> = Arc::new(sealed_store(&raw, JUNE));
    for (store, expected) in [
        (
            &raw,
            "the user data is sealed with key may: open the store with the keyring that has this key",
        ),
        (
            &blind,
            "the secret of server/a is sealed with key may, which is not in the keyring: add its line",
        ),
        (
            &keyless,
            "the secret of server/a is sealed with key may, which is not in the keyring: add its line",
        ),
    ] {
        let record = store.get(&server("a")).await.unwrap().unwrap();
        for pointer in ["/spec", "/launch/spec", "/machine/applied"] {
            let mut spec = record.value.pointer(pointer).unwrap().clone();
            spec["flavor"] = json!("small");
            spec["image"] = json!("debian");
            spec["network"] = json!(Uuid::from_u128(1));
            spec["public_ip"] = json!("absent");
            let error = serde_json::from_value::<crate::server::ServerSpec>(spec).unwrap_err();
            assert_eq!(error.to_string(), expected, "{pointer}");
        }
        let config = record.value.pointer("/launch/config").unwrap().clone();
        let error = read_config(config).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let table = fleetwright_store::Table::<Server>::new(Arc::clone(store)).unwrap();
        assert!(table.get(&server("a").key).await.is_err());
    }
}
