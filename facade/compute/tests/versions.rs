//! Yesterday's program on today's records: this version works on a store to which a newer one writes too.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright_compute::{
    ComputeError, Meaning,
    instance::Instance,
    service::{ListInstances, UpdateInstance},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, image, is_applied, is_running, memory_store, project_user, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::{Consent, Phase};
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, Transaction, Watch,
    Write,
};
use serde_json::{Value, json};

/// The member that only the newer version knows.
const ADDED: &str = "added_by_a_newer_version";
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
        .during(async {
            let (principal, instances) = (project_user(tenant(1, 1)), &facade.instances);
            let (network, id) = facade.create_running().await;
            let group = facade.group(network, "web").await;
            instances.stop(&principal, id).await.unwrap();
            facade.until(id, is_stopped).await;
            instances.start(&principal, id).await.unwrap();
            facade.until(id, is_running).await;
            instances.replace(&principal, id).await.unwrap();
            facade.until(id, is_running).await;
            let view = instances.read(&principal, id).await.unwrap();
            let mut wanted = UpdateInstance::of(&view.instance);
            wanted.spec.flavor = flavor("large");
            wanted.spec.image = image("rocky");
            wanted.description = Some("the second".to_owned());
            wanted.consent = Consent::Destroy;
            instances.update(&principal, id, &wanted).await.unwrap();
            facade.until(id, is_running).await;
            facade.assert_balanced(1).await;
            let rules = fleetwright_region::network::Rules::default();
            let operator = fleetwright_facade_testkit::operator();
            let groups = &facade.security_groups;
            groups.set_rules(&operator, group, &rules).await.unwrap();
            instances.delete(&principal, id).await.unwrap();
            facade.until_gone(id).await;
            facade.assert_empty().await;
        })
        .await;
    assert_eq!(*store.lost.lock().unwrap(), [""; 0]);
    let (added, kept) = (&store.added, &store.kept);
    assert!(added.load(Ordering::Relaxed) > 100, "{added:?}");
    assert!(kept.load(Ordering::Relaxed) > 500, "{kept:?}");
}

/// Returns the place of every text in a record.
fn texts(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::String(_) => vec![place.to_owned()],
        Value::Object(members) => {
            let inner = members.iter();
            inner
                .flat_map(|(name, inner)| texts(inner, &format!("{place}/{name}")))
                .collect()
        }
        Value::Array(items) => {
            let inner = items.iter().enumerate();
            inner
                .flat_map(|(at, inner)| texts(inner, &format!("{place}/{at}")))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Whether this version reports the record of an instance or a server as one of a newer version, with this value at this place.
fn is_newer(kind: &str, value: &Value) -> bool {
    let record = Record {
        id: RecordId::new(kind, "a").unwrap(),
        revision: Revision(1),
        value: value.clone().into(),
    };
    let damaged = match kind {
        "instance" => fleetwright_store::Table::<Instance>::read(record).err(),
        _ => fleetwright_store::Table::<fleetwright_region::server::Server>::read(record).err(),
    };
    damaged.is_some_and(|damaged| damaged.is_newer)
}

/// Every value that this version does not know, one after the other, in the records of a running instance: all loops run for minutes,
/// and the machine stays, the record stays as it is, and everything continues once the value is known again.
#[tokio::test(start_paused = true)]
async fn value_of_a_newer_version_changes_no_machine_and_no_record() {
    for kind in ["instance", "server"] {
        let cloud = MemoryCloud::new();
        let mut builder = TestFacade::builder().cloud(&cloud);
        builder = builder.scan_every(Duration::from_secs(10));
        let facade = builder.build().await;
        let (_, id) = facade.launch_instance().await;
        let machines = cloud.oracle().instances();
        let record = RecordId::new(kind, id.to_string()).unwrap();
        let stored = facade.store.get(&record).await.unwrap().unwrap().value;
        let mut places = 0;
        for place in texts(&stored, "") {
            let mut newer = facade.store.get(&record).await.unwrap().unwrap().value;
            let Some(text) = newer.pointer_mut(&place) else {
                continue;
            };
            let known = std::mem::replace(text, json!("of-a-newer-version"));
            if !is_newer(kind, &newer) {
                continue;
            }
            places += 1;
            let put = Transaction::new().put(record.clone(), newer.clone());
            facade.store.commit(&put).await.unwrap();
            let minutes = tokio::time::sleep(Duration::from_secs(300));
            facade.during(minutes).await;
            let after = facade.store.get(&record).await.unwrap().unwrap().value;
            assert_eq!(after, newer, "{kind}{place}");
            let left = cloud.oracle().instances();
            assert_eq!(left.len(), machines.len(), "{kind}{place}");
            *newer.pointer_mut(&place).unwrap() = known;
            let put = Transaction::new().put(record.clone(), newer);
            facade.store.commit(&put).await.unwrap();
            facade.during(facade.until(id, is_running)).await;
        }
        assert!(places >= 5, "{kind} has {places} places");
        facade.during(facade.delete_completely(id)).await;
    }
}

/// A tenant reads and lists an instance of which this version understands a part, and cannot change it here.
#[tokio::test(start_paused = true)]
async fn instance_of_a_newer_version_is_shown_and_not_changed() {
    let cloud = MemoryCloud::new();
    let (facade, _, id) = TestFacade::running_instance(&cloud).await;
    let (alice, stranger) = (project_user(tenant(1, 1)), project_user(tenant(2, 1)));
    let instances = &facade.instances;
    let record = RecordId::new("instance", id.to_string()).unwrap();
    let stored = facade.store.get(&record).await.unwrap().unwrap().value;
    let put = async |value: &Value| {
        let put = Transaction::new().put(record.clone(), value.clone());
        facade.store.commit(&put).await.unwrap();
    };
    let mut places = 0;
    for place in texts(&stored, "") {
        let mut newer = stored.clone();
        *newer.pointer_mut(&place).unwrap() = json!("of-a-newer-version");
        if !is_newer("instance", &newer) {
            continue;
        }
        places += 1;
        put(&newer).await;
        let view = instances.read(&alice, id).await.unwrap();
        assert_eq!((view.instance.id, view.unknown), (id, vec![place.clone()]));
        let page = instances.list(&alice, &ListInstances::default()).await;
        let listed = page.unwrap().instances;
        assert_eq!(listed.len(), 1, "{place}");
        assert_eq!(listed[0].unknown, [place.as_str()]);
        let hidden = instances.read(&stranger, id).await.unwrap_err();
        assert!(
            matches!(hidden, ComputeError::NotFound(_)),
            "{place}: {hidden}"
        );
        let refusals = [
            instances.stop(&alice, id).await.map(drop).unwrap_err(),
            instances.replace(&alice, id).await.map(drop).unwrap_err(),
            instances.delete(&alice, id).await.unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(
                refusal.meaning(),
                Meaning::Unavailable,
                "{place}: {refusal}"
            );
        }
        let after = facade.store.get(&record).await.unwrap().unwrap().value;
        assert_eq!(after, newer, "{place}");
    }
    assert!(places >= 5, "{places} places");
    put(&stored).await;
    assert_eq!(instances.read(&alice, id).await.unwrap().unknown, [""; 0]);
    facade.during(facade.delete_completely(id)).await;
}
