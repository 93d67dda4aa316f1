//! One instance, one server: what is done when that is not so, and by whom.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod meddler;
mod support;

use std::{sync::Arc, time::Duration};

use fleetwright_compute::{
    controller::Controller,
    instance::{ConditionKind, EventKind, Instance, InstanceId, Provisioning},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    name::Name,
    server::{NewServer, Owner, Phase, Power, ServerSpec},
};
use fleetwright_store::{Store, Transaction};
use meddler::Meddler;

use support::{Place, flavor, has, here, image, record, service, settled, tenant};

fn runs(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && settled(instance)
}

/// A server of this id that is somebody else's.
async fn foreign(place: &Place, id: InstanceId, network: fleetwright_region::ids::NetworkId) {
    let spec = ServerSpec::new(flavor("small"), image("debian"), network);
    let owner = Owner::new("instance", "another");
    let new = NewServer::new(id.server(), owner, here(), tenant(), spec);
    place.servers.ensure(&service(), &new).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_by_nobodys_word_is_not_made_anew_until_the_tenant_asks() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let network = place.network("net").await;
            let id = place.create(network, "web").await;
            place.until(id, runs).await;
            // An operator deletes the server, behind the instance's back.
            place.servers.delete(&service(), id.server()).await.unwrap();
            let going = |its: &Instance| has(its, ConditionKind::ServerGoing);
            let found = place.until(id, going).await;
            assert_eq!(found.provisioning(), Provisioning::Provisioning);
            let missing = |its: &Instance| has(its, ConditionKind::ServerMissing);
            let found = place.until(id, missing).await;
            assert!(!going(&found));
            assert_eq!(
                (found.status.phase, found.provisioning()),
                (Phase::Lost, Provisioning::Error)
            );
            assert_eq!(found.status.private_ip, None);
            assert!(
                found.status.server.is_some(),
                "that there was one stays known"
            );
            let told =
                |event: &&fleetwright_compute::instance::Event| event.kind == EventKind::Trouble;
            assert_eq!(found.events.iter().filter(told).count(), 2);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert!(place.server(id).await.is_none(), "nobody asked for another");
            place.is_paid(1).await;
            // Another wish is no wish for another machine.
            place.ask(id, |its| its.intent.power = Power::Stopped).await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(place.server(id).await.is_none());
            place
                .ask(id, |its| {
                    its.intent.power = Power::Running;
                    its.intent.replaces += 1;
                })
                .await;
            let up = place.until(id, runs).await;
            assert!(!missing(&up) && up.status.server.unwrap().replaces == 1);
            place.delete(id).await;
            place.until_gone(id).await;
            place.is_empty(&cloud).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_server_is_missing_can_be_deleted() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let network = place.network("net").await;
            let id = place.create(network, "web").await;
            place.until(id, runs).await;
            place.servers.delete(&service(), id.server()).await.unwrap();
            place
                .until(id, |its| has(its, ConditionKind::ServerMissing))
                .await;
            place.delete(id).await;
            place.until_gone(id).await;
            place.is_empty(&cloud).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_of_another_owner_is_never_touched() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    place
        .during(async {
            let network = place.network("net").await;
            let id = InstanceId::derive(network, &Name::new("web").unwrap());
            foreign(&place, id, network).await;
            let up = |phase| phase == Phase::Running;
            while !up(place.server(id).await.unwrap().phase) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let before = place.server(id).await.unwrap().server;
            place.create(network, "web").await;
            let taken = |its: &Instance| has(its, ConditionKind::ServerTaken);
            let found = place.until(id, taken).await;
            assert_eq!(
                (found.status.phase, found.provisioning()),
                (Phase::Failed, Provisioning::Error)
            );
            assert_eq!(found.status.server, None);
            assert_eq!(found.status.private_ip, None, "it is not the instance's");
            place.ask(id, |its| its.intent.power = Power::Stopped).await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            place.delete(id).await;
            place.until_gone(id).await;
            let after = place.server(id).await.unwrap().server;
            assert_eq!(after, before);
            assert_eq!(place.count("allocation").await, 0);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_instance_does_not_exist_is_shown_to_operators_and_left() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let id = InstanceId::derive(network, &Name::new("web").unwrap());
    let spec = ServerSpec::new(flavor("small"), image("debian"), network);
    let new = NewServer::new(id.server(), id.owner(), here(), tenant(), spec);
    place.servers.ensure(&service(), &new).await.unwrap();
    place
        .during(async {
            let live = place.create(network, "live").await;
            place.until(live, runs).await;
            let orphans = place.controller.orphans(&service()).await.unwrap();
            let ids: Vec<_> = orphans.iter().map(|orphan| orphan.id).collect();
            assert_eq!(ids, [id.server()]);
            assert_eq!(orphans[0].owner, id.owner());
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(place.server(id).await.unwrap().phase, Phase::Running);
            // A tenant has no servers to list.
            place
                .controller
                .orphans(&support::user())
                .await
                .unwrap_err();
            // An instance of that name takes it over as it is.
            place.create(network, "web").await;
            place.until(id, runs).await;
            assert_eq!(place.controller.orphans(&service()).await.unwrap(), []);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_be_read_holds_up_no_other() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let broken = InstanceId::derive(network, &Name::new("broken").unwrap());
    let nonsense = serde_json::json!({
        "network": network, "name": "broken", "organization": tenant().0, "project": tenant().1,
        "region": "here", "spec": "nonsense",
    });
    let written = Transaction::new().create(record("instance", &broken), nonsense);
    place.store.commit(&written).await.unwrap();
    place
        .during(async {
            let id = place.create(network, "web").await;
            place.until(id, runs).await;
        })
        .await;
    place.controller.reconcile(broken).await.unwrap_err();
}

/// A controller that sees the store through a meddler: what it commits comes after what others did meanwhile.
fn late(place: &Place) -> (Controller, Arc<Meddler>) {
    let meddler = Arc::new(Meddler::new(Arc::clone(&place.store)));
    let controller = place.controller_over(Arc::clone(&meddler) as Arc<dyn Store>);
    (controller, meddler)
}

/// A pass that has read an instance and comes late makes no server for it once it is gone, nor once it is to go.
#[tokio::test(start_paused = true)]
async fn no_server_is_made_for_an_instance_that_is_gone() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let id = place.create(network, "web").await;
    let (late, meddler) = late(&place);
    let read = place.read(id).await.unwrap();
    let gone = place.table.remove(Transaction::new(), &read);
    let paid = place.table.id(&read.key);
    let gone = place.ledger.release(gone, &paid).await.unwrap();
    meddler.before_next_commit(gone);
    let error = late.reconcile(id).await.unwrap_err();
    assert!(error.to_string().contains("store failed"), "{error}");
    assert_eq!(place.count("server").await, 0);
    place.is_empty(&cloud).await;
    late.reconcile(id).await.unwrap();
    place.is_empty(&cloud).await;
}

/// A pass that has read an instance which is to go, and comes late, ends nothing of a later instance of the same name.
#[tokio::test(start_paused = true)]
async fn the_server_of_a_later_instance_is_not_ended_in_an_earlier_ones_name() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let id = place.create(network, "web").await;
    place.controller.reconcile(id).await.unwrap();
    place.delete(id).await;
    let (late, meddler) = late(&place);
    let read = place.read(id).await.unwrap();
    // Between its look and its wish the instance goes, and comes again with the server that there is.
    let again = support::instance(network, "web", place.clock.now());
    let replaced = place.table.replace(Transaction::new(), &read, &again);
    meddler.before_next_commit(replaced.unwrap());
    late.reconcile(id).await.unwrap_err();
    let server = place.server(id).await.unwrap().server;
    assert_eq!(server.intent.power, Power::Running);
}

/// What a tenant no longer asks for is not asked of the server by a pass that comes late.
#[tokio::test(start_paused = true)]
async fn a_wish_that_was_taken_back_is_not_passed_on_late() {
    let cloud = MemoryCloud::new();
    let place = Place::new(&cloud).await;
    let network = place.network("net").await;
    let id = place.create(network, "web").await;
    place.controller.reconcile(id).await.unwrap();
    place.ask(id, |its| its.spec.image = image("rocky")).await;
    let (late, meddler) = late(&place);
    let read = place.read(id).await.unwrap();
    let mut back = read.value.clone();
    back.spec.image = image("debian");
    back.generation += 1;
    let replaced = place.table.replace(Transaction::new(), &read, &back);
    meddler.before_next_commit(replaced.unwrap());
    late.reconcile(id).await.unwrap_err();
    let server = place.server(id).await.unwrap().server;
    assert_eq!(server.spec.image, image("debian"));
    assert_eq!(server.generation, 1);
}
