//! The controller dies at every call of the store, before and after what it asks for, and another one goes on: there are never two
//! servers, never a server without its instance, and the ledger always says what there is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright_compute::instance::EventKind;
use fleetwright_facade_testkit::{
    TestFacade, is_running,
    stores::{Applied, RacingStore},
};
use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::Power;
use fleetwright_store::Store;

/// Everybody but the controller of instances.
async fn region(facade: &TestFacade) {
    tokio::select! {
        () = facade.region().controller.run() => {}
        () = facade.region().monitor.run() => {}
    }
}

/// What holds at every moment.
async fn holds(facade: &TestFacade) {
    assert!(facade.count("server").await <= 1);
    if facade.count("instance").await == 0 {
        assert_eq!(
            facade.count("server").await,
            0,
            "a server without its instance"
        );
    }
    facade.assert_balanced(facade.count("instance").await).await;
}

/// Lets a controller work that dies at a call, for so long; answers whether it died.
async fn dying(facade: &TestFacade, call: u64, done: Applied, long: Duration) -> bool {
    let meddler = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
    let controller = facade
        .reopen(Arc::clone(&meddler) as Arc<dyn Store>)
        .await
        .instance_controller
        .clone();
    tokio::select! {
        () = controller.run() => unreachable!("a controller works until it is dropped"),
        () = region(facade) => unreachable!("a region works until it is dropped"),
        () = tokio::time::sleep(long) => {}
    }
    holds(facade).await;
    meddler.is_dead()
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_while_an_instance_is_made_leaves_one_server() {
    let mut call = 1;
    loop {
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            let died = dying(&facade, call, done, Duration::from_secs(60)).await;
            facade.during(facade.until(id, is_running)).await;
            holds(&facade).await;
            let up = facade.record(id).await.unwrap().value;
            let made = |event: &&fleetwright_compute::instance::Event| {
                event.kind == EventKind::ServerCreated
            };
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
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            facade.during(facade.until(id, is_running)).await;
            facade
                .edit(id, |its| its.intent.power = Power::Stopped)
                .await;
            let long = Duration::from_secs(1);
            let mut died = dying(&facade, call, done, long).await;
            facade.delete(id).await;
            died |= dying(&facade, call, done, Duration::from_secs(60)).await;
            facade.during(facade.until_gone(id)).await;
            facade.assert_empty().await;
            if !died {
                assert!(call > 10, "{call}: it has hardly begun");
                return;
            }
        }
        call += 1;
    }
}
