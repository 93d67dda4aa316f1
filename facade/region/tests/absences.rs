//! How many absent machines are believed: a small region is guarded like a large one, also where the provider reports no account.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright::layer::Layered;
use fleetwright_facade_testkit::{HiddenMachines, TestRegion, is_server_running, server_id};
use fleetwright_memory::{MemoryCloud, WireCall};
use fleetwright_region::server::{Presence, ServerView};

const MINUTE: Duration = Duration::from_secs(60);

async fn running_region(cloud: &MemoryCloud, hidden: &HiddenMachines, servers: u128) -> TestRegion {
    let layered = Layered::new(cloud.provisioner(), hidden.clone());
    let region = TestRegion::new(Arc::new(layered));
    for number in 1..=servers {
        region.create(number).await;
    }
    region
        .during(async {
            for number in 1..=servers {
                region.until(server_id(number), is_server_running).await;
            }
        })
        .await;
    region
}

async fn is_missing(region: &TestRegion, number: u128) -> bool {
    let view = region.read(server_id(number)).await;
    let seen = view.server.current_observation().unwrap();
    matches!(seen.presence, Presence::Missing(_))
}

#[tokio::test(start_paused = true)]
async fn empty_lists_of_some_minutes_are_not_believed_whatever_the_size() {
    for servers in [1, 2, 3, 4, 5, 6, 12, 60] {
        let (cloud, hidden) = (MemoryCloud::new(), HiddenMachines::default());
        let region = running_region(&cloud, &hidden, servers).await;
        region
            .during(async {
                hidden.set(true);
                for _ in 0..4 {
                    tokio::time::sleep(MINUTE).await;
                    for number in 1..=servers {
                        assert!(!is_missing(&region, number).await, "of {servers} servers");
                    }
                }
                hidden.set(false);
                tokio::time::sleep(MINUTE).await;
                for number in 1..=servers {
                    let view = region.read(server_id(number)).await;
                    assert!(is_server_running(&view), "{view:#?}");
                }
            })
            .await;
        assert_eq!(cloud.oracle().call_count(WireCall::Terminate), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn single_loss_is_reported_by_the_next_scan_and_the_loss_of_all_after_its_confirmation() {
    let (cloud, hidden) = (
        MemoryCloud::builder().terminated_visible(Duration::ZERO),
        HiddenMachines::default(),
    );
    let cloud = cloud.build();
    let region = running_region(&cloud, &hidden, 3).await;
    let actor = cloud.external_actor();
    let machine = |view: &ServerView| view.server.machine.as_ref().unwrap().id.clone();
    actor
        .terminate(&machine(&region.read(server_id(1)).await))
        .unwrap();
    tokio::time::sleep(MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    assert_eq!(report.frozen, None);
    assert!(is_missing(&region, 1).await);
    for number in [2, 3] {
        let view = region.read(server_id(number)).await;
        actor.terminate(&machine(&view)).unwrap();
    }
    tokio::time::sleep(MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    let reason = report.frozen.unwrap();
    assert!(
        reason.contains("no machine of the region is listed"),
        "{reason}"
    );
    assert!(!is_missing(&region, 2).await);
    tokio::time::sleep(5 * MINUTE).await;
    let report = region.monitor.scan().await.unwrap();
    assert_eq!(report.frozen, None);
    assert!(is_missing(&region, 2).await && is_missing(&region, 3).await);
}
