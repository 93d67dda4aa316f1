//! Knobs without their own file: declared capabilities, latency and clocks.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use fleetwright::{
    BatchLaunch,
    CloudInstanceState::{Pending, Running, Stopping, Terminated, Terminating},
    InstanceProvisioner as _, OptionalVerb, PlacementField,
};
use fleetwright_memory::{Clock as _, ManualClock, MemoryCloud, Timing, TokioClock};
use futures_util::FutureExt as _;

use crate::support::{
    brisk, builder, existing_ids, in_zone, many, open, pass, plain, running, seconds, state, truth,
    zone,
};

#[tokio::test(start_paused = true)]
async fn defaults_are_as_documented() {
    for provisioner in [
        MemoryCloud::new().provisioner(),
        MemoryCloud::default().provisioner(),
    ] {
        let declared = provisioner.capabilities();
        assert_eq!(declared.provider, "memory");
        assert_eq!(declared.consistency_window, Duration::ZERO);
        assert_eq!(declared.token_after_terminate, seconds(3_600));
        assert_eq!(declared.terminated_visible, seconds(3_600));
        assert_eq!(
            (declared.page_size.get(), declared.batch_size.get()),
            (100, 1_000)
        );
        assert_eq!(declared.batch_launch, BatchLaunch::AllOrNothing);
        assert_eq!(declared.poll_interval, Duration::from_millis(100));
        assert_eq!(declared.max_user_data_bytes, 16_384);
        let tags = &declared.tags;
        assert_eq!(
            (tags.max_tags, tags.max_key_chars, tags.max_value_chars),
            (50, 128, 256)
        );
        assert_eq!(tags.reserved_prefixes, ["memory:"]);
        assert!(
            OptionalVerb::ALL
                .iter()
                .all(|verb| declared.supports(*verb))
        );
        assert!(
            PlacementField::ALL
                .iter()
                .all(|field| declared.placement.contains(field))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn settings_are_declared_in_the_capabilities() {
    let size = |size| NonZeroUsize::new(size).unwrap();
    let (_, provisioner) = open(
        builder()
            .read_lag(seconds(1))
            .usual_lag(seconds(0))
            .token_after_terminate(seconds(2))
            .terminated_visible(seconds(3))
            .poll_interval(seconds(4))
            .page_size(size(5))
            .batch_size(size(6))
            .batch_launch(BatchLaunch::Partial)
            .without_verb(OptionalVerb::ConsoleOutput)
            .without_placement(PlacementField::Spot),
    );
    let declared = provisioner.capabilities();
    assert_eq!(declared.consistency_window, seconds(1));
    assert_eq!(declared.usual_lag(), seconds(0));
    assert_eq!(declared.token_after_terminate, seconds(2));
    assert_eq!(declared.terminated_visible, seconds(3));
    assert_eq!(declared.poll_interval, seconds(4));
    assert_eq!(
        (declared.page_size.get(), declared.batch_size.get()),
        (5, 6)
    );
    assert_eq!(declared.batch_launch, BatchLaunch::Partial);
    assert_eq!((declared.verbs.len(), declared.placement.len()), (7, 4));
    assert!(!declared.supports(OptionalVerb::ConsoleOutput));
}

#[tokio::test(start_paused = true)]
async fn call_takes_effect_after_half_of_its_latency() {
    let (cloud, provisioner) = open(brisk().latency(seconds(10)));
    let launching = async {
        let info = provisioner.launch_instance(&plain()).await.unwrap();
        (info, tokio::time::Instant::now())
    };
    let watching = async {
        pass(Duration::from_millis(4_999)).await;
        let before = existing_ids(&cloud).len();
        pass(Duration::from_millis(2)).await;
        (before, existing_ids(&cloud).len())
    };
    let began = tokio::time::Instant::now();
    let ((info, ended), observed) = tokio::join!(launching, watching);
    assert_eq!(observed, (0, 1));
    assert_eq!(ended - began, seconds(10));
    assert_eq!(
        info.state, Pending,
        "the state at the time when the cloud handled the call"
    );
    assert_eq!(
        info.launch_time.unwrap().to_rfc3339(),
        "2026-01-01T00:00:05+00:00"
    );
    assert_eq!(truth(&cloud, &info.id).info.state, Running);
}

#[tokio::test(start_paused = true)]
async fn latencies_of_concurrent_calls_overlap() {
    let (_, provisioner) = open(brisk().latency(seconds(10)));
    let config = plain();
    let calls = (0..20).map(|_| provisioner.launch_instance(&config));
    let began = tokio::time::Instant::now();
    futures_util::future::join_all(calls).await;
    assert_eq!(began.elapsed(), seconds(10));
}

#[tokio::test(start_paused = true)]
async fn added_zones_replace_the_default_zones() {
    let (_, provisioner) = open(builder().zone(zone("x")).zone(zone("y")));
    let first = provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(first.placement.zone, Some(zone("x")));
    let second = provisioner.launch_instance(&in_zone("y")).await.unwrap();
    assert_eq!(second.placement.zone, Some(zone("y")));
    provisioner
        .launch_instance(&in_zone("mem-a"))
        .await
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn manual_clock_alone_advances_the_cloud() {
    let clock = Arc::new(ManualClock::new());
    let (cloud, provisioner) = open(builder().clock(clock.clone()).read_lag(seconds(1)));
    let id = provisioner.launch_instance(&plain()).await.unwrap().id;
    clock.advance(seconds(4));
    pass(seconds(1_000)).await;
    assert_eq!(state(&provisioner, &id).await, Pending);
    clock.advance(seconds(2));
    assert_eq!(state(&provisioner, &id).await, Running);
    provisioner.terminate_instance(&id).await.unwrap();
    clock.advance(seconds(3));
    assert_eq!(state(&provisioner, &id).await, Terminated);
    // One large advance runs everything that was due in between, in order.
    clock.advance(Duration::MAX);
    assert!(cloud.oracle().instance(&id).is_none());
    let late = provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(
        late.launch_time,
        Some(chrono::DateTime::<chrono::Utc>::MAX_UTC)
    );
}

#[tokio::test(start_paused = true)]
async fn large_advance_runs_each_transition_at_its_own_time() {
    let clock = Arc::new(ManualClock::new());
    let knobs = builder()
        .clock(clock.clone())
        .terminated_visible(seconds(10));
    let (cloud, provisioner) = open(knobs.token_after_terminate(seconds(20)));
    let config = crate::support::with_token("t");
    let id = provisioner.launch_instance(&config).await.unwrap().id;
    provisioner.terminate_instance(&id).await.unwrap();
    // Terminated at 2 s, purged at 12 s, token expired at 22 s, independently of any read.
    clock.advance(seconds(11));
    assert_eq!(truth(&cloud, &id).info.state, Terminated);
    clock.advance(seconds(1));
    assert!(cloud.oracle().instance(&id).is_none());
    clock.advance(seconds(9));
    provisioner.launch_instance(&config).await.unwrap_err();
    clock.advance(seconds(1));
    provisioner.launch_instance(&config).await.unwrap();
}

#[test]
fn cloud_with_its_own_clock_and_no_latency_needs_no_runtime() {
    let clock = Arc::new(ManualClock::new());
    let (cloud, provisioner) = open(builder().clock(clock.clone()));
    let config = plain();
    let launched = provisioner.launch_instance(&config).now_or_never();
    let id = launched.unwrap().unwrap().id;
    clock.advance(seconds(5));
    let described = provisioner.describe_instance(&id).now_or_never();
    assert_eq!(described.unwrap().unwrap().state, Running);
    assert_eq!(existing_ids(&cloud), [id]);
}

#[tokio::test(start_paused = true)]
async fn manual_clock_can_start_at_any_date() {
    let clock = TokioClock::starting_at(chrono::DateTime::UNIX_EPOCH);
    assert_eq!(clock.epoch().timestamp(), 0);
    let (_, provisioner) = open(builder().clock(Arc::new(clock)));
    pass(seconds(5)).await;
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(info.launch_time.unwrap().timestamp(), 5);
}

#[tokio::test(start_paused = true)]
async fn transitions_without_duration_are_complete_at_the_next_read() {
    let (cloud, provisioner) = open(builder().timing(Timing::all(Duration::ZERO)));
    let info = provisioner.launch_instance(&plain()).await.unwrap();
    assert_eq!(info.state, Pending);
    assert_eq!(state(&provisioner, &info.id).await, Running);
    provisioner.stop_instance(&info.id).await.unwrap();
    assert_eq!(
        provisioner.start_instance(&info.id).await.unwrap().state,
        Pending
    );
    provisioner.terminate_instance(&info.id).await.unwrap();
    assert!(cloud.oracle().leftovers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn transitions_may_take_forever() {
    let (cloud, provisioner) = open(builder().timing(Timing::all(Duration::MAX)));
    let id = provisioner.launch_instance(&plain()).await.unwrap().id;
    pass(seconds(1_000_000)).await;
    assert_eq!(state(&provisioner, &id).await, Pending);
    provisioner.stop_instance(&id).await.unwrap();
    pass(seconds(1_000_000)).await;
    assert_eq!(state(&provisioner, &id).await, Stopping);
    provisioner.terminate_instance(&id).await.unwrap();
    pass(seconds(1_000_000)).await;
    assert_eq!(state(&provisioner, &id).await, Terminating);
    assert_eq!(existing_ids(&cloud), [id]);
}

#[tokio::test(start_paused = true)]
async fn debug_output_omits_the_contents_of_the_account() {
    let (cloud, provisioner) = open(brisk());
    let info = running(&provisioner).await;
    provisioner
        .launch_instances(&plain(), many(100))
        .await
        .unwrap();
    let (oracle, actor) = (cloud.oracle(), cloud.external_actor());
    for shown in [
        format!("{cloud:?}"),
        format!("{provisioner:?}"),
        format!("{oracle:?}"),
        format!("{actor:?}"),
    ] {
        assert!(shown.contains("memory"), "{shown}");
        for hidden in ["boot 1", info.id.as_str(), "fleet"] {
            assert!(!shown.contains(hidden), "{hidden} is in {shown}");
        }
        assert!(shown.len() < 500, "{shown}");
    }
}
