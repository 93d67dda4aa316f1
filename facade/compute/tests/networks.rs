//! Networks that go take their instances with them, and what an instance stands on stays as long as it does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright_facade_testkit::{
    TestFacade, flavor, has_condition, image, instance_record, is_running, north, operator,
    record_id,
    stores::{Applied, RacingStore},
    tenant,
};
use std::{sync::Arc, time::Duration};

use fleetwright_compute::{
    instance::{ConditionKind, DeletionCause, EventKind, Instance, InstanceId},
    service::compute_principal,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    network::{Deletion, IfUsed, NetworkState, RecordError},
    server::{NewServer, Owner, ServerSpec},
};
use fleetwright_store::{Store, Transaction};

async fn ask_to_go(facade: &TestFacade, network: NetworkId) {
    let who = operator();
    let asked = facade.networks.delete(&who, network, IfUsed::DeleteFirst);
    assert_eq!(asked.await.unwrap(), Deletion::Waiting);
}

async fn until_gone(facade: &TestFacade, network: NetworkId) {
    for _ in 0..3600 {
        if facade.networks.get(&operator(), network).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!(
        "never went: {:#?}",
        facade.networks.get(&operator(), network).await
    );
}

#[tokio::test(start_paused = true)]
async fn a_network_goes_with_its_twenty_instances_and_with_no_other() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade
        .during(async {
            let [going, staying] = [
                facade.network("going").await,
                facade.network("staying").await,
            ];
            facade.group(going, "web").await;
            let mut ids = Vec::new();
            for number in 0..20 {
                ids.push(
                    facade
                        .create(going, &format!("web-{number}"))
                        .await
                        .instance
                        .id,
                );
            }
            let other = facade.create(staying, "web-0").await.instance.id;
            for id in ids.iter().skip(10).chain([&other]) {
                facade.until(*id, is_running).await;
            }
            // One goes already, by its tenant's word.
            facade.delete(ids[3]).await;
            ask_to_go(&facade, going).await;
            let marked = |its: &Instance| has_condition(its, ConditionKind::NetworkDeleting);
            let found = facade.until(ids[12], marked).await;
            let mark = found.deletion.clone().unwrap();
            assert_eq!(mark.cause, DeletionCause::Network);
            assert_eq!(mark.by, *compute_principal().unwrap().actor());
            let asked = |event: &fleetwright_compute::instance::Event| {
                event.kind == EventKind::DeletionRequested
                    && event.message.contains(&going.to_string())
            };
            assert!(found.events.iter().any(asked), "{found:#?}");
            until_gone(&facade, going).await;
            assert_eq!(facade.count("security-group").await, 0);
            facade.assert_balanced(1).await;
            assert!(is_running(&facade.record(other).await.unwrap().value));
            assert_eq!(facade.count("server").await, 1);
            // Nothing is left of it that a new one would stumble over.
            ask_to_go(&facade, staying).await;
            until_gone(&facade, staying).await;
            facade.assert_empty().await;
        })
        .await;
}

/// That a network is not there, or is there and not going, says nothing about its instances.
#[tokio::test(start_paused = true)]
async fn only_a_network_that_is_asked_to_go_takes_its_instances_along() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade
        .during(async {
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            facade.until(id, is_running).await;
            facade.network_controller.reconcile(network).await.unwrap();
            // As if its record had been lost.
            let lost = Transaction::new().delete(record_id("network", &network));
            facade.store.commit(&lost).await.unwrap();
            facade.network_controller.reconcile(network).await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(is_running(&facade.record(id).await.unwrap().value));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_marked_holds_up_its_network_and_no_other_instance() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let broken = facade.insert_unreadable(network).await;
    let broken = record_id("instance", &broken);
    facade
        .during(async {
            let id = facade.create(network, "web").await.instance.id;
            facade.until(id, is_running).await;
            ask_to_go(&facade, network).await;
            facade.until_gone(id).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let held = facade.networks.get(&operator(), network).await.unwrap();
            assert_eq!(held.value.state, NetworkState::Deleting);
            // An operator has seen to it.
            let mended = Transaction::new().delete(broken);
            facade.store.commit(&mended).await.unwrap();
            until_gone(&facade, network).await;
        })
        .await;
}

/// A server that is nobody's instance keeps its network, and is let alone.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_instances_keeps_its_network_until_it_is_gone() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade
        .during(async {
            let network = facade.network("net").await;
            let id = InstanceId::derive(network, &Name::new("bare").unwrap()).server();
            let spec = ServerSpec::new(flavor("small"), image("debian"), network);
            let new = NewServer::new(id, Owner::new("robot", "1"), north(), tenant(1, 1), spec);
            facade.servers.ensure(&operator(), &new).await.unwrap();
            ask_to_go(&facade, network).await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            facade.networks.get(&operator(), network).await.unwrap();
            facade.servers.delete(&operator(), id).await.unwrap();
            until_gone(&facade, network).await;
        })
        .await;
}

/// The keeper dies at every call of the store, before and after what it asks for; the next one goes on.
#[tokio::test(start_paused = true)]
async fn a_keeper_that_dies_anywhere_leaves_a_network_that_goes() {
    let mut call = 1;
    loop {
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            for number in 0..3 {
                facade
                    .create(network, &format!("web-{number}"))
                    .await
                    .instance
                    .id;
            }
            ask_to_go(&facade, network).await;
            let dying = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
            let store: Arc<dyn Store> = Arc::clone(&dying) as _;
            let keeper = facade.reopen(store).await.network_controller.clone();
            tokio::select! {
                () = keeper.run() => unreachable!("a keeper works until it is dropped"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            let died = dying.is_dead();
            facade.during(until_gone(&facade, network)).await;
            facade.assert_empty().await;
            if !died {
                assert!(call > 8, "{call}: it has hardly begun");
                return;
            }
        }
        call += 1;
    }
}

/// An instance keeps its network, its groups and its authority from being deleted, also before it has a server.
#[tokio::test(start_paused = true)]
async fn an_instance_without_a_server_keeps_what_it_stands_on() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let group = facade.group(network, "web").await;
    let authority = facade.authority(tenant(1, 1)).await;
    let mut asked = instance_record(network, "web", facade.clock.now());
    asked.spec.networking.security_groups.insert(group);
    asked.spec.ssh_authority = Some(authority);
    let id = facade.insert(asked).await;
    assert_eq!(facade.count("server").await, 0);
    let who = operator();
    let refused = |error: RecordError| matches!(error, RecordError::InUse { .. });
    let network_kept = facade.networks.delete(&who, network, IfUsed::Refuse).await;
    assert!(refused(network_kept.unwrap_err()));
    assert!(refused(
        facade
            .security_groups
            .delete(&who, group)
            .await
            .unwrap_err()
    ));
    assert!(refused(
        facade
            .ssh_authorities
            .delete(&who, authority)
            .await
            .unwrap_err()
    ));
    facade
        .during(async {
            facade.delete(id).await;
            facade.until_gone(id).await;
        })
        .await;
    facade.security_groups.delete(&who, group).await.unwrap();
    facade
        .ssh_authorities
        .delete(&who, authority)
        .await
        .unwrap();
    let gone = facade.networks.delete(&who, network, IfUsed::Refuse).await;
    assert_eq!(gone.unwrap(), Deletion::Deleted);
}
