//! Each mistake that can be made on purpose is one: it does what it says, and what is checked elsewhere would see it.
#![cfg(feature = "mutants")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod support;

use std::time::Duration;

use fleetwright_compute::{
    instance::{ConditionKind, Instance, InstanceId},
    mutant::{Chosen, Mutant},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::{
    ids::NetworkId,
    network::IfUsed,
    server::{Phase, Power},
};

use support::{Place, has, image, service, settled};

fn runs(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && settled(instance)
}

async fn wrong(cloud: &MemoryCloud, mutant: Mutant) -> (Place, NetworkId) {
    let place = Place::new(cloud).await;
    let place = place.rules(|rules| rules.chosen = Chosen::new(mutant));
    let network = place.network("net").await;
    (place, network)
}

/// An instance whose server runs.
async fn running(place: &Place, network: NetworkId) -> InstanceId {
    let id = place.create(network, "web").await;
    place.during(place.until(id, runs)).await;
    id
}

#[tokio::test(start_paused = true)]
async fn consent_assumed_destroys_what_nobody_agreed_to_lose() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::ConsentAssumed).await;
    let id = running(&place, network).await;
    place.ask(id, |its| its.spec.image = image("rocky")).await;
    place.during(place.until(id, runs)).await;
    let machine = place.server(id).await.unwrap().server.instance.unwrap();
    assert_eq!(machine.applied.image, image("rocky"));
}

#[tokio::test(start_paused = true)]
async fn released_twice_pays_for_nothing_while_the_machine_runs() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::ReleasedTwice).await;
    let id = running(&place, network).await;
    place.delete(id).await;
    place.controller.reconcile(id).await.unwrap();
    assert_eq!(
        (place.count("server").await, place.count("allocation").await),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn release_forgotten_pays_for_what_is_gone() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::ReleaseForgotten).await;
    let id = running(&place, network).await;
    place.delete(id).await;
    place.during(place.until_gone(id)).await;
    assert_eq!(place.count("allocation").await, 1);
}

#[tokio::test(start_paused = true)]
async fn delete_order_swapped_leaves_a_server_without_its_instance() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::DeleteOrderSwapped).await;
    let id = running(&place, network).await;
    place.delete(id).await;
    place.controller.reconcile(id).await.unwrap();
    assert!(place.read(id).await.is_none() && place.server(id).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn delete_gated_on_status_leaves_the_server_that_no_status_knows() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::DeleteGatedOnStatus).await;
    let id = place.create(network, "web").await;
    place.controller.reconcile(id).await.unwrap();
    // As a crash between the two writes leaves it.
    place.ask(id, |its| its.status = Default::default()).await;
    place.delete(id).await;
    place.controller.reconcile(id).await.unwrap();
    assert!(place.read(id).await.is_none() && place.server(id).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_is_not_passed_on_is_never_heard() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::WishNotPassedOn).await;
    let id = running(&place, network).await;
    place.ask(id, |its| its.intent.power = Power::Stopped).await;
    place
        .during(tokio::time::sleep(Duration::from_secs(600)))
        .await;
    let server = place.server(id).await.unwrap().server;
    assert_eq!(server.intent.power, Power::Running);
}

#[tokio::test(start_paused = true)]
async fn settled_early_is_before_anything_runs() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::SettledEarly).await;
    let id = place.create(network, "web").await;
    place.controller.reconcile(id).await.unwrap();
    assert!(settled(&place.read(id).await.unwrap().value));
    assert!(place.server(id).await.unwrap().server.instance.is_none());
}

#[tokio::test(start_paused = true)]
async fn missing_made_again_is_by_nobodys_word() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::MissingMadeAgain).await;
    let id = running(&place, network).await;
    let story = async {
        place.servers.delete(&service(), id.server()).await.unwrap();
        place
            .until(id, |its| has(its, ConditionKind::ServerGoing))
            .await;
        place.until(id, runs).await;
    };
    place.during(story).await;
    assert!(place.server(id).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn network_forgotten_waits_for_ever() {
    let cloud = MemoryCloud::new();
    let (place, network) = wrong(&cloud, Mutant::NetworkForgotten).await;
    let id = running(&place, network).await;
    let who = service();
    let asked = place.networks.delete(&who, network, IfUsed::DeleteFirst);
    let _ = asked.await.unwrap();
    place
        .during(tokio::time::sleep(Duration::from_secs(3600)))
        .await;
    assert!(runs(&place.read(id).await.unwrap().value));
}
