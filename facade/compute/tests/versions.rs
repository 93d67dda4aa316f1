//! Yesterday's program on today's records, and today's program on yesterday's: a whole life on a store to which another version writes too.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod kinds;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::Reboot;
use fleetwright_compute::{
    instance::{Instance, InstanceId},
    service::UpdateInstance,
};
use fleetwright_facade_testkit::{
    TestFacade, advance_until, flavor, image, is_applied, is_running, memory_store, new_snapshot,
    operator, project_user, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    catalog::ImageState,
    ids::{ImageId, NetworkId},
    network::{Deletion, IfUsed, Rules},
    server::{Consent, Phase},
};
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, StoreExt as _,
    Transaction, Watch, Write,
};
use serde_json::{Value, json};

use kinds::Kind;

/// The member that only the newer version knows.
const ADDED: &str = "added_by_a_newer_version";
/// A kind of event that only the newer version knows.
const NEWER_EVENT: &str = "of-a-newer-version";

/// The members of these objects are data, not of a type, or those of a duration.
const MAPS: [&str; 7] = [
    "tags",
    "amounts",
    "limits",
    "used",
    "plan",
    "release_to",
    "tick",
];

/// The objects with one of these members are variants of enums, which have no other member.
const VARIANTS: [&str; 5] = ["organization", "project", "snapshot", "absent", "missing"];

/// A store in which a newer version adds a member to every object, after each commit of this version. It fails the test if a commit of
/// this version drops one.
#[derive(Debug)]
struct NewerStore {
    inner: Arc<dyn Store>,
    added: AtomicU64,
    kept: AtomicU64,
    lost: Mutex<Vec<String>>,
}

