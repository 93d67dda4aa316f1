//! Launches that the cloud accepts and that fail later.

use std::time::Duration;

use fleetwright::{
    BatchLaunch, CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceInfo,
    InstanceProvisioner as _, LaunchRecord, Zone,
    layer::{Fallback, FallbackPolicy, Layered, Retry, RetryPolicy},
};
use fleetwright_memory::{
    Capacity, Fault, MemoryCloud, MemoryProvisioner, Phase, Rule, Timing, WireCall,
};
use tokio::time::{Instant, sleep, timeout};

use super::{fallback::in_zone, live, many, plain, token, with_token};
use crate::fake::secs;

pub(super) fn zones() -> FallbackPolicy {
    FallbackPolicy::new(["mem-a", "mem-b", "mem-c"].map(in_zone))
}

/// Creates a cloud that finds out after seven seconds that it has no capacity, and boots in twenty.
fn cloud(machines: [u64; 3]) -> MemoryCloud {
    cloud_with_lag(machines, 2)
}

pub(super) fn cloud_with_lag(machines: [u64; 3], read_lag: u64) -> MemoryCloud {
    let mut builder = MemoryCloud::builder()
        .late_failures(secs(7))
        .accept_without_capacity();
    let mut timing = Timing::all(secs(1));
    timing.boot = secs(20);
    for (name, machines) in ["mem-a", "mem-b", "mem-c"].into_iter().zip(machines) {
        let zone = Zone::new(name).unwrap();
        builder = builder.zone(zone.clone());
        builder = builder.capacity(Capacity::of(machines).in_zone(zone));
    }
    let builder = builder.batch_launch(BatchLaunch::Partial);
    let builder = builder.timing(timing).poll_interval(secs(1));
    builder.read_lag(secs(read_lag)).build()
}

fn process(
    cloud: &MemoryCloud,
    policy: FallbackPolicy,
) -> Layered<Layered<MemoryProvisioner, Retry>, Fallback> {
    let retry = Retry::new(RetryPolicy::default().jitter_seed(3));
    let retry = Layered::new(cloud.provisioner(), retry);
    Layered::new(retry, Fallback::new(policy))
}

pub(super) fn zone_of(info: &InstanceInfo) -> &str {
    info.placement.zone.as_ref().unwrap().as_str()
}

