//! Networks that go take their instances with them, and what an instance stands on stays as long as it does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod meddler;
mod support;

use std::{sync::Arc, time::Duration};

use fleetwright_compute::instance::{
    ConditionKind, DeletionCause, EventKind, Instance, InstanceId,
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    network::{Deletion, IfUsed, NetworkState, RecordError},
    server::{NewServer, Owner, Phase, ServerSpec},
};
use fleetwright_store::{Store, Transaction};
use meddler::{Done, Meddler};

use support::{Place, flavor, has, here, image, record, service, settled, tenant};

fn runs(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && settled(instance)
}

async fn ask_to_go(place: &Place, network: NetworkId) {
    let who = service();
    let asked = place.networks.delete(&who, network, IfUsed::DeleteFirst);
    assert_eq!(asked.await.unwrap(), Deletion::Waiting);
}

async fn until_gone(place: &Place, network: NetworkId) {
    for _ in 0..3600 {
        if place.networks.get(&service(), network).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!(
        "never went: {:#?}",
        place.networks.get(&service(), network).await
    );
}

#[tokio::test(start_paused = true)]
async fn a_network_goes_with_its_twenty_instances_and_with_no_other() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let [going, staying] = [place.network("going").await, place.network("staying").await];
            place.group(going).await;
            let mut ids = Vec::new();
            for number in 0..20 {
                ids.push(place.create(going, &format!("web-{number}")).await);
            }
            let other = place.create(staying, "web-0").await;
            for id in ids.iter().skip(10).chain([&other]) {
                place.until(*id, runs).await;
            }
            // One goes already, by its tenant's word.
            place.delete(ids[3]).await;
            ask_to_go(&place, going).await;
            let marked = |its: &Instance| has(its, ConditionKind::NetworkGoing);
            let found = place.until(ids[12], marked).await;
            let mark = found.deletion.clone().unwrap();
            assert_eq!(mark.cause, DeletionCause::Network);
            assert_eq!(mark.by, *service().actor());
            let asked = |event: &fleetwright_compute::instance::Event| {
                event.kind == EventKind::DeletionAsked && event.message.contains(&going.to_string())
            };
            assert!(found.events.iter().any(asked), "{found:#?}");
            until_gone(&place, going).await;
            assert_eq!(place.count("security-group").await, 0);
            place.is_paid(1).await;
            assert!(runs(&place.read(other).await.unwrap().value));
            assert_eq!(place.count("server").await, 1);
            // Nothing is left of it that a new one would stumble over.
            ask_to_go(&place, staying).await;
            until_gone(&place, staying).await;
            place.is_empty(&cloud).await;
        })
        .await;
}

/// That a network is not there, or is there and not going, says nothing about its instances.
#[tokio::test(start_paused = true)]
async fn only_a_network_that_is_asked_to_go_takes_its_instances_along() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let network = place.network("net").await;
            let id = place.create(network, "web").await;
            place.until(id, runs).await;
            place.keeper.reconcile(network).await.unwrap();
            // As if its record had been lost.
            let lost = Transaction::new().delete(record("network", &network));
            place.store.commit(&lost).await.unwrap();
            place.keeper.reconcile(network).await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(runs(&place.read(id).await.unwrap().value));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_marked_holds_up_its_network_and_no_other_instance() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let broken = InstanceId::derive(network, &Name::new("broken").unwrap());
    let nonsense = serde_json::json!({
        "network": network, "name": "broken", "organization": tenant().0, "project": tenant().1,
        "region": "here", "spec": "nonsense",
    });
    let broken = record("instance", &broken);
    let written = Transaction::new().create(broken.clone(), nonsense);
    place.store.commit(&written).await.unwrap();
    place
        .during(async {
            let id = place.create(network, "web").await;
            place.until(id, runs).await;
            ask_to_go(&place, network).await;
            place.until_gone(id).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let held = place.networks.get(&service(), network).await.unwrap();
            assert_eq!(held.value.state, NetworkState::Deleting);
            // An operator has seen to it.
            let mended = Transaction::new().delete(broken);
            place.store.commit(&mended).await.unwrap();
            until_gone(&place, network).await;
        })
        .await;
}

/// A server that is nobody's instance keeps its network, and is let alone.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_instances_keeps_its_network_until_it_is_gone() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let network = place.network("net").await;
            let id = InstanceId::derive(network, &Name::new("bare").unwrap()).server();
            let spec = ServerSpec::new(flavor("small"), image("debian"), network);
            let new = NewServer::new(id, Owner::new("robot", "1"), here(), tenant(), spec);
            place.servers.ensure(&service(), &new).await.unwrap();
            ask_to_go(&place, network).await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            place.networks.get(&service(), network).await.unwrap();
            place.servers.delete(&service(), id).await.unwrap();
            until_gone(&place, network).await;
        })
        .await;
}

/// The keeper dies at every call of the store, before and after what it asks for; the next one goes on.
#[tokio::test(start_paused = true)]
async fn a_keeper_that_dies_anywhere_leaves_a_network_that_goes() {
    let mut call = 1;
    loop {
        for done in [Done::No, Done::Yes] {
            let cloud = MemoryCloud::new();
            let place = Place::new(&cloud).await;
            let network = place.network("net").await;
            for number in 0..3 {
                place.create(network, &format!("web-{number}")).await;
            }
            ask_to_go(&place, network).await;
            let dying = Arc::new(Meddler::new(Arc::clone(&place.store)).dying_at(call, done));
            let store: Arc<dyn Store> = Arc::clone(&dying) as _;
            let networks = place.networks_over(Arc::clone(&store));
            let keeper = fleetwright_compute::networks::NetworkKeeper::new(
                store,
                networks,
                Arc::clone(&place.clock),
                service(),
            );
            let keeper = keeper.unwrap();
            tokio::select! {
                () = keeper.run() => unreachable!("a keeper works until it is dropped"),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            let died = dying.is_dead();
            place.during(until_gone(&place, network)).await;
            place.is_empty(&cloud).await;
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
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let group = place.group(network).await;
    let authority = place.authority().await;
    let mut asked = support::instance(network, "web", place.clock.now());
    asked.spec.networking.security_groups.insert(group);
    asked.spec.ssh_authority = Some(authority);
    let id = place.create_as(asked).await;
    assert_eq!(place.count("server").await, 0);
    let who = service();
    let refused = |error: RecordError| matches!(error, RecordError::InUse { .. });
    let network_kept = place.networks.delete(&who, network, IfUsed::Refuse).await;
    assert!(refused(network_kept.unwrap_err()));
    assert!(refused(place.groups.delete(&who, group).await.unwrap_err()));
    assert!(refused(
        place.authorities.delete(&who, authority).await.unwrap_err()
    ));
    place
        .during(async {
            place.delete(id).await;
            place.until_gone(id).await;
        })
        .await;
    place.groups.delete(&who, group).await.unwrap();
    place.authorities.delete(&who, authority).await.unwrap();
    let gone = place.networks.delete(&who, network, IfUsed::Refuse).await;
    assert_eq!(gone.unwrap(), Deletion::Gone);
}
