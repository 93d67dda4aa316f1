//! What is counted of calls, and under which names.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod town;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use fleetwright_compute::instance::InstanceId;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use town::{Town, people::reader, tenant, user};

type Values = Arc<Mutex<BTreeMap<String, u64>>>;

/// Counts by name and labels.
#[derive(Clone, Default)]
struct Book(Values);

struct Entry(Values, String);

impl CounterFn for Entry {
    fn increment(&self, by: u64) {
        *self.0.lock().unwrap().entry(self.1.clone()).or_default() += by;
    }
    fn absolute(&self, to: u64) {
        self.0.lock().unwrap().insert(self.1.clone(), to);
    }
}

impl Recorder for Book {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let line = format!("{} {}", key.name(), labels.join(" "));
        Counter::from_arc(Arc::new(Entry(self.0.clone(), line)))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn every_call_is_counted_by_what_came_of_it() {
    let book = Book::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    metrics::with_local_recorder(&book, || {
        runtime.block_on(async {
            let town = Town::new().await;
            let blue = town.network("blue").await;
            let (alice, rita) = (user(tenant(1, 1)), reader(tenant(1, 1)));
            let id = town.create(blue, "web").await.unwrap().instance.id;
            town.create(blue, "web").await.unwrap_err();
            town.instances.stop(&rita, id).await.unwrap_err();
            town.instances.stop(&alice, id).await.unwrap();
            let absent = InstanceId::from_uuid(uuid::Uuid::nil());
            town.instances.read(&alice, absent).await.unwrap_err();
            town.instances
                .list(&alice, &Default::default())
                .await
                .unwrap();
            town.instances.ssh_key(&alice, id).await.unwrap_err();
        });
    });
    let counted = book.0.lock().unwrap().clone();
    let lines = [
        "call=create outcome=conflict",
        "call=create outcome=ok",
        "call=list outcome=ok",
        "call=read outcome=not_found",
        "call=ssh-key outcome=conflict",
        "call=stop outcome=forbidden",
        "call=stop outcome=ok",
    ];
    let wanted = lines.map(|line| (format!("fleetwright_compute_calls_total {line}"), 1));
    let of_compute = |(line, _): &(String, u64)| line.starts_with("fleetwright_compute_");
    let counted: BTreeMap<_, _> = counted.into_iter().filter(of_compute).collect();
    assert_eq!(counted, wanted.into());
}
