//! A slow controller continues after another one took over, while a tenant deletes and recreates an instance: at no commit is there a
//! server without its instance, a second server, or an allocation without its instance.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use fleetwright_facade_testkit::{TestFacade, stores::RacingStore};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright_memory::MemoryCloud;
use fleetwright_region::server::Power;
use fleetwright_store::{Change, Interest, Revision, Store};

/// Checks the invariants after every commit since a revision. Returns the number of commits.
async fn replay(facade: &TestFacade, since: Revision) -> usize {
    let head = facade.store.head().await.unwrap();
    let watch = facade.store.watch(since, Interest::all()).await;
    let mut watch = watch.unwrap();
    let [mut instances, mut servers, mut payments] = [(); 3].map(|()| BTreeSet::new());
    let mut created = 0;
    while watch.position() < head {
        let commit = watch.next().await.unwrap();
        for change in &commit.changes {
            let record = change.record();
            let (kind, key) = (record.id.kind.as_str(), record.id.key.to_string());
            let (set, key) = match kind {
                "instance" => (&mut instances, key),
                "server" => (&mut servers, key),
                "allocation" => match key.strip_prefix("instance/") {
                    Some(instance) => (&mut payments, instance.to_owned()),
                    None => continue,
                },
                _ => continue,
            };
            match change {
                Change::Put(_) => {
                    let new = set.insert(key);
                    created += usize::from(new && kind == "server");
                }
                Change::Deleted(_) => {
                    set.remove(&key);
                }
            }
        }
        assert!(servers.is_subset(&instances), "at {}", commit.revision);
        assert_eq!(instances, payments, "at {}", commit.revision);
    }
    created
}

#[tokio::test(start_paused = true)]
async fn late_controller_leaves_no_server_without_its_instance() {
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
        let work = async {
            for round in 0..6 {
                let id = facade.create(network, "web").await.instance.id;
                let wait = Duration::from_millis(150) * ((seed * 7 + round * 5) % 23);
                tokio::time::sleep(wait).await;
                facade
                    .edit(id, |instance| instance.intent.power = Power::Stopped)
                    .await;
                tokio::time::sleep(wait / 3).await;
                facade.delete(id).await;
                // Another process takes over while the first one is between its read and its write.
                tokio::select! {
                    () = facade.until_gone(id) => {}
                    () = facade.instance_controller.run() => {}
                }
            }
            // Until the first one has finished its step.
            tokio::time::sleep(Duration::from_secs(30)).await;
        };
        tokio::select! {
            biased;
            () = work => {}
            () = late.run() => {}
            () = facade.region().controller.run() => {}
            () = facade.region().monitor.run() => {}
        }
        let created = replay(&facade, since).await;
        assert!(
            created <= 6,
            "seed {seed}: {created} servers for six instances"
        );
        facade.assert_empty().await;
    }
}
