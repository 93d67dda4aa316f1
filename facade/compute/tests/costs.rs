//! The cost of an event does not grow with the fleet: records are counted, not time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod meddler;
mod support;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleetwright_compute::instance::{Instance, InstanceId};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{Phase, Power},
};
use fleetwright_store::{Store, Transaction};
use meddler::Meddler;
use serde_json::json;

use support::{Place, record, settled};

/// Copies of a settled instance with its server, each its own.
async fn crowd(place: &Place, model: InstanceId, count: usize) {
    let read = async |kind| {
        let id = record(kind, &model);
        let mut value = place.store.get(&id).await.unwrap().unwrap().value;
        value["events"] = json!([]);
        value
    };
    let (instance, server) = (read("instance").await, read("server").await);
    let network = place.read(model).await.unwrap().value.network;
    let numbers: Vec<_> = (0..count).collect();
    for batch in numbers.chunks(50) {
        let mut transaction = Transaction::new();
        for number in batch {
            let name = Name::new(format!("copy-{number}")).unwrap();
            let id = InstanceId::derive(network, &name);
            let mut copy = instance.clone();
            copy["id"] = json!(id);
            copy["server"] = json!(id);
            copy["name"] = json!(name);
            transaction = transaction.create(record("instance", &id), copy);
            let mut copy = server.clone();
            copy["id"] = json!(id);
            copy["owner"]["id"] = json!(id);
            copy["instance"]["id"] = json!(id);
            copy["observed"]["instance"] = json!(id);
            transaction = transaction.create(record("server", &id), copy);
        }
        place.store.commit(&transaction).await.unwrap();
    }
}

/// How many records the controller reads, lists and writes to have one instance stopped, in a fleet of so many.
async fn cost_of_a_stop(fleet: usize) -> [u64; 3] {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let id = place.create(network, "web").await;
    let runs = |its: &Instance| its.status.phase == Phase::Running && settled(its);
    place.during(place.until(id, runs)).await;
    crowd(&place, id, fleet - 1).await;

    let counting = Arc::new(Meddler::new(Arc::clone(&place.store)));
    let controller = place.controller_over(Arc::clone(&counting) as Arc<dyn Store>);
    let looks = || {
        let counts = [&counting.read, &counting.lists, &counting.written];
        counts.map(|count| count.load(Ordering::Relaxed))
    };
    let story = async {
        // Until it has looked at everything once, as every process does at its start.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = looks();
        assert!(before[0] >= 2 * fleet as u64, "{before:?} of {fleet}");
        assert_eq!(before[2], 0, "a start writes nothing");
        // The wish comes from outside and is not counted. No region works here: the server hears, and stays as it is.
        place.ask(id, |its| its.intent.power = Power::Stopped).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let heard = place.server(id).await.unwrap().server;
        assert_eq!(heard.intent.power, Power::Stopped);
        let after = looks();
        [0, 1, 2].map(|which| after[which] - before[which])
    };
    tokio::select! {
        biased;
        cost = story => cost,
        () = controller.run() => unreachable!("a controller works until it is dropped"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_costs_the_same_in_a_small_fleet_and_in_a_large_one() {
    let (small, large) = (cost_of_a_stop(100).await, cost_of_a_stop(10_000).await);
    assert_eq!(small, large, "(records, lists, writes)");
    let [read, lists, written] = small;
    assert_eq!(lists, 0, "nothing is listed");
    assert!((3..=20).contains(&read), "{read} records were read");
    assert_eq!(written, 2, "the server hears, and the status says so");
}
