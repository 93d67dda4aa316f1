//! A network's deletion deletes its instances, and an instance's dependencies cannot be deleted before it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright_facade_testkit::{
    TestFacade, flavor, has_condition, image, instance_record, is_running, north, operator,
    principals::{scope, user_with},
    record_id,
    stores::{Applied, RacingStore},
    tenant,
};
use std::{sync::Arc, time::Duration};

use fleetwright_compute::{
    instance::{ConditionKind, DeletionCause, EventKind, Instance, InstanceId},
    service::compute_principal,
};
use fleetwright_identity::{Permission, Resource, Verb};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    network::{Deletion, IfUsed, NetworkState, RecordError},
    server::{NewServer, Owner, ServerSpec},
};
use fleetwright_store::{Store, Transaction};

async fn request_deletion(facade: &TestFacade, network: NetworkId) {
    let principal = operator();
    let requested = facade
        .networks
        .delete(&principal, network, IfUsed::DeleteFirst);
    assert_eq!(requested.await.unwrap(), Deletion::Waiting);
}

async fn until_gone(facade: &TestFacade, network: NetworkId) {
    for _ in 0..3600 {
        if facade.networks.get(&operator(), network).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!(
        "was not deleted: {:#?}",
        facade.networks.get(&operator(), network).await
    );
}

#[tokio::test(start_paused = true)]
async fn network_deletion_deletes_its_instances_and_no_others() {
    let cloud = MemoryCloud::new();
    TestFacade::run(&cloud, async |facade| {
        let [deleted, kept] = [
            facade.network("deleted").await,
            facade.network("kept").await,
        ];
        facade.group(deleted, "web").await;
        let mut ids = Vec::new();
        for number in 0..20 {
            ids.push(
                facade
                    .create(deleted, &format!("web-{number}"))
                    .await
                    .instance
                    .id,
            );
        }
        let other = facade.create(kept, "web-0").await.instance.id;
        for id in ids.iter().skip(10).chain([&other]) {
            facade.until(*id, is_running).await;
        }
        // Its tenant has deleted one already.
        facade.delete(ids[3]).await;
        request_deletion(facade, deleted).await;
        let marked = |instance: &Instance| has_condition(instance, ConditionKind::NetworkDeleting);
        let found = facade.until(ids[12], marked).await;
        let mark = found.deletion.clone().unwrap();
        assert_eq!(mark.cause, DeletionCause::Network);
        assert_eq!(mark.by, *compute_principal().unwrap().actor());
        let requested = |event: &fleetwright_compute::instance::Event| {
            event.kind == EventKind::DeletionRequested
                && event.message.contains(&deleted.to_string())
        };
        assert!(found.events.iter().any(requested), "{found:#?}");
        until_gone(facade, deleted).await;
        assert_eq!(facade.count("security-group").await, 0);
        facade.assert_balanced(1).await;
        assert!(is_running(&facade.record(other).await.unwrap().value));
        assert_eq!(facade.count("server").await, 1);
        // A new network of the same name can be created.
        request_deletion(facade, kept).await;
        until_gone(facade, kept).await;
        facade.assert_empty().await;
    })
    .await;
}

/// A missing network, or one that is not being deleted, does not cause the deletion of instances.
#[tokio::test(start_paused = true)]
async fn only_a_requested_network_deletion_deletes_instances() {
    let cloud = MemoryCloud::new();
    TestFacade::run(&cloud, async |facade| {
        let (network, id) = facade.create_running().await;
        facade.network_controller.reconcile(network).await.unwrap();
        // The network's record is lost.
        let lost = Transaction::new().delete(record_id("network", &network));
        facade.store.commit(&lost).await.unwrap();
        facade.network_controller.reconcile(network).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(is_running(&facade.record(id).await.unwrap().value));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_instance_blocks_its_network_and_no_other_instance() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let broken = facade.insert_unreadable(network).await;
    let broken = record_id("instance", &broken);
    facade
        .during(async {
            let id = facade.create(network, "web").await.instance.id;
            facade.until(id, is_running).await;
            request_deletion(&facade, network).await;
            facade.until_gone(id).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let held = facade.networks.get(&operator(), network).await.unwrap();
            assert_eq!(held.value.state, NetworkState::Deleting);
            // An operator removes the unreadable record.
            let repair = Transaction::new().delete(broken);
            facade.store.commit(&repair).await.unwrap();
            until_gone(&facade, network).await;
        })
        .await;
}

/// A server without an instance blocks the deletion of its network, and is not deleted.
#[tokio::test(start_paused = true)]
async fn server_without_instance_blocks_network_deletion() {
    let cloud = MemoryCloud::new();
    TestFacade::run(&cloud, async |facade| {
        let network = facade.network("net").await;
        let id = InstanceId::derive(network, &Name::new("bare").unwrap()).server();
        let spec = ServerSpec::new(flavor("small"), image("debian"), network);
        let new = NewServer::new(id, Owner::new("robot", "1"), north(), tenant(1, 1), spec);
        facade.servers.ensure(&operator(), &new).await.unwrap();
        request_deletion(facade, network).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        facade.networks.get(&operator(), network).await.unwrap();
        facade.servers.delete(&operator(), id).await.unwrap();
        until_gone(facade, network).await;
    })
    .await;
}

/// The network deletion controller crashes at every call of the store, before and after its effect; the next one continues.
#[tokio::test(start_paused = true)]
async fn network_deletion_survives_a_crash_at_any_store_call() {
    let mut call = 1;
    loop {
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            for number in 0..3 {
                facade.create(network, &format!("web-{number}")).await;
            }
            request_deletion(&facade, network).await;
            let dying = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
            let store: Arc<dyn Store> = Arc::clone(&dying) as _;
            let controller = facade.reopen(store).await.network_controller.clone();
            tokio::select! {
                () = controller.run() => unreachable!("a controller runs until it is dropped"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            let died = dying.is_dead();
            facade.during(until_gone(&facade, network)).await;
            facade.assert_empty().await;
            if !died {
                assert!(
                    call > 8,
                    "{call}: the controller made fewer than eight calls"
                );
                return;
            }
        }
        call += 1;
    }
}

/// Network, security groups and authority of an instance cannot be deleted, even before it has a server.
#[tokio::test(start_paused = true)]
async fn instance_without_server_protects_its_dependencies() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    let network = facade.network("net").await;
    let group = facade.group(network, "web").await;
    let authority = facade.authority(tenant(1, 1)).await;
    let mut requested = instance_record(network, "web", facade.clock.now());
    requested.spec.networking.security_groups.insert(group);
    requested.spec.ssh_authority = Some(authority);
    let id = facade.insert(requested).await;
    assert_eq!(facade.count("server").await, 0);
    let principal = operator();
    let refused = |error: RecordError| matches!(error, RecordError::InUse { .. });
    let network_kept = facade
        .networks
        .delete(&principal, network, IfUsed::Refuse)
        .await;
    assert!(refused(network_kept.unwrap_err()));
    assert!(refused(
        facade
            .security_groups
            .delete(&principal, group)
            .await
            .unwrap_err()
    ));
    assert!(refused(
        facade
            .ssh_authorities
            .delete(&principal, authority)
            .await
            .unwrap_err()
    ));
    facade
        .during(async {
            facade.delete(id).await;
            facade.until_gone(id).await;
        })
        .await;
    facade
        .security_groups
        .delete(&principal, group)
        .await
        .unwrap();
    facade
        .ssh_authorities
        .delete(&principal, authority)
        .await
        .unwrap();
    let deleted = facade
        .networks
        .delete(&principal, network, IfUsed::Refuse)
        .await;
    assert_eq!(deleted.unwrap(), Deletion::Deleted);
}

/// Deleting a network deletes instances only for who may delete instances. Others are refused, and learn only what they may see.
#[tokio::test(start_paused = true)]
async fn network_in_use_is_not_deleted_without_the_permission_to_delete_instances() {
    let cloud = MemoryCloud::new();
    let (facade, network, id) = TestFacade::running_instance(&cloud).await;
    let networks = [Verb::Read, Verb::Delete].map(|verb| (verb, Resource::Networks));
    let may = |more: &[(Verb, Resource)]| {
        let all = networks.iter().chain(more).copied();
        let permissions = all.map(|(verb, resource)| Permission::new(verb, resource).unwrap());
        user_with(scope(tenant(1, 1)), permissions)
    };
    let sees = may(&[(Verb::Read, Resource::Instances)]);
    let blind = may(&[]);
    for (principal, by) in [
        (&sees, format!("instance {id}")),
        (&blind, "an instance".to_owned()),
    ] {
        for if_used in [IfUsed::DeleteFirst, IfUsed::Refuse] {
            let refused = facade.networks.delete(principal, network, if_used).await;
            assert_eq!(
                refused.unwrap_err().to_string(),
                format!(
                    "network {network} is in use by {by} and cannot be deleted: delete that first"
                )
            );
        }
    }
    facade
        .during(tokio::time::sleep(Duration::from_secs(600)))
        .await;
    assert_eq!(facade.read(id).await.instance.deletion, None);
    let found = facade.networks.get(&sees, network).await.unwrap();
    assert_eq!(found.value.state, NetworkState::Ready);
    let permitted = may(&[(Verb::Delete, Resource::Instances)]);
    let requested = facade
        .networks
        .delete(&permitted, network, IfUsed::DeleteFirst);
    assert_eq!(requested.await.unwrap(), Deletion::Waiting);
    facade.during(facade.until_gone(id)).await;
    // An empty network needs no further permission.
    let empty = facade.network("empty").await;
    let deleted = facade
        .networks
        .delete(&blind, empty, IfUsed::DeleteFirst)
        .await;
    assert_eq!(deleted.unwrap(), Deletion::Deleted);
}
