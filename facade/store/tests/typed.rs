//! The typed layer and the conveniences, over the memory store.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_store::{
    Change, Document, IndexName, Interest, Key, MemoryStore, Query, RecordId, Result, Revision,
    Schema, Store, StoreError, StoreExt as _, Table, Transaction,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Server {
    owner: String,
    network: String,
}

impl Document for Server {
    const KIND: &'static str = "server";
}

#[derive(Clone, Serialize, Deserialize)]
struct Unwritable {
    pairs: BTreeMap<(u8, u8), u8>,
}

impl Document for Unwritable {
    const KIND: &'static str = "server";
}

#[derive(Clone, Serialize, Deserialize)]
struct Undeclared {}

impl Document for Undeclared {
    const KIND: &'static str = "undeclared";
}

fn store() -> Arc<dyn Store> {
    let builder = Schema::builder().kind("server").unique("owner", ["/owner"]);
    let schema = builder
        .index("network", ["/network"])
        .kind("other")
        .build()
        .unwrap();
    Arc::new(MemoryStore::new(schema))
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn server(owner: &str, network: &str) -> Server {
    Server {
        owner: owner.to_owned(),
        network: network.to_owned(),
    }
}

fn index(name: &str) -> IndexName {
    IndexName::new(name).unwrap()
}

/// Returns a store with three servers, and its table.
async fn filled_store() -> Result<(Arc<dyn Store>, Table<Server>)> {
    let store = store();
    let servers = Table::new(Arc::clone(&store))?;
    for (name, network) in [("a", "n"), ("b", "m"), ("c", "n")] {
        let create = servers.create(Transaction::new(), &key(name), &server(name, network))?;
        store.commit(&create).await?;
    }
    Ok((store, servers))
}

#[tokio::test]
async fn values_are_created_read_replaced_and_removed() {
    let (store, servers) = filled_store().await.unwrap();
    let read = servers.get(&key("a")).await.unwrap().unwrap();
    assert_eq!(
        (&read.value, read.revision),
        (&server("a", "n"), Revision(1))
    );
    let replaced = servers
        .replace(Transaction::new(), &read, &server("a", "x"))
        .unwrap();
    assert_eq!(store.commit(&replaced).await.unwrap(), Revision(4));
    let stale = servers.remove(Transaction::new(), &read);
    assert!(store.commit(&stale).await.unwrap_err().conflict().is_some());
    let duplicate = servers
        .create(Transaction::new(), &key("a"), &server("z", "x"))
        .unwrap();
    assert!(
        store
            .commit(&duplicate)
            .await
            .unwrap_err()
            .conflict()
            .is_some()
    );
    let read = servers.find(&index("owner"), "a").await.unwrap().unwrap();
    assert_eq!(read.value.network, "x");
    store
        .commit(&servers.remove(Transaction::new(), &read))
        .await
        .unwrap();
    assert_eq!(servers.get(&key("a")).await.unwrap(), None);
    assert_eq!(servers.find(&index("owner"), "a").await.unwrap(), None);
}

#[tokio::test]
async fn record_of_another_type_does_not_affect_others() {
    let (store, servers) = filled_store().await.unwrap();
    let mismatched = Transaction::new().put(servers.id(&key("b")), json!({"network": "n"}));
    store.commit(&mismatched).await.unwrap();
    let page = servers
        .list_all(&servers.by(&index("network"), "n").limit(1))
        .await
        .unwrap();
    let keys: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["a", "c"]);
    assert_eq!(page.damaged[0].id, servers.id(&key("b")));
    let error = servers.get(&key("b")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "store corrupt: server/b at revision 4: missing field `owner`"
    );
    let first = servers.list(&servers.all().limit(2)).await.unwrap();
    assert_eq!(
        (first.items.len(), first.damaged.len(), first.next.is_some()),
        (1, 1, true)
    );
}

#[tokio::test]
async fn errors_do_not_contain_record_values() {
    let (store, servers) = filled_store().await.unwrap();
    let mismatched = json!({"owner": ["secret", "\"secret\""], "network": "n"});
    let put = |value| Transaction::new().put(servers.id(&key("b")), value);
    store
        .commit(&put(json!("secret \"secret\"")))
        .await
        .unwrap();
    let error = servers.get(&key("b")).await.unwrap_err().to_string();
    assert!(
        error.ends_with("invalid type: string \"…\", expected struct Server"),
        "{error}"
    );
    let read = Table::<Server>::read(fleetwright_store::Record {
        id: servers.id(&key("b")),
        revision: Revision(1),
        value: mismatched.into(),
    });
    assert!(!read.unwrap_err().reason.contains("secret"));
}

#[tokio::test]
async fn table_ignores_changes_of_other_kinds() {
    let (store, servers) = filled_store().await.unwrap();
    let both = Transaction::new()
        .put(RecordId::new("other", "x").unwrap(), json!(1))
        .delete(servers.id(&key("a")));
    let revision = store.commit(&both).await.unwrap();
    let mut watch = store.watch(Revision(3), Interest::all()).await.unwrap();
    let commit = watch.next().await.unwrap();
    assert_eq!(commit.revision, revision);
    assert!(servers.changed(&commit.changes[0]).is_none());
    assert!(matches!(&commit.changes[1], Change::Deleted(_)));
    let deleted = servers.changed(&commit.changes[1]).unwrap().unwrap();
    assert_eq!(
        (deleted.value, deleted.revision),
        (server("a", "n"), Revision(1))
    );
}

#[tokio::test]
async fn invalid_values_are_refused() {
    let store = store();
    assert!(Table::<Undeclared>::new(Arc::clone(&store)).is_err());
    let unwritable = Table::<Unwritable>::new(Arc::clone(&store)).unwrap();
    let value = Unwritable {
        pairs: BTreeMap::from([((1, 2), 3)]),
    };
    let error = unwritable
        .create(Transaction::new(), &key("a"), &value)
        .unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    let servers = Table::<Server>::new(store).unwrap();
    let foreign = Query::all(RecordId::new("other", "x").unwrap().kind);
    assert!(servers.list(&foreign).await.is_err());
}

#[tokio::test]
async fn update_creates_changes_and_keeps_records() {
    let (store, servers) = filled_store().await.unwrap();
    let id = RecordId::new("other", "counter").unwrap();
    let increment = |value: Value| Some(json!(value.as_u64().unwrap_or(0) + 1));
    assert_eq!(
        store.update(&id, increment).await.unwrap(),
        Some(Revision(4))
    );
    assert_eq!(
        store.update(&id, increment).await.unwrap(),
        Some(Revision(5))
    );
    assert_eq!(store.update(&id, |_| None).await.unwrap(), None);
    assert_eq!(store.get(&id).await.unwrap().unwrap().value, json!(2));
    // A unique value that is taken is not retried.
    let take_name = |_| Some(json!({"owner": "a"}));
    let error = store
        .update(&servers.id(&key("b")), take_name)
        .await
        .unwrap_err();
    assert!(error.conflict().is_some(), "{error}");
}
