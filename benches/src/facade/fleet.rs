//! Whether the cost of an event grows with the number of instances.

use std::sync::Arc;

use fleetwright_compute::{instance::InstanceId, prelude::*};
use fleetwright_facade_testkit::record_id;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    measure,
    world::{Kept, World},
};
use crate::measure::{Effort, Row, Variant};

/// Inserts copies of an instance and its server.
async fn insert_copies(world: &World, model: InstanceId, count: usize) {
    let store = &world.facade.store;
    let read = async |kind| {
        let found = store.get(&record_id(kind, &model)).await;
        let found = found.expect("a read").expect("a record").value;
        let mut value: serde_json::Value = (*found).clone();
        value["events"] = json!([]);
        value
    };
    let (instance, server) = (read("instance").await, read("server").await);
    let numbers: Vec<_> = (0..count).collect();
    for batch in numbers.chunks(50) {
        let mut transaction = Transaction::new();
        for number in batch {
            let name = Name::new(format!("copy-{number}")).expect("a name");
            let network = world.network();
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
        store.commit(&transaction).await.expect("a commit");
    }
}

/// A fleet of which one instance changes.
async fn fleet(size: usize) -> (Arc<World>, InstanceId) {
    let world = World::new(Kept::Memory, 1).await;
    let running = world.facade.start();
    let id = world.create().await;
    world.until_running(id).await;
    running.shutdown().await;
    insert_copies(&world, id, size - 1).await;
    (world, id)
}

/// One event: the tenant requests a change of power, the controller of instances passes it on, and the one of servers sees it.
async fn change(world: &World, id: InstanceId, count: u32) {
    let facade = &world.facade;
    for number in 0..count {
        let requested = if number % 2 == 0 {
            facade.instances.stop(&world.principal, id).await
        } else {
            facade.instances.start(&world.principal, id).await
        };
        requested.expect("a request");
        let reconciled = facade.instance_controller.reconcile(id).await;
        reconciled.expect("a reconcile of the instance");
        let server = id.server();
        let reconciled = facade.regions[0].controller.reconcile(server).await;
        reconciled.expect("a reconcile of the server");
    }
}

pub(super) fn run(effort: Effort, runtime: &Runtime) -> Vec<Row> {
    let sizes = [1_000, 10_000, 50_000].into_iter();
    let sizes = sizes.filter(|size| *size <= effort.fleet as usize);
    let variants = sizes.map(|size| -> Variant<'_> {
        let (world, id) = runtime.block_on(fleet(size));
        let run = move |count| runtime.block_on(change(&world, id, count));
        (format!("{size} instances"), Box::new(run))
    });
    measure(effort, "one event", variants.collect())
}
