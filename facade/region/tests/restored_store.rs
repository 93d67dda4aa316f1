//! A store that does not know every machine of its region: it was restored from a backup, or another installation uses the region's name.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::InstanceId;
use fleetwright_facade_testkit::{NamePlanner, TestRegion, memory_store, server_admin, server_id};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::{
    monitor::{OrphanOutcome, OrphanPolicy},
    server::{Health, Phase, Power, ServerView},
};
use fleetwright_store::{Change, Commit, Interest, Revision, Store, Transaction};

const ORPHAN_AGE: Duration = Duration::from_secs(30);

/// A region that terminates orphans.
fn region(cloud: &MemoryCloud, store: Arc<dyn Store>) -> TestRegion {
    let region = TestRegion::with(
        Arc::new(cloud.provisioner()),
        store,
        NamePlanner::identity(),
    );
    region.policy(|policy| {
        policy.orphans = OrphanPolicy::Terminate;
        policy.orphan_age = ORPHAN_AGE;
    })
}

fn running(view: &ServerView) -> bool {
    view.phase == Phase::Running && view.health == Health::Healthy
}

fn live(cloud: &MemoryCloud) -> BTreeSet<InstanceId> {
    let instances = cloud.oracle().instances();
    let live = instances.into_iter().map(|instance| instance.info);
    let live = live.filter(|info| !info.state.is_ending());
    live.map(|info| info.id).collect()
}

/// Servers are created, replaced, stopped and deleted. Returns every commit to the store.
async fn run_a_day(cloud: &MemoryCloud) -> Vec<Commit> {
    let region = region(cloud, memory_store());
    let watch = region.store.watch(Revision::ZERO, Interest::all());
    let mut watch = watch.await.unwrap();
    let (servers, admin) = (&region.servers, server_admin());
    let day = async {
        for number in [1, 2, 4] {
            region.create(number).await;
            region.until(server_id(number), running).await;
        }
        servers.request_replace(&admin, server_id(1)).await.unwrap();
        let replaced = |view: &ServerView| {
            let machine = view.server.machine.as_ref();
            running(view) && machine.is_some_and(|machine| machine.incarnation == 2)
        };
        region.until(server_id(1), replaced).await;
        region.create(3).await;
        region.until(server_id(3), running).await;
        let stop = servers.set_power(&admin, server_id(2), Power::Stopped);
        stop.await.unwrap();
        let stopped = |view: &ServerView| view.phase == Phase::Stopped;
        region.until(server_id(2), stopped).await;
        servers.delete(&admin, server_id(4)).await.unwrap();
        region.until_gone(server_id(4)).await;
    };
    region.during(day).await;
    let mut commits = Vec::new();
    while let Ok(Ok(commit)) = tokio::time::timeout(Duration::ZERO, watch.next()).await {
        commits.push(commit);
    }
    commits
}

/// Returns a store as it was after these commits.
async fn restore(commits: &[Commit]) -> Arc<dyn Store> {
    let store = memory_store();
    for commit in commits {
        let mut transaction = Transaction::new();
        for change in &commit.changes {
            transaction = match change {
                Change::Put(record) => transaction.put(record.id.clone(), record.value.clone()),
                Change::Deleted(record) => transaction.delete(record.id.clone()),
            };
        }
        store.commit(&transaction).await.unwrap();
    }
    store
}

#[tokio::test(start_paused = true)]
async fn store_from_a_backup_of_any_moment_destroys_no_machine() {
    let commits = run_a_day(&MemoryCloud::new()).await.len();
    assert!(commits > 20, "{commits}");
    for backup in 0..=commits {
        let cloud = MemoryCloud::new();
        let commits = run_a_day(&cloud).await;
        let before = live(&cloud);
        assert_eq!(before.len(), 3);
        let region = region(&cloud, restore(&commits[..backup]).await);
        region.during(tokio::time::sleep(ORPHAN_AGE * 4)).await;
        let after = live(&cloud);
        let lost: Vec<_> = before.difference(&after).collect();
        assert!(lost.is_empty(), "{lost:?} after the backup of {backup}");
        let report = region.monitor.scan().await.unwrap();
        let kept = |outcome| outcome == OrphanOutcome::Kept;
        assert!(
            report.orphans.iter().all(|orphan| kept(orphan.outcome)),
            "{:?} after the backup of {backup}",
            report.orphans
        );
    }
}

#[tokio::test(start_paused = true)]
async fn machines_of_an_installation_with_the_same_region_name_are_kept() {
    let cloud = MemoryCloud::new();
    let one = region(&cloud, memory_store());
    let other = region(&cloud, memory_store());
    let work = async {
        // The second server of each has an id that the other one uses, too.
        for (region, numbers) in [(&one, [1, 2]), (&other, [2, 3])] {
            for number in numbers {
                tokio::time::sleep(Duration::from_secs(1)).await;
                region.create(number).await;
                region.until(server_id(number), running).await;
            }
        }
        tokio::time::sleep(ORPHAN_AGE * 4).await;
    };
    one.during(other.during(work)).await;
    assert_eq!(live(&cloud).len(), 4);
    assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
    let report = one.monitor.scan().await.unwrap();
    let outcomes: Vec<_> = report.orphans.iter().map(|found| found.outcome).collect();
    assert_eq!(outcomes, [OrphanOutcome::Kept; 2]);
}
