//! Faults at every step of a snapshot, and at every two steps: at the end there is at most one image.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod crash;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fleetwright::InstanceProvisioner;
use fleetwright_facade_testkit::{TestFacade, new_snapshot, operator, server_id, sqlite_store};
use fleetwright_memory::{MemoryCloud, Timing};
use fleetwright_region::{
    catalog::{CatalogService, ImageState, Origin},
    name::Name,
    server::{Phase, ServerView},
};
use fleetwright_store::Store;

use crash::{Flaky, Kind, Plan};

/// What the client does without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Retries,
    IsGone,
}

/// Requests an image, and restarts the process after every crash until the image is ready or failed.
async fn history(faults: Vec<(u64, Kind)>, client: Client) -> u64 {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let plan = Plan::new(faults.clone());
    let handle: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let mut sends = true;
    loop {
        let store: Arc<dyn Store> = Flaky::<dyn Store>::new(&plan, &facade.store);
        let flaky = Flaky::<dyn InstanceProvisioner>::new(&plan, &handle);
        let (machines, snapshots) = facade.machines_over(store, flaky).await;
        let work = async {
            let (principal, new) = (operator(), new_snapshot());
            for _ in 0..10 {
                if !sends
                    || machines
                        .snapshot(&principal, server_id(1), &new)
                        .await
                        .is_ok()
                {
                    break;
                }
                sends = client == Client::Retries;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(3600)).await;
        };
        tokio::select! {
            biased;
            () = plan.died() => sends &= client == Client::Retries,
            () = work => break,
            () = snapshots.run() => panic!("it runs until it is dropped"),
        }
    }
    let what = format!("{faults:?}, and the client {client:?}: {:?}", plan.log());
    let found = facade.find_snapshot_image().await;
    let created = cloud.oracle().images();
    match (found, client) {
        (Some(found), _) => {
            assert_eq!(found.state, ImageState::Ready, "{what}");
            assert_eq!(created.len(), 1, "{what}");
            let native = match found.origin {
                Origin::File => None,
                Origin::Snapshot { native, .. } => native,
            };
            assert_eq!(native.as_ref(), Some(&created[0].id), "{what}");
        }
        (None, Client::IsGone) => assert_eq!(created.len(), 0, "{what}"),
        (None, Client::Retries) => panic!("the request was accepted and forgotten: {what}"),
    }
    plan.steps()
}

#[tokio::test(start_paused = true)]
async fn fault_at_every_step_leaves_at_most_one_image() {
    let steps = history(Vec::new(), Client::Retries).await;
    assert_eq!(
        steps, 4,
        "the request, the call, the id at the cloud, the state ready"
    );
    for client in [Client::Retries, Client::IsGone] {
        for kind in Kind::ALL {
            for step in 1..=steps {
                let steps_taken = history(vec![(step, kind)], client).await;
                assert!(
                    steps_taken >= step,
                    "{kind:?} at step {step} was not injected"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn faults_at_any_two_steps_leave_one_image() {
    for first in 1..=4 {
        for second in first + 1..=first + 4 {
            for one in Kind::ALL {
                for other in Kind::ALL {
                    let faults = vec![(first, one), (second, other)];
                    history(faults, Client::Retries).await;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cost_of_an_image_does_not_grow_with_the_catalog() {
    let cloud = MemoryCloud::new();
    let facade = TestFacade::on(&cloud).await;
    facade.running_server().await;
    let [plan, follower_plan] = [(); 2].map(|()| Plan::new(Vec::new()));
    let store: Arc<dyn Store> = Flaky::<dyn Store>::new(&plan, &facade.store);
    let (machines, snapshots) = facade
        .machines_over(store, facade.region().provisioner.clone())
        .await;
    let store: Arc<dyn Store> = Flaky::<dyn Store>::new(&follower_plan, &facade.store);
    let (follower, _) = CatalogService::open(store).await.unwrap();
    let work = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut costs = BTreeSet::new();
        for number in 0..60 {
            let (before, follower_before) = (plan.listed(), follower_plan.listed());
            let mut new = new_snapshot();
            new.name = Name::new(format!("copy-{number}")).unwrap();
            let requested = machines.snapshot(&operator(), server_id(1), &new).await;
            let id = requested.unwrap().id;
            snapshots.pass().await.unwrap();
            costs.insert(plan.listed() - before);
            let before = plan.listed();
            snapshots.pass().await.unwrap();
            assert_eq!(
                plan.listed(),
                before,
                "a finished image is not listed again"
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
            let seen = follower.image(&operator(), &id).unwrap();
            assert_eq!(seen.state, ImageState::Ready);
            assert_eq!(
                follower_plan.listed(),
                follower_before,
                "another process reads the new image alone"
            );
        }
        assert_eq!(costs, BTreeSet::from([1]), "the new image alone");
    };
    tokio::select! {
        biased;
        () = work => {}
        error = follower.follow() => panic!("{error}"),
    }
}

/// In real time, because SQLite's threads do not follow a paused clock.
#[tokio::test]
async fn next_process_creates_a_pending_image_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("region.db");
    let open = || sqlite_store(&path);
    let soon = Duration::from_millis(1);
    let cloud = MemoryCloud::builder()
        .timing(Timing::all(soon))
        .poll_interval(soon)
        .build();
    let handle: Arc<dyn InstanceProvisioner> = Arc::new(cloud.provisioner());
    let facade = TestFacade::builder()
        .store(open().await)
        .provisioner(handle.clone())
        .scan_every(Duration::from_millis(20))
        .build()
        .await;
    facade.ensure_server().await;
    let until_running = async {
        let is_running = |view: &ServerView| view.phase == Phase::Running;
        while !is_running(&facade.read_server().await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    facade.during_region(until_running).await;
    let plan = Plan::new(vec![(2, Kind::CrashAfter)]);
    let store: Arc<dyn Store> = Flaky::<dyn Store>::new(&plan, &facade.store);
    let flaky = Flaky::<dyn InstanceProvisioner>::new(&plan, &handle);
    let (machines, snapshots) = facade.machines_over(store, flaky).await;
    let requested = machines
        .snapshot(&operator(), server_id(1), &new_snapshot())
        .await;
    assert_eq!(requested.unwrap().state, ImageState::Pending);
    tokio::select! {
        biased;
        () = plan.died() => {}
        () = snapshots.run() => panic!("it runs until it is dropped"),
    }
    assert_eq!(
        cloud.oracle().images().len(),
        1,
        "the cloud created it, and its response was lost"
    );
    drop((machines, snapshots));

    let (_, next) = facade.machines_over(open().await, handle).await;
    next.pass().await.unwrap();
    assert_eq!(facade.snapshot_image().await.state, ImageState::Ready);
    assert_eq!(cloud.oracle().images().len(), 1);
}
