//! A machine that is changing is described between two scans, so that its new state is seen when it is reached, at few calls.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use fleetwright_facade_testkit::{TestRegion, bare_server, server_admin, server_id};
use fleetwright_memory::{MemoryCloud, Timing, WireCall};
use fleetwright_region::server::{Phase, Power};
use tokio::time::Instant;

const TICK: Duration = Duration::from_secs(15);

fn region(cloud: &MemoryCloud) -> TestRegion {
    TestRegion::new(Arc::new(cloud.provisioner())).policy(|policy| policy.tick = TICK)
}

async fn create(region: &TestRegion, servers: u128) {
    for number in 1..=servers {
        let new = bare_server(number);
        region.servers.ensure(&server_admin(), &new).await.unwrap();
    }
}

/// Waits until all servers are in a phase. Returns how long it took.
async fn reach(region: &TestRegion, servers: u128, phase: Phase) -> Duration {
    let start = Instant::now();
    for number in 1..=servers {
        region
            .until(server_id(number), |view| view.phase == phase)
            .await;
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn states_are_seen_soon_after_they_are_reached() {
    // The time of a transition, and the latest time at which it is seen: after delays of 0.2, 1, 2, 4 and 8 seconds.
    for (transition, seen_after) in [(0, 2), (1, 4), (5, 8), (6, 8), (10, 16)] {
        let cloud = MemoryCloud::builder()
            .timing(Timing::all(Duration::from_secs(transition)))
            .build();
        let region = region(&cloud);
        let seen_after = Duration::from_secs(seen_after);
        region
            .during(async {
                // The first scan happens at the start, and the next one after a tick.
                tokio::time::sleep(Duration::from_secs(1)).await;
                create(&region, 1).await;
                let took = reach(&region, 1, Phase::Running).await;
                assert!(took <= seen_after, "{transition} s: running after {took:?}");
                for (power, phase) in [
                    (Power::Stopped, Phase::Stopped),
                    (Power::Running, Phase::Running),
                ] {
                    let admin = server_admin();
                    let set = region.servers.set_power(&admin, server_id(1), power);
                    set.await.unwrap();
                    let took = reach(&region, 1, phase).await;
                    assert!(
                        took <= seen_after,
                        "{transition} s: {phase:?} after {took:?}"
                    );
                }
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn machine_that_runs_at_once_is_seen_within_half_a_second() {
    let cloud = MemoryCloud::builder().timing(Timing::all(Duration::ZERO));
    let region = region(&cloud.build());
    region
        .during(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for number in 1..=3 {
                let new = bare_server(number);
                region.servers.ensure(&server_admin(), &new).await.unwrap();
                let took = reach(&region, number, Phase::Running).await;
                assert!(took <= Duration::from_millis(500), "{number}: {took:?}");
            }
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn provider_with_a_long_poll_interval_is_not_called_more_often() {
    let mut timing = Timing::default();
    timing.boot = Duration::from_secs(600);
    let cloud = MemoryCloud::builder().timing(timing);
    let cloud = cloud.poll_interval(Duration::from_secs(2)).build();
    let region = region(&cloud);
    region
        .during(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            create(&region, 1).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        })
        .await;
    // After 2, 4 and 8 seconds.
    let calls = cloud.oracle().call_count(WireCall::Describe);
    assert!(calls <= 3, "{calls} descriptions");
}

#[tokio::test(start_paused = true)]
async fn descriptions_are_batched_and_end_when_nothing_changes() {
    let described = async |servers: u128| {
        let cloud = MemoryCloud::new();
        let region = region(&cloud);
        let calls = || cloud.oracle().call_count(WireCall::Describe);
        region
            .during(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                create(&region, servers).await;
                reach(&region, servers, Phase::Running).await;
                tokio::time::sleep(TICK).await;
                let settled = calls();
                tokio::time::sleep(Duration::from_secs(600)).await;
                assert_eq!(calls(), settled, "nothing changes");
                settled
            })
            .await
    };
    let (one, many) = (described(1).await, described(200).await);
    assert!((1..=5).contains(&one), "{one} calls for one server");
    // Those that are due together share a call.
    assert!(many <= 15, "{many} calls for 200 servers");
}

#[tokio::test(start_paused = true)]
async fn machine_that_takes_long_costs_a_few_calls_until_the_scans_take_over() {
    let mut timing = Timing::default();
    timing.boot = Duration::from_secs(600);
    let cloud = MemoryCloud::builder().timing(timing).build();
    let region = region(&cloud);
    create(&region, 1).await;
    let took = region.during(reach(&region, 1, Phase::Running)).await;
    assert!(took <= Duration::from_secs(600) + 2 * TICK, "{took:?}");
    let calls = cloud.oracle().call_count(WireCall::Describe);
    assert!(calls <= 5, "{calls} descriptions");
}
