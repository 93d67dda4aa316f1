//! The controller dies at every call of the store, before and after what it asks for, and another one goes on: there are never two
//! servers, never a server without its instance, and the ledger always says what there is.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by failing"
)]

mod meddler;
mod support;

use std::{sync::Arc, time::Duration};

use fleetwright_compute::instance::{EventKind, Instance};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::{Phase, Power};
use fleetwright_store::Store;
use meddler::{Done, Meddler};

use support::{Place, settled};

fn runs(instance: &Instance) -> bool {
    instance.status.phase == Phase::Running && settled(instance)
}

/// Everybody but the controller of instances.
async fn region(place: &Place) {
    tokio::select! {
        () = place.region.run() => {}
        () = place.monitor.run() => {}
    }
}

/// What holds at every moment.
async fn holds(place: &Place) {
    assert!(place.count("server").await <= 1);
    if place.count("instance").await == 0 {
        assert_eq!(
            place.count("server").await,
            0,
            "a server without its instance"
        );
    }
    place.is_paid(place.count("instance").await).await;
}

/// Lets a controller work that dies at a call, for so long; answers whether it died.
async fn dying(place: &Place, call: u64, done: Done, long: Duration) -> bool {
    let meddler = Arc::new(Meddler::new(Arc::clone(&place.store)).dying_at(call, done));
    let controller = place.controller_over(Arc::clone(&meddler) as Arc<dyn Store>);
    tokio::select! {
        () = controller.run() => unreachable!("a controller works until it is dropped"),
        () = region(place) => unreachable!("a region works until it is dropped"),
        () = tokio::time::sleep(long) => {}
    }
    holds(place).await;
    meddler.is_dead()
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_while_an_instance_is_made_leaves_one_server() {
    let mut call = 1;
    loop {
        for done in [Done::No, Done::Yes] {
            let cloud = MemoryCloud::new();
            let place = Place::new(&cloud).await;
            let network = place.network("net").await;
            let id = place.create(network, "web").await;
            let died = dying(&place, call, done, Duration::from_secs(60)).await;
            place.during(place.until(id, runs)).await;
            holds(&place).await;
            let up = place.read(id).await.unwrap().value;
            let made =
                |event: &&fleetwright_compute::instance::Event| event.kind == EventKind::ServerMade;
            assert_eq!(up.events.iter().filter(made).count(), 1, "{up:#?}");
            let machines = cloud.oracle().instances();
            assert_eq!(machines.len(), 1, "{machines:#?}");
            if !died {
                assert!(call > 10, "{call}: it has hardly begun");
                return;
            }
        }
        call += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_while_an_instance_changes_or_goes_leaves_nothing_of_it() {
    let mut call = 1;
    loop {
        for done in [Done::No, Done::Yes] {
            let cloud = MemoryCloud::new();
            let place = Place::new(&cloud).await;
            let network = place.network("net").await;
            let id = place.create(network, "web").await;
            place.during(place.until(id, runs)).await;
            place.ask(id, |its| its.intent.power = Power::Stopped).await;
            let long = Duration::from_secs(1);
            let mut died = dying(&place, call, done, long).await;
            place.delete(id).await;
            died |= dying(&place, call, done, Duration::from_secs(60)).await;
            place.during(place.until_gone(id)).await;
            place.is_empty(&cloud).await;
            if !died {
                assert!(call > 10, "{call}: it has hardly begun");
                return;
            }
        }
        call += 1;
    }
}
