//! Instances and servers with a value that only a newer version knows: this version leaves them alone, and shows what it understands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod kinds;

use std::time::Duration;

use fleetwright_compute::{ComputeError, Meaning, service::ListInstances};
use fleetwright_facade_testkit::{TestFacade, is_running, project_user, tenant};
use fleetwright_memory::MemoryCloud;
use fleetwright_store::{RecordId, Store as _, Transaction};
use serde_json::{Value, json};

use kinds::Kind;

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

/// Whether this version reports the record of an instance or a server as one of a newer version.
fn is_newer(kind: &str, value: &Value) -> bool {
    let read = (Kind::named(kind).unwrap().again)(value);
    read.is_err_and(|damaged| damaged.is_newer)
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
