//! What is counted, and under which names: what an instance waits for, what was tried, and what went wrong.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright_compute::instance::{ConditionKind, Instance, InstanceId};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    network::IfUsed,
    server::{NewServer, Owner, Phase, ServerSpec},
};
use fleetwright_store::Transaction;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use support::{Place, flavor, has, here, image, record, service, settled, tenant};

type Values = Arc<Mutex<BTreeMap<String, f64>>>;

/// Keeps the last value of everything, by name and labels.
#[derive(Clone, Default)]
struct Book(Values);

struct Entry(Values, String);

impl Entry {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.0.lock().unwrap();
        let value = values.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Entry {
    #[expect(clippy::cast_precision_loss, reason = "counts are small here")]
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are small here")]
    fn absolute(&self, to: u64) {
        self.change(|_| to as f64);
    }
}

impl GaugeFn for Entry {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }
    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }
    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

impl HistogramFn for Entry {
    fn record(&self, _: f64) {
        self.change(|count| count + 1.0);
    }
}

impl Book {
    fn entry(&self, key: &Key) -> Arc<Entry> {
        let labels: Vec<_> = key.labels().map(metrics::Label::value).collect();
        let name = [&[key.name()], labels.as_slice()].concat().join(" ");
        Arc::new(Entry(Arc::clone(&self.0), name))
    }

    fn get(&self, name: &str) -> f64 {
        let values = self.0.lock().unwrap();
        *values
            .get(&format!("fleetwright_compute_{name}"))
            .unwrap_or_else(|| panic!("there is no {name}: {:?}", values.keys()))
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.entry(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.entry(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.entry(key))
    }
}

#[tokio::test(start_paused = true)]
async fn everything_that_an_operator_should_see_is_counted() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let broken = InstanceId::derive(network, &Name::new("broken").unwrap());
    let nonsense = serde_json::json!({
        "network": network, "name": "broken", "organization": tenant().0, "project": tenant().1,
        "region": "here", "spec": "nonsense",
    });
    let broken = record("instance", &broken);
    let written = Transaction::new().create(broken.clone(), nonsense);
    place.store.commit(&written).await.unwrap();
    let server = |name: &str, owner: Option<Owner>| {
        let id = InstanceId::derive(network, &Name::new(name).unwrap());
        let spec = ServerSpec::new(flavor("small"), image("debian"), network);
        let owner = owner.unwrap_or_else(|| id.owner());
        NewServer::new(id.server(), owner, here(), tenant(), spec)
    };
    let orphan = server("orphan", None);
    place.servers.ensure(&service(), &orphan).await.unwrap();
    let foreign = server("taken", Some(Owner::new("robot", "1")));
    place.servers.ensure(&service(), &foreign).await.unwrap();
    place
        .during(async {
            let runs = |its: &Instance| its.status.phase == Phase::Running && settled(its);
            let [good, lost] = ["good", "lost"].map(|name| place.create(network, name));
            let (good, lost) = (good.await, lost.await);
            place.until(good, runs).await;
            place.until(lost, runs).await;
            assert!(book.get("steps_total make") >= 2.0);
            assert!(book.get("steps_total rest") >= 2.0);
            assert!(book.get("settling_seconds") >= 2.0);
            assert!(book.get("pass_failures_total") >= 1.0, "the broken one");
            assert!((book.get("orphan_servers_total") - 1.0).abs() < 0.1);
            assert!((book.get("instances_waiting orphan") - 1.0).abs() < 0.1);
            assert!(book.get("instances_queued") >= 0.0);

            place
                .servers
                .delete(&service(), lost.server())
                .await
                .unwrap();
            place
                .until(lost, |its| has(its, ConditionKind::ServerMissing))
                .await;
            assert!((book.get("servers_missing_total") - 1.0).abs() < 0.1);
            assert!((book.get("instances_waiting wait-missing") - 1.0).abs() < 0.1);
            let taken = place.create(network, "taken").await;
            place
                .until(taken, |its| has(its, ConditionKind::ServerTaken))
                .await;
            assert!((book.get("servers_taken_total") - 1.0).abs() < 0.1);

            // The network goes, with everything: what cannot be marked is counted.
            let who = service();
            let asked = place.networks.delete(&who, network, IfUsed::DeleteFirst);
            let _ = asked.await.unwrap();
            for id in [good, lost, taken] {
                place.until_gone(id).await;
            }
            assert!((book.get("network_marks_total marked") - 3.0).abs() < 0.1);
            assert!(book.get("network_marks_total failed") >= 1.0);
            assert!(book.get("network_failures_total") >= 1.0);
            assert!((book.get("instances_forgotten_total") - 3.0).abs() < 0.1);
            assert!((book.get("deletion_seconds") - 3.0).abs() < 0.1);
            assert!(book.get("instances_waiting wait-missing").abs() < 0.1);
            let mended = Transaction::new().delete(broken);
            place.store.commit(&mended).await.unwrap();
            for server in [orphan.id, foreign.id] {
                place.servers.delete(&who, server).await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert!((book.get("networks_gone_total") - 1.0).abs() < 0.1);
            assert!(book.get("instances_waiting orphan").abs() < 0.1);
        })
        .await;
}
