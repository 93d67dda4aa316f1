//! The controller crashes at every call of the store, before and after its effect, and another one continues: there are never two
//! servers of an instance and never a server without its instance, and the ledger is always balanced.
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

/// Runs every loop but the controller of instances.
async fn region(facade: &TestFacade) {
    tokio::select! {
        () = facade.region().controller.run() => {}
        () = facade.region().monitor.run() => {}
    }
}

/// Checks what must hold at every moment.
async fn check_invariants(facade: &TestFacade) {
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

/// Runs a controller that crashes at a call of the store. Returns whether it reached that call within the time.
async fn run_until_crash(facade: &TestFacade, call: u64, done: Applied, long: Duration) -> bool {
    let racing_store = Arc::new(RacingStore::new(Arc::clone(&facade.store)).dying_at(call, done));
    let controller = facade
        .reopen(Arc::clone(&racing_store) as Arc<dyn Store>)
        .await
        .instance_controller
        .clone();
    tokio::select! {
        () = controller.run() => unreachable!("a controller runs until it is dropped"),
        () = region(facade) => unreachable!("a region runs until it is dropped"),
        () = tokio::time::sleep(long) => {}
    }
    check_invariants(facade).await;
    racing_store.is_dead()
}

#[tokio::test(start_paused = true)]
async fn crash_while_creating_leaves_one_server() {
    let mut call = 1;
    loop {
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            let died = run_until_crash(&facade, call, done, Duration::from_secs(60)).await;
            facade.during(facade.until(id, is_running)).await;
            check_invariants(&facade).await;
            let instance = facade.record(id).await.unwrap().value;
            let created =
                |event: &&fleetwright_compute::instance::Event| event.kind == EventKind::Accepted;
            assert_eq!(
                instance.events.iter().filter(created).count(),
                1,
                "{instance:#?}"
            );
            let machines = cloud.oracle().instances();
            assert_eq!(machines.len(), 1, "{machines:#?}");
            if !died {
                assert!(
                    call > 10,
                    "{call}: the controller made fewer than ten calls"
                );
                return;
            }
        }
        call += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn crash_while_changing_or_deleting_leaves_nothing() {
    let mut call = 1;
    loop {
        for done in [Applied::No, Applied::Yes] {
            let cloud = MemoryCloud::new();
            let facade = TestFacade::on(&cloud).await;
            let network = facade.network("net").await;
            let id = facade.create(network, "web").await.instance.id;
            facade.during(facade.until(id, is_running)).await;
            facade
                .edit(id, |instance| instance.intent.power = Power::Stopped)
                .await;
            let long = Duration::from_secs(1);
            let mut died = run_until_crash(&facade, call, done, long).await;
            facade.delete(id).await;
            died |= run_until_crash(&facade, call, done, Duration::from_secs(60)).await;
            facade.during(facade.until_gone(id)).await;
            facade.assert_empty().await;
            if !died {
                assert!(
                    call > 10,
                    "{call}: the controller made fewer than ten calls"
                );
                return;
            }
        }
        call += 1;
    }
}
