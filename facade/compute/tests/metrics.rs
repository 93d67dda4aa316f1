//! The metrics of the controllers: what instances wait for, the steps, and the failures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_compute::instance::{ConditionKind, InstanceId};
use fleetwright_facade_testkit::{
    RecordedMetrics, TestFacade, flavor, has_condition, image, is_running, north, operator,
    record_id, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    network::IfUsed,
    server::{NewServer, Owner, ServerSpec},
};
use fleetwright_store::Transaction;

#[tokio::test(start_paused = true)]
async fn controllers_count_steps_waits_and_failures() {
    let recorded = RecordedMetrics::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let metric = |name: &str| recorded.get(&format!("fleetwright_compute_{name}"));
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let broken = facade.insert_unreadable(network).await;
    let broken = record_id("instance", &broken);
    let server = |name: &str, owner: Option<Owner>| {
        let id = InstanceId::derive(network, &Name::new(name).unwrap());
        let spec = ServerSpec::new(flavor("small"), image("debian"), network);
        let owner = owner.unwrap_or_else(|| id.owner());
        NewServer::new(id.server(), owner, north(), tenant(1, 1), spec)
    };
    let orphan = server("orphan", None);
    facade.servers.ensure(&operator(), &orphan).await.unwrap();
    let foreign = server("taken", Some(Owner::new("robot", "1")));
    facade.servers.ensure(&operator(), &foreign).await.unwrap();
    facade
        .during(async {
            let [good, lost] = ["good", "lost"].map(|name| facade.create(network, name));
            let (good, lost) = (good.await.instance.id, lost.await.instance.id);
            facade.until(good, is_running).await;
            facade.until(lost, is_running).await;
            assert!(metric("steps_total create-server") >= 2.0);
            assert!(metric("steps_total idle") >= 2.0);
            assert!(metric("apply_seconds") >= 2.0);
            assert!(
                metric("reconcile_failures_total") >= 1.0,
                "those of the broken instance"
            );
            assert!((metric("orphan_servers_total") - 1.0).abs() < 0.1);
            assert!((metric("instances_waiting orphan") - 1.0).abs() < 0.1);
            assert!(metric("instances_queued") >= 0.0);

            facade
                .servers
                .delete(&operator(), lost.server())
                .await
                .unwrap();
            facade
                .until_condition(lost, ConditionKind::MachineRemoved)
                .await;
            assert!((metric("servers_missing_total") - 1.0).abs() < 0.1);
            assert!((metric("instances_waiting server-missing") - 1.0).abs() < 0.1);
            let taken = facade.create(network, "taken").await.instance.id;
            facade
                .until(taken, |instance| {
                    has_condition(instance, ConditionKind::IdConflict)
                })
                .await;
            assert!((metric("server_conflicts_total") - 1.0).abs() < 0.1);

            // The network is deleted with its instances; an instance that cannot be marked is counted.
            let principal = operator();
            let requested = facade
                .networks
                .delete(&principal, network, IfUsed::DeleteFirst);
            let _ = requested.await.unwrap();
            for id in [good, lost, taken] {
                facade.until_gone(id).await;
            }
            assert!((metric("network_marks_total marked") - 3.0).abs() < 0.1);
            assert!(metric("network_marks_total failed") >= 1.0);
            assert!(metric("network_reconcile_failures_total") >= 1.0);
            assert!((metric("instances_deleted_total") - 3.0).abs() < 0.1);
            assert!((metric("deletion_seconds") - 3.0).abs() < 0.1);
            assert!(metric("instances_waiting server-missing").abs() < 0.1);
            let repair = Transaction::new().delete(broken);
            facade.store.commit(&repair).await.unwrap();
            for server in [orphan.id, foreign.id] {
                facade.servers.delete(&principal, server).await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert!((metric("networks_deleted_total") - 1.0).abs() < 0.1);
            assert!(metric("instances_waiting orphan").abs() < 0.1);
        })
        .await;
}
