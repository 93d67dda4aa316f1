//! What is counted, and under which names.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod support;
mod town;
mod yard;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright::InstanceConfig;
use fleetwright_memory::{Fault, MemoryCloud, Refused, Rule, WireCall};
use fleetwright_region::{
    controller::tags,
    monitor::Sweep,
    server::{Phase, ServerView},
};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

use support::{Region, new_server, server_id, somebody};

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
        let labels = key.labels().filter(|label| label.key() != "region");
        let labels: Vec<_> = labels.map(metrics::Label::value).collect();
        let region = key.labels().any(|label| label.key() == "region");
        assert!(region, "{key} does not say of which region");
        let name = [&[key.name()], labels.as_slice()].concat().join(" ");
        Arc::new(Entry(Arc::clone(&self.0), name))
    }

    fn get(&self, name: &str) -> f64 {
        let values = self.0.lock().unwrap();
        *values
            .get(&format!("fleetwright_region_{name}"))
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
    let busy = Fault::Refused(Refused::Throttled(Duration::from_secs(1)));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Launch, 1, busy.clone()));
    cloud.faults().add(Rule::nth(WireCall::ListPage, 2, busy));
    let region = Region::new(Arc::new(cloud.provisioner())).policy(|policy| {
        policy.sweep = Sweep::Destroy;
        policy.orphan_age = Duration::from_secs(5);
    });
    let orphan = InstanceConfig::builder("linux", "small").tag(tags::REGION, "here");
    cloud.operator().launch(&orphan.build().unwrap()).unwrap();
    let story = async {
        let who = somebody();
        region.servers.ensure(&who, &new_server(1)).await.unwrap();
        let up = |view: &ServerView| view.phase == Phase::Running;
        let view = region.until(server_id(1), up).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((book.get("machines"), book.get("servers")), (1.0, 1.0));
        let machine = view.server.instance.unwrap().id;
        cloud.operator().terminate(&machine).unwrap();
        region
            .until(server_id(1), |view| view.phase == Phase::Lost)
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(book.get("drift destroyed"), 1.0);
        region.servers.delete(&who, server_id(1)).await.unwrap();
        region.until_gone(server_id(1)).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    };
    region.during(story).await;
    assert_eq!(book.get("swept_total"), 1.0);
    assert_eq!(
        book.get("call_failures_total launch_instance throttled"),
        1.0
    );
    assert_eq!(book.get("servers_forgotten_total"), 1.0);
    assert_eq!(book.get("looks_total failed"), 1.0);
    assert!(book.get("looks_total ok") > 5.0 && book.get("look_seconds") > 5.0);
    assert!(book.get("steps_total begin") >= 1.0 && book.get("steps_total done") >= 1.0);
    for quiet in [
        "orphans",
        "frozen",
        "absent",
        "servers",
        "servers_queued",
        "drift missing",
    ] {
        assert_eq!(book.get(quiet), 0.0, "{quiet}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_machines_is_counted_by_verb_and_outcome() {
    let book = Book::default();
    let _guard = metrics::set_default_local_recorder(&book);
    let cloud = MemoryCloud::new();
    let yard = yard::Yard::new(&cloud).await;
    let (who, id) = (town::service(), town::server_id(1));
    let machines = &yard.machines;
    let stranger = town::user(town::tenant(9, 9));
    yard.ensure().await;
    assert!(machines.console_session(&who, id).await.is_err());
    assert!(machines.console_session(&stranger, id).await.is_err());
    yard.during(yard.until(Phase::Running)).await;
    machines.console_session(&who, id).await.unwrap();
    machines.console_output(&who, id, None).await.unwrap();
    machines.ssh_key(&who, id).await.unwrap();
    machines.snapshot(&who, id, &yard::wish()).await.unwrap();
    let lost = Fault::Refused(Refused::Throttled(Duration::from_secs(1)));
    cloud
        .faults()
        .add(Rule::nth(WireCall::Snapshot, 1, lost.clone()));
    cloud
        .faults()
        .add(Rule::nth(WireCall::ConsoleOutput, 1, lost));
    assert!(machines.console_output(&who, id, None).await.is_err());
    yard.snapshots.pass().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    yard.snapshots.pass().await.unwrap();
    for counted in [
        "machine_calls_total console-session not-ready",
        "machine_calls_total console-session not-found",
        "machine_calls_total console-session ok",
        "machine_calls_total console-output ok",
        "machine_calls_total console-output unavailable",
        "machine_calls_total ssh-key ok",
        "machine_calls_total snapshot ok",
        "snapshots_total retried",
        "snapshots_total begun",
        "snapshots_total ready",
    ] {
        assert_eq!(book.get(counted), 1.0, "{counted}");
    }
}
