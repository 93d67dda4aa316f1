//! One server for each instance, and what happens when a server is missing, foreign or orphaned.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright_compute::{
    controller::Controller,
    instance::{ConditionKind, EventKind, Instance, InstanceId, Provisioning},
};
use fleetwright_facade_testkit::{
    TestFacade, flavor, has_condition, image, instance_record, is_running, north, operator,
    project_user, stores::RacingStore, tenant,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{NewServer, Owner, Phase, Power, ServerSpec},
};
use fleetwright_store::{Store, Transaction};

/// Creates a server with this id that has another owner.
async fn foreign(facade: &TestFacade, id: InstanceId, network: fleetwright_region::ids::NetworkId) {
    let spec = ServerSpec::new(flavor("small"), image("debian"), network);
    let owner = Owner::new("instance", "another");
    let new = NewServer::new(id.server(), owner, north(), tenant(1, 1), spec);
    facade.servers.ensure(&operator(), &new).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn missing_server_is_recreated_only_on_request_of_the_tenant() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade
        .during(async {
            let (_, id) = facade.create_running().await;
            // An operator deletes the server, not the instance.
            facade.delete_server(id).await;
            let being_deleted =
                |instance: &Instance| has_condition(instance, ConditionKind::MachineDeleting);
            let found = facade.until(id, being_deleted).await;
            assert_eq!(found.provisioning(), Provisioning::Provisioning);
            let missing =
                |instance: &Instance| has_condition(instance, ConditionKind::MachineRemoved);
            let found = facade.until(id, missing).await;
            assert!(!being_deleted(&found));
            assert_eq!(
                (found.status.phase, found.provisioning()),
                (Phase::Lost, Provisioning::Error)
            );
            assert_eq!(found.status.private_ip, None);
            assert!(
                found.status.server.is_some(),
                "the status still says that there was a server"
            );
            let is_problem =
                |event: &&fleetwright_compute::instance::Event| event.kind == EventKind::Problem;
            assert_eq!(found.events.iter().filter(is_problem).count(), 2);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert!(
                facade.server(id).await.is_none(),
                "no replacement was requested"
            );
            facade.assert_balanced(1).await;
            // A request other than a replacement does not create another server.
            facade
                .edit(id, |instance| instance.intent.power = Power::Stopped)
                .await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(facade.server(id).await.is_none());
            facade
                .edit(id, |instance| {
                    instance.intent.power = Power::Running;
                    instance.intent.replaces += 1;
                })
                .await;
            let running = facade.until(id, is_running).await;
            assert!(!missing(&running) && running.status.server.unwrap().replaces == 1);
            facade.delete_completely(id).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn instance_with_missing_server_can_be_deleted() {
    let cloud = MemoryCloud::new();
    TestFacade::run_with_instance(&cloud, async |facade, id| {
        facade.delete_server(id).await;
        facade
            .until_condition(id, ConditionKind::MachineRemoved)
            .await;
        facade.delete_completely(id).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn server_of_another_owner_is_never_changed() {
    let cloud = MemoryCloud::new();
    TestFacade::run(&cloud, async |facade| {
        let network = facade.network("net").await;
        let id = InstanceId::derive(network, &Name::new("web").unwrap());
        foreign(facade, id, network).await;
        while facade.server(id).await.unwrap().phase != Phase::Running {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let before = facade.server(id).await.unwrap().server;
        facade.create(network, "web").await;
        let found = facade.until_condition(id, ConditionKind::IdConflict).await;
        assert_eq!(
            (found.status.phase, found.provisioning()),
            (Phase::Failed, Provisioning::Error)
        );
        assert_eq!(found.status.server, None);
        assert_eq!(found.status.private_ip, None, "it is not the instance's");
        facade
            .edit(id, |instance| instance.intent.power = Power::Stopped)
            .await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        facade.delete(id).await;
        facade.until_gone(id).await;
        let after = facade.server(id).await.unwrap().server;
        assert_eq!(after, before);
        assert_eq!(facade.count("allocation").await, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn orphan_server_is_listed_for_operators_and_kept() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = InstanceId::derive(network, &Name::new("web").unwrap());
    let spec = ServerSpec::new(flavor("small"), image("debian"), network);
    let new = NewServer::new(id.server(), id.owner(), north(), tenant(1, 1), spec);
    facade.servers.ensure(&operator(), &new).await.unwrap();
    facade
        .during(async {
            let live = facade.create(network, "live").await.instance.id;
            facade.until(live, is_running).await;
            let orphans = facade
                .instance_controller
                .orphans(&operator())
                .await
                .unwrap();
            let ids: Vec<_> = orphans.iter().map(|orphan| orphan.id).collect();
            assert_eq!(ids, [id.server()]);
            assert_eq!(orphans[0].owner, id.owner());
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(facade.server(id).await.unwrap().phase, Phase::Running);
            // Tenants may not list servers.
            facade
                .instance_controller
                .orphans(&project_user(tenant(1, 1)))
                .await
                .unwrap_err();
            // A new instance of that name adopts the server.
            facade.create(network, "web").await;
            facade.until(id, is_running).await;
            assert_eq!(
                facade
                    .instance_controller
                    .orphans(&operator())
                    .await
                    .unwrap(),
                []
            );
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_instance_does_not_block_others() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let broken = facade.insert_unreadable(network).await;
    facade
        .during(async {
            let id = facade.create(network, "web").await.instance.id;
            facade.until(id, is_running).await;
        })
        .await;
    facade
        .instance_controller
        .reconcile(broken)
        .await
        .unwrap_err();
}

/// A controller whose commits come after the commits that others made meanwhile.
async fn late(facade: &TestFacade) -> (Controller, Arc<RacingStore>) {
    let racing_store = Arc::new(RacingStore::new(Arc::clone(&facade.store)));
    let controller = facade
        .reopen(Arc::clone(&racing_store) as Arc<dyn Store>)
        .await
        .instance_controller
        .clone();
    (controller, racing_store)
}

/// A reconcile that has read an instance creates no server for it after it was deleted or marked.
#[tokio::test(start_paused = true)]
async fn late_reconcile_creates_no_server_for_a_deleted_instance() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    let (late, racing_store) = late(&facade).await;
    let read = facade.record(id).await.unwrap();
    let removal = facade.table.remove(Transaction::new(), &read);
    let paid = facade.table.id(&read.key);
    let removal = facade.ledger.release(removal, &paid).await.unwrap();
    racing_store.before_next_commit(removal);
    let error = late.reconcile(id).await.unwrap_err();
    assert!(error.to_string().contains("store failed"), "{error}");
    assert_eq!(facade.count("server").await, 0);
    facade.assert_empty().await;
    late.reconcile(id).await.unwrap();
    facade.assert_empty().await;
}

/// A reconcile that has read a marked instance deletes nothing of a later instance of the same name.
#[tokio::test(start_paused = true)]
async fn late_reconcile_keeps_the_server_of_a_recreated_instance() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    facade.instance_controller.reconcile(id).await.unwrap();
    facade.delete(id).await;
    let (late, racing_store) = late(&facade).await;
    let read = facade.record(id).await.unwrap();
    // Between read and write the instance is deleted and created again, and adopts the existing server.
    let again = instance_record(network, "web", facade.clock.now());
    let replaced = facade.table.replace(Transaction::new(), &read, &again);
    racing_store.before_next_commit(replaced.unwrap());
    late.reconcile(id).await.unwrap_err();
    let server = facade.server(id).await.unwrap().server;
    assert_eq!(server.intent.power, Power::Running);
}

/// A late reconcile does not apply a change that the tenant has withdrawn.
#[tokio::test(start_paused = true)]
async fn late_reconcile_does_not_apply_a_withdrawn_change() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let id = facade.create(network, "web").await.instance.id;
    facade.instance_controller.reconcile(id).await.unwrap();
    facade
        .edit(id, |instance| instance.spec.image = image("rocky"))
        .await;
    let (late, racing_store) = late(&facade).await;
    let read = facade.record(id).await.unwrap();
    let mut restored = read.value.clone();
    restored.spec.image = image("debian");
    restored.generation += 1;
    let replaced = facade.table.replace(Transaction::new(), &read, &restored);
    racing_store.before_next_commit(replaced.unwrap());
    late.reconcile(id).await.unwrap_err();
    let server = facade.server(id).await.unwrap().server;
    assert_eq!(server.spec.image, image("debian"));
    assert_eq!(server.generation, 1);
}
