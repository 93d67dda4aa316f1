//! The cost of a change does not grow with the fleet. It is measured in records, not in time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleetwright_compute::instance::InstanceId;
use fleetwright_facade_testkit::{TestFacade, is_running, record_id, stores::RacingStore};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{name::Name, server::Power};
use fleetwright_store::{Store, Transaction};
use serde_json::json;

/// Inserts copies of a settled instance, each with a server of its own.
async fn insert_copies(facade: &TestFacade, model: InstanceId, count: usize) {
    let read = async |kind| {
        let id = record_id(kind, &model);
        let mut value = facade.store.get(&id).await.unwrap().unwrap().value;
        value["events"] = json!([]);
        value
    };
    let (instance, server) = (read("instance").await, read("server").await);
    let network = facade.record(model).await.unwrap().value.network;
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
            transaction = transaction.create(record_id("instance", &id), copy);
            let mut copy = server.clone();
            copy["id"] = json!(id);
            copy["owner"]["id"] = json!(id);
            copy["machine"]["id"] = json!(id);
            copy["observed"]["machine"] = json!(id);
            transaction = transaction.create(record_id("server", &id), copy);
        }
        facade.store.commit(&transaction).await.unwrap();
    }
}

/// How many records the controller reads, lists and writes to stop one instance in a fleet of this size.
async fn cost_of_a_stop(fleet: usize) -> [u64; 3] {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    facade.during(facade.until(id, is_running)).await;
    insert_copies(&facade, id, fleet - 1).await;

    let counting = Arc::new(RacingStore::new(Arc::clone(&facade.store)));
    let controller = facade
        .reopen(Arc::clone(&counting) as Arc<dyn Store>)
        .await
        .instance_controller
        .clone();
    let counts = || {
        let counts = [&counting.read, &counting.lists, &counting.written];
        counts.map(|count| count.load(Ordering::Relaxed))
    };
    let work = async {
        // Until the controller has reconciled every instance once, as at every start.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = counts();
        assert!(before[0] >= 2 * fleet as u64, "{before:?} of {fleet}");
        assert_eq!(before[2], 0, "a start writes nothing");
        // The tenant's request is not counted. No region runs: the server receives the change and does not apply it.
        facade
            .edit(id, |instance| instance.intent.power = Power::Stopped)
            .await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let server = facade.server(id).await.unwrap().server;
        assert_eq!(server.intent.power, Power::Stopped);
        let after = counts();
        [0, 1, 2].map(|which| after[which] - before[which])
    };
    tokio::select! {
        biased;
        cost = work => cost,
        () = controller.run() => unreachable!("a controller works until it is dropped"),
    }
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_change_does_not_grow_with_the_fleet() {
    let (small, large) = (cost_of_a_stop(100).await, cost_of_a_stop(10_000).await);
    assert_eq!(small, large, "(records, lists, writes)");
    let [read, lists, written] = small;
    assert_eq!(lists, 0, "nothing is listed");
    assert!((3..=20).contains(&read), "{read} records were read");
    assert_eq!(written, 2, "the server and the status of the instance");
}
