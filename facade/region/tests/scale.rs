//! The cost of an event, in records read, does not grow with the fleet.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fleetwright_facade_testkit::{
    NamePlanner, TestRegion, bare_server, memory_store, server_admin, server_id,
    stores::RacingStore,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::{Phase, Power, Server, ServerId, ServerView};
use fleetwright_store::{RecordId, Store, Transaction};
use serde_json::{Value, json};
use uuid::Uuid;

/// Creates copies of a server that reached its desired state.
async fn insert_copies(store: &Arc<dyn Store>, model: &Server, count: u128) {
    let mut value = serde_json::to_value(model).unwrap();
    // The length of the event history does not matter here.
    value["events"] = json!([]);
    let numbers: Vec<_> = (0..count).collect();
    for batch in numbers.chunks(100) {
        let mut transaction = Transaction::new();
        for number in batch {
            let id = Uuid::from_u128(0xffff_0000_0000 + number).to_string();
            let mut copy: Value = value.clone();
            copy["id"] = json!(id);
            copy["owner"]["id"] = json!(id);
            copy["machine"]["id"] = json!(id);
            copy["observed"]["machine"] = json!(id);
            let record = RecordId::new("server", &id).unwrap();
            transaction = transaction.create(record, copy);
        }
        store.commit(&transaction).await.unwrap();
    }
}

/// Returns the number of records that the controller reads to stop one server, in a fleet of this size.
async fn cost_of_a_stop(fleet: u128) -> (u64, u64) {
    let cloud = MemoryCloud::new();
    let handle: Arc<dyn fleetwright::InstanceProvisioner> = Arc::new(cloud.provisioner());
    let inner = memory_store();
    let region = TestRegion::with(
        Arc::clone(&handle),
        Arc::clone(&inner),
        NamePlanner::identity(),
    );
    let (principal, id): (_, ServerId) = (server_admin(), server_id(1));
    region
        .servers
        .ensure(&principal, &bare_server(1))
        .await
        .unwrap();
    let running = |view: &ServerView| {
        view.phase == Phase::Running && view.server.observed_generation == view.server.generation
    };
    let model = region.during(region.until(id, running)).await.server;
    insert_copies(&inner, &model, fleet - 1).await;

    let counting = Arc::new(RacingStore::new(Arc::clone(&inner)));
    let store: Arc<dyn Store> = Arc::clone(&counting) as _;
    let clock = Arc::clone(&region.clock);
    let counted = TestRegion::reopened(handle, store, NamePlanner::identity(), clock);
    let work = async {
        // Wait for the initial pass over all servers.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let read_counts = || {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            (load(&counting.read), load(&counting.lists))
        };
        let before = read_counts();
        assert!(before.0 >= fleet as u64, "{before:?} of {fleet}");
        // The request itself is not counted.
        region
            .servers
            .set_power(&principal, id, Power::Stopped)
            .await
            .unwrap();
        let stopped =
            |view: &ServerView| view.server.machine.as_ref().unwrap().last_action.is_some();
        region.until(id, stopped).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = read_counts();
        (after.0 - before.0, after.1 - before.1)
    };
    tokio::select! {
        biased;
        cost = work => cost,
        () = counted.controller.run() => unreachable!("a controller works until it is dropped"),
    }
}

#[tokio::test(start_paused = true)]
async fn cost_of_a_change_does_not_grow_with_the_fleet() {
    let (small, large) = (cost_of_a_stop(1_000).await, cost_of_a_stop(50_000).await);
    assert_eq!(small, large, "(records, lists)");
    assert_eq!(small.1, 0, "nothing is listed");
    assert!((2..=12).contains(&small.0), "{small:?}");
}