#[tokio::test(start_paused = true)]
async fn late_failure_continues_with_the_next_alternative() {
    for config in [plain(), with_token("t-1")] {
        let cloud = cloud([0, 0, 9]);
        let process = process(&cloud, zones());
        let info = process.launch_instance(&config).await.unwrap();
        assert_eq!(zone_of(&info), "mem-c");
        assert_eq!(info.state, CloudInstanceState::Pending);
        assert_eq!(
            (live(&cloud), cloud.oracle().call_count(WireCall::Launch)),
            (1, 3)
        );
        assert_eq!(process.layer().without_capacity().len(), 2);
        if let Some(token) = &config.launch_token {
            let found = process.find_launch(token).await.unwrap();
            assert!(matches!(found, LaunchRecord::Found(all) if all[0].id == info.id));
        }
        // The next launch skips both.
        process.launch_instance(&plain()).await.unwrap();
        assert_eq!(cloud.oracle().call_count(WireCall::Launch), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn late_failure_of_all_alternatives_is_returned() {
    let cloud = cloud([0, 0, 0]);
    let process = process(&cloud, zones());
    let error = process
        .launch_instance(&with_token("t-1"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None),
        "{error}"
    );
    assert!(
        error.message().starts_with("InsufficientCapacity"),
        "{error}"
    );
    assert_eq!(live(&cloud), 0);
    let found = process.find_launch(&token("t-1")).await.unwrap();
    assert_eq!(found, LaunchRecord::NotFound);
}

#[tokio::test(start_paused = true)]
async fn launch_is_followed_as_long_as_declared_or_configured() {
    let began = Instant::now();
    let elapsed = |began: Instant| began.elapsed().as_secs();
    // It boots in twenty seconds, and fails within seven.
    let one = cloud([9, 9, 9]);
    let info = process(&one, zones())
        .launch_instance(&plain())
        .await
        .unwrap();
    assert_eq!(
        (info.state, elapsed(began)),
        (CloudInstanceState::Pending, 9)
    );
    let began = Instant::now();
    let followed = process(&one, zones().follow_for(Duration::MAX));
    let info = followed.launch_instance(&plain()).await.unwrap();
    assert_eq!(info.state, CloudInstanceState::Running);
    assert!((20..24).contains(&elapsed(began)));
    // Without following, the failure ends the launch.
    let (short, began) = (cloud([0, 9, 9]), Instant::now());
    let process = process(&short, zones().follow_for(secs(0)));
    let info = process.launch_instance(&with_token("t-1")).await.unwrap();
    assert_eq!(
        (info.state, elapsed(began)),
        (CloudInstanceState::Pending, 0)
    );
    sleep(secs(12)).await;
    let status = process.describe_instance(&info.id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminated);
    assert_eq!(status.launch_failure.unwrap().kind, ErrorKind::Capacity);
    assert_eq!(live(&short), 0);
}

#[tokio::test(start_paused = true)]
async fn instance_that_somebody_terminates_is_not_launched_again() {
    let cloud = cloud([9, 9, 9]);
    let process = process(&cloud, zones().follow_for(secs(60)));
    let config = with_token("t-1");
    let terminate = async {
        sleep(secs(3)).await;
        let id = cloud.oracle().leftovers().instances.remove(0);
        cloud.external_actor().terminate(&id).unwrap();
    };
    let (launched, ()) = tokio::join!(process.launch_instance(&config), terminate);
    assert_eq!(launched.unwrap().state, CloudInstanceState::Pending);
    assert_eq!(cloud.oracle().call_count(WireCall::Launch), 1);
}

#[tokio::test(start_paused = true)]
async fn batch_moves_on_only_if_nothing_of_it_lives() {
    let nothing = cloud([0, 9, 9]);
    let config = with_token("t-1");
    let all = process(&nothing, zones())
        .launch_instances(&config, many(3))
        .await
        .unwrap();
    assert!(all.iter().all(|info| zone_of(info) == "mem-b"));
    assert_eq!(live(&nothing), 3);
    let part = cloud([2, 9, 9]);
    let error = process(&part, zones())
        .launch_instances(&config, many(3))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::Done),
        "{error}"
    );
    assert_eq!((error.survivors().len(), live(&part)), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn pending_launch_of_a_crashed_process_is_followed() {
    // The first process falls back to the second zone and crashes; the next one starts with the first.
    let cloud = cloud([0, 0, 9]);
    let config = with_token("t-1");
    let first = process(&cloud, zones());
    timeout(secs(9), first.launch_instance(&config))
        .await
        .unwrap_err();
    cloud
        .external_actor()
        .set_capacity(vec![Capacity::of(0).in_zone(Zone::new("mem-b").unwrap())]);
    let second = process(&cloud, zones());
    let info = second.launch_instance(&config).await.unwrap();
    assert_eq!(cloud.oracle().leftovers().instances, [info.id]);
}

/// All faults of one call that leave its outcome open.
fn faults() -> Vec<Fault> {
    let phases = [Phase::Before, Phase::After].into_iter();
    let each = |phase| {
        [
            Fault::Lost(phase),
            Fault::ServerError(phase),
            Fault::Crash(phase),
        ]
    };
    phases.flat_map(each).chain([Fault::Malformed]).collect()
}

/// Every native call of a launch that falls back twice fails once, or its process crashes there. The next
/// process replays the token.
#[tokio::test(start_paused = true)]
async fn crash_at_any_call_while_falling_back_leaves_one_instance() {
    let config = with_token("t-1");
    let calls = [WireCall::Launch, WireCall::Describe, WireCall::FindLaunch];
    let mut tried = 0;
    for fault in faults() {
        for call in calls {
            for nth in 1.. {
                let cloud = cloud([0, 0, 9]);
                cloud.faults().add(Rule::nth(call, nth, fault.clone()));
                let launch = async {
                    let process = process(&cloud, zones());
                    timeout(secs(900), process.launch_instance(&config)).await
                };
                let result = launch.await;
                let what = format!("{fault:?} at {call:?} {nth}: {result:?}");
                assert!(live(&cloud) <= 1, "{what}");
                if cloud.oracle().call_count(call) < nth {
                    break;
                }
                tried += 1;
                cloud.faults().clear();
                check_replay(&cloud, &config, &what).await;
            }
        }
    }
    assert!(tried > 40, "{tried}");
}

/// Dropping the launch at any time, and replaying it, leaves one instance.
#[tokio::test(start_paused = true)]
async fn launch_dropped_at_any_time_is_replayed() {
    let config = with_token("t-1");
    for half_seconds in 0..90 {
        let cloud = cloud([0, 0, 9]);
        let time = secs(1) * half_seconds / 2;
        let dropped = timeout(time, process(&cloud, zones()).launch_instance(&config)).await;
        check_replay(&cloud, &config, &format!("{time:?} {dropped:?}")).await;
    }
}

async fn check_replay(cloud: &MemoryCloud, config: &InstanceConfig, what: &str) {
    let next = process(cloud, zones());
    let info = next.launch_instance(config).await;
    let info = info.unwrap_or_else(|error| panic!("{what}: {error}"));
    // A launch of the first process may still be failing.
    sleep(secs(30)).await;
    assert_eq!(
        cloud.oracle().leftovers().instances,
        std::slice::from_ref(&info.id),
        "{what}"
    );
    let found = next
        .find_launch(config.launch_token.as_ref().unwrap())
        .await
        .unwrap();
    assert!(
        matches!(found, LaunchRecord::Found(all) if all[0].id == info.id),
        "{what}"
    );
}