impl NewerStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: memory_store(),
            added: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            lost: Mutex::default(),
        })
    }

    /// Adds the member to every object that does not have it.
    fn add(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, inner) in members.iter_mut() {
                    if !MAPS.contains(&name.as_str()) {
                        self.add(inner);
                    }
                }
                if let Some(Value::Array(events)) = members.get_mut("events") {
                    if !events.iter().any(is_newer_event) {
                        events.push(json!({"kind": NEWER_EVENT, "at": "later", ADDED: 0}));
                    }
                }
                let is_variant =
                    members.len() == 1 && VARIANTS.iter().any(|name| members.contains_key(*name));
                if !is_variant {
                    let number = self.added.fetch_add(1, Ordering::Relaxed);
                    members
                        .entry(ADDED)
                        .or_insert_with(|| json!([number, "text"]));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.add(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Compares every object that is in both forms.
    fn compare(&self, id: &RecordId, place: &str, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                if before.get(ADDED) == after.get(ADDED) {
                    self.kept.fetch_add(1, Ordering::Relaxed);
                } else if let Ok(mut lost) = self.lost.lock() {
                    lost.push(format!("{id}{place}"));
                }
                for (name, before) in before {
                    if let Some(after) = after.get(name) {
                        self.compare(id, &format!("{place}/{name}"), before, after);
                    }
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                if before.iter().any(is_newer_event) && !after.iter().any(is_newer_event) {
                    self.lost.lock().unwrap().push(format!("{id}{place}"));
                }
                for item in after.iter().filter(|item| item.is_object()) {
                    let same = before
                        .iter()
                        .find(|before| without(before) == without(item));
                    if let Some(same) = same {
                        self.compare(id, &format!("{place}/-"), same, item);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_newer_event(item: &Value) -> bool {
    item.get("kind").and_then(Value::as_str) == Some(NEWER_EVENT)
}

/// Returns a value without what the newer version added.
fn without(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let known = members.iter().filter(|(name, _)| *name != ADDED);
            Value::Object(
                known
                    .map(|(name, inner)| (name.clone(), without(inner)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(without).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[async_trait]
impl Store for NewerStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.inner.get(id).await
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        self.inner.list(query).await
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        let mut before = Vec::new();
        for write in &transaction.writes {
            before.push(self.inner.get(write.id()).await?);
        }
        let revision = self.inner.commit(transaction).await?;
        for (write, before) in transaction.writes.iter().zip(before) {
            let Write::Put(id, value) = write else {
                continue;
            };
            if let Some(before) = before {
                self.compare(id, "", &before.value, value);
            }
            let mut newer = value.clone();
            self.add(&mut newer);
            if newer != *value {
                // The newer version reads and writes like everybody else, and may be too late.
                let replace = Transaction::new().replace(id.clone(), revision, newer);
                let _ = self.inner.commit(&replace).await;
            }
        }
        Ok(revision)
    }

    async fn head(&self) -> Result<Revision> {
        self.inner.head().await
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.inner.watch(after, interest).await
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}

fn is_stopped(instance: &Instance) -> bool {
    instance.status.phase == Phase::Stopped && is_applied(instance)
}

/// The life of an instance that runs, until nothing of it is left: every change that a tenant can request.
async fn live(facade: &TestFacade, network: NetworkId, id: InstanceId) {
    let (alice, instances) = (project_user(tenant(1, 1)), &facade.instances);
    let group = facade.group(network, "web").await;
    instances.stop(&alice, id).await.unwrap();
    facade.until(id, is_stopped).await;
    instances.start(&alice, id).await.unwrap();
    facade.until(id, is_running).await;
    instances.reboot(&alice, id, Reboot::Hard).await.unwrap();
    facade.until(id, is_running).await;
    let update = async |change: &dyn Fn(&mut UpdateInstance)| {
        let view = instances.read(&alice, id).await.unwrap();
        let mut wanted = UpdateInstance::of(&view.instance);
        change(&mut wanted);
        instances.update(&alice, id, &wanted).await.unwrap();
        facade.until(id, is_running).await
    };
    // In place, and then with another disk.
    let resized = update(&|wanted| wanted.spec.flavor = flavor("large")).await;
    assert_eq!(resized.spec.flavor, flavor("large"));
    instances.replace(&alice, id).await.unwrap();
    facade.until(id, is_running).await;
    let taken = instances.snapshot(&alice, id, &new_snapshot()).await;
    let taken = taken.unwrap().id;
    until_image(facade, &taken, Some(ImageState::Ready)).await;
    update(&|wanted| {
        wanted.spec.flavor = flavor("small");
        wanted.spec.image = image("rocky");
        wanted.description = Some("the second".to_owned());
        wanted.consent = Consent::Destroy;
    })
    .await;
    facade.assert_balanced(1).await;
    let (operator, groups) = (operator(), &facade.security_groups);
    let rules = groups.set_rules(&operator, group, &Rules::default()).await;
    rules.unwrap();
    let deleted = facade.catalog.delete_image(&alice, &taken).await;
    deleted.unwrap();
    until_image(facade, &taken, None).await;
    instances.delete(&alice, id).await.unwrap();
    facade.until_gone(id).await;
    facade.assert_empty().await;
    let networks = &facade.networks;
    let deletion = networks
        .delete(&operator, network, IfUsed::DeleteFirst)
        .await;
    assert_eq!(deletion.unwrap(), Deletion::Deleted);
}

async fn until_image(facade: &TestFacade, id: &ImageId, wanted: Option<ImageState>) {
    let state = async || {
        let shown = facade.catalog.show_image(&operator(), id).await.unwrap();
        (shown.map(|shown| shown.value.state) == wanted).then_some(())
    };
    advance_until("the state of an image", state).await;
}

/// The kinds that did not exist at first.
const NEW_KINDS: [&str; 2] = ["region-account", "region-scan"];

/// The members with content that records did not have at first.
const NEW_MEMBERS: [(&str, &str); 8] = [
    ("server", "/launch/unconfirmed"),
    ("server", "/machine/last_action"),
    ("server", "/machine/reboots"),
    ("server", "/booted"),
    ("instance", "/status/mac_address"),
    ("instance", "/status/observed_at"),
    ("organization", "/state"),
    ("project", "/state"),
];

/// Removes a member of a record, and returns whether it was there.
fn remove(value: &mut Value, place: &str) -> bool {
    let Some((outer, name)) = place.rsplit_once('/') else {
        return false;
    };
    let outer = value.pointer_mut(outer).and_then(Value::as_object_mut);
    outer.and_then(|outer| outer.remove(name)).is_some()
}

/// Returns the places of the members that are null, empty or false: a version that did not have them yet wrote none.
fn empty_members(value: &Value, place: &str) -> Vec<String> {
    let inner: Vec<_> = match value {
        Value::Object(members) => {
            let members = members.iter();
            members.map(|(name, inner)| (name.clone(), inner)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, inner)| (at.to_string(), inner)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let is_empty = [json!(null), json!(false), json!([]), json!({})].contains(value);
    let own = is_empty.then(|| place.to_owned());
    let inner = inner
        .into_iter()
        .flat_map(|(step, inner)| empty_members(inner, &format!("{place}/{step}")));
    own.into_iter().chain(inner).collect()
}

/// Returns a record as the oldest version wrote it that this one still reads, and how many members it has less.
fn oldest(kind: &str, value: &Value) -> (Value, usize) {
    let mut older = value.clone();
    let mut removed = usize::from(remove(&mut older, "/version"));
    let Some(types) = Kind::named(kind) else {
        return (older, removed);
    };
    let of_kind = NEW_MEMBERS.iter().filter(|(of, _)| *of == kind);
    let new = of_kind.map(|(_, place)| (*place).to_owned());
    for place in empty_members(value, "").into_iter().chain(new) {
        let mut without = older.clone();
        if remove(&mut without, &place) && (types.again)(&without).is_ok() {
            older = without;
            removed += 1;
        }
    }
    (older, removed)
}

/// Today's program on yesterday's records.
#[tokio::test(start_paused = true)]
async fn whole_life_of_an_instance_on_records_of_the_oldest_form() {
    let cloud = MemoryCloud::new();
    let (facade, network, id) = TestFacade::running_instance(&cloud).await;
    let mut removed = 0;
    for (kind, _) in fleetwright_facade_testkit::schema().kinds() {
        let records = facade.store.list_all(&Query::all(kind.clone())).await;
        for record in records.unwrap().records {
            let (older, fewer) = oldest(kind.as_str(), &record.value);
            removed += fewer;
            let transaction = if NEW_KINDS.contains(&kind.as_str()) {
                Transaction::new().delete(record.id)
            } else {
                Transaction::new().put(record.id, older)
            };
            facade.store.commit(&transaction).await.unwrap();
        }
    }
    assert!(removed > 40, "{removed} members");
    facade
        .during_with_snapshots(live(&facade, network, id))
        .await;
}

#[tokio::test(start_paused = true)]
async fn whole_life_of_an_instance_keeps_what_a_newer_version_adds() {
    let store = NewerStore::new();
    let cloud = MemoryCloud::builder()
        .latency(Duration::from_millis(20))
        .read_lag(Duration::from_secs(3))
        .build();
    let builder = TestFacade::builder().cloud(&cloud);
    let facade = builder
        .store(Arc::clone(&store) as Arc<dyn Store>)
        .build()
        .await;
    facade
        .during_with_snapshots(async {
            let (network, id) = facade.create_running().await;
            live(&facade, network, id).await;
        })
        .await;
    assert_eq!(*store.lost.lock().unwrap(), [""; 0]);
    let (added, kept) = (&store.added, &store.kept);
    assert!(added.load(Ordering::Relaxed) > 100, "{added:?}");
    assert!(kept.load(Ordering::Relaxed) > 500, "{kept:?}");
}
