//! A slow controller whose facade another one has taken, and a tenant who deletes an instance and makes it anew: at no commit is there
//! a server without its instance, or two of them, or a payment for nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright_facade_testkit::{TestFacade, stores::RacingStore};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::Power;
use fleetwright_store::{Change, Interest, Revision, Store};

/// Walks through every commit since then, and sees that each left what must hold.
async fn replay(facade: &TestFacade, since: Revision) -> usize {
    let head = facade.store.head().await.unwrap();
    let watch = facade.store.watch(since, Interest::all()).await;
    let mut watch = watch.unwrap();
    let [mut instances, mut servers, mut payments] = [(); 3].map(|()| BTreeSet::new());
    let mut made = 0;
    while watch.position() < head {
        let commit = watch.next().await.unwrap();
        for change in &commit.changes {
            let record = change.record();
            let (kind, key) = (record.id.kind.as_str(), record.id.key.to_string());
            let (set, key) = match kind {
                "instance" => (&mut instances, key),
                "server" => (&mut servers, key),
                "allocation" => (&mut payments, key.replace("instance/", "")),
                _ => continue,
            };
            match change {
                Change::Put(_) => {
                    let new = set.insert(key);
                    made += usize::from(new && kind == "server");
                }
                Change::Deleted(_) => {
                    set.remove(&key);
                }
            }
        }
        assert!(servers.is_subset(&instances), "at {}", commit.revision);
        assert_eq!(instances, payments, "at {}", commit.revision);
    }
    made
}

#[tokio::test(start_paused = true)]
async fn a_late_controller_and_a_tenant_who_comes_and_goes_leave_no_server_alone() {
    for seed in 0..24_u32 {
        let cloud = MemoryCloud::new();
        let facade = TestFacade::on(&cloud).await;
        let network = facade.network("net").await;
        let since = facade.store.head().await.unwrap();
        let slow = RacingStore::new(Arc::clone(&facade.store)).slow(seed.into());
        let late = facade
            .reopen(Arc::new(slow) as Arc<dyn Store>)
            .await
            .instance_controller
            .clone();
        let story = async {
            for round in 0..6 {
                let id = facade.create(network, "web").await.instance.id;
                let wait = Duration::from_millis(150) * ((seed * 7 + round * 5) % 23);
                tokio::time::sleep(wait).await;
                facade
                    .edit(id, |its| its.intent.power = Power::Stopped)
                    .await;
                tokio::time::sleep(wait / 3).await;
                facade.delete(id).await;
                // Here another process takes over, while the first is somewhere between its look and its write.
                tokio::select! {
                    () = facade.until_gone(id) => {}
                    () = facade.instance_controller.run() => {}
                }
            }
            // Until the first has done whatever it was about to do.
            tokio::time::sleep(Duration::from_secs(30)).await;
        };
        tokio::select! {
            biased;
            () = story => {}
            () = late.run() => {}
            () = facade.region().controller.run() => {}
            () = facade.region().monitor.run() => {}
        }
        let made = replay(&facade, since).await;
        assert!(made <= 6, "seed {seed}: {made} servers for six instances");
        facade.assert_empty().await;
    }
}
