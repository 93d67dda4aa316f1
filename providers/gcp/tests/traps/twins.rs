//! One token for two launches that exclude each other: a single launch and a batch, or two zones.

use std::{num::NonZeroU32, time::Duration};

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Fault, FaultRule, Method, Phase};
use fleetwright_gcp::fleetwright::{
    ErrorKind, InstanceConfig, InstanceProvisioner as _, LaunchRecord, ProvisionError, RetryAdvice,
    Zone,
};

use crate::{
    alive, config_with_token,
    emulated::{GcpHarness, ZONES},
    launch_twin,
};

const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

fn in_zone(config: &InstanceConfig, zone: &str) -> InstanceConfig {
    let mut config = config.clone();
    config.placement.zone = Some(Zone::new(zone).unwrap());
    config
}

/// Waits until deleted instances are gone.
async fn wait_for_deletions(harness: &GcpHarness) {
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let oracle = harness.emulator().oracle();
        if oracle.instances.iter().all(|one| one.status != "STOPPING") {
            return;
        }
    }
}

#[tokio::test]
async fn single_launch_and_batch_with_one_token_exclude_each_other() {
    // Reads are stale for longer than the test takes: only the cloud itself can refuse the second.
    for single_first in [true, false] {
        let harness = GcpHarness::with_knobs(|knobs| knobs.lag.reads = Duration::from_millis(300));
        let mut options = harness.options();
        options.consistency_window = Duration::from_millis(600);
        let open = || harness.open_with_options(GcpHarness::launch_config(), options.clone());
        let config = config_with_token(&harness, "t-1");
        let (first, second) = (open().await, open().await);
        let (error, expected) = if single_first {
            first.launch_instance(&config).await.unwrap();
            (
                second.launch_instances(&config, THREE).await.unwrap_err(),
                1,
            )
        } else {
            first.launch_instances(&config, THREE).await.unwrap();
            (second.launch_instance(&config).await.unwrap_err(), 3)
        };
        assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
        assert_eq!(alive(&harness), expected, "single first: {single_first}");
    }
}

#[tokio::test]
async fn single_launch_and_batch_at_the_same_moment_launch_once() {
    for _ in 0..4 {
        let harness = GcpHarness::new();
        let config = config_with_token(&harness, "t-1");
        let (one, other) = (harness.open().await, harness.open().await);
        let (single, batch) = tokio::join!(
            one.launch_instance(&config),
            other.launch_instances(&config, THREE)
        );
        let expected = match (&single, &batch) {
            (Ok(_), Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
                1
            }
            (Err(error), Ok(_)) => {
                assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
                3
            }
            _ => panic!("one of them launches: {single:?}, {batch:?}"),
        };
        assert_eq!(alive(&harness), expected);
    }
}

/// Checks that a launch that gave way says so, and that a retry does not launch again.
fn check_refusal(error: &ProvisionError) {
    let kinds = [ErrorKind::TokenConflict, ErrorKind::Conflict];
    assert!(kinds.contains(&error.kind()), "{error}");
}

#[tokio::test]
async fn trap_46_one_token_in_two_zones_at_the_same_moment_launches_once() {
    // The inserts take different times, so that each interleaving of insert and second read occurs.
    for (slow, phase) in [
        (0, Phase::Before),
        (1, Phase::Before),
        (2, Phase::Before),
        (1, Phase::After),
        (2, Phase::After),
    ] {
        let harness = GcpHarness::with_knobs(|_| {});
        if slow > 0 {
            let by = Duration::from_millis(60);
            let rule = FaultRule::nth(Method::InstancesInsert, slow, Fault::Delay { phase, by });
            harness.emulator().add_fault(rule);
        }
        let config = config_with_token(&harness, "t-1");
        let configs = ZONES.map(|zone| in_zone(&config, zone));
        let (one, other) = (harness.open().await, harness.open().await);
        let (first, second) = tokio::join!(
            one.launch_instance(&configs[0]),
            other.launch_instance(&configs[1])
        );
        wait_for_deletions(&harness).await;
        assert_eq!(alive(&harness), 1, "{first:?}, {second:?}");
        let results = [&first, &second];
        let errors: Vec<_> = results
            .iter()
            .filter_map(|one| one.as_ref().err())
            .collect();
        errors.iter().for_each(|error| check_refusal(error));
        let kept: Vec<_> = results.iter().filter_map(|one| one.as_ref().ok()).collect();
        assert_eq!(kept.len(), 1, "{first:?}, {second:?}");
        let token = config.launch_token.as_ref().unwrap();
        let record = harness.open().await.find_launch(token).await.unwrap();
        assert!(
            matches!(&record, LaunchRecord::Found(found) if found[0].id == kept[0].id),
            "{record:?}"
        );
    }
}

#[tokio::test]
async fn batches_in_two_zones_at_the_same_moment_launch_once() {
    let harness = GcpHarness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let configs = ZONES.map(|zone| in_zone(&config, zone));
    let (one, other) = (harness.open().await, harness.open().await);
    let (first, second) = tokio::join!(
        one.launch_instances(&configs[0], THREE),
        other.launch_instances(&configs[1], THREE)
    );
    wait_for_deletions(&harness).await;
    assert_eq!(alive(&harness), 3, "{first:?}, {second:?}");
    assert!(first.is_ok() != second.is_ok(), "{first:?}, {second:?}");
}

#[tokio::test]
async fn launch_that_gives_way_deletes_only_what_it_created() {
    let harness = GcpHarness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    // The launch config without a zone has the same fingerprint through both handles.
    let mut reversed = GcpHarness::launch_config();
    reversed.zones.reverse();
    let (one, other) = (harness.open().await, harness.open_with(reversed).await);
    let (first, second) =
        tokio::join!(one.launch_instance(&config), other.launch_instance(&config));
    wait_for_deletions(&harness).await;
    let (kept, error) = match (first, second) {
        (Ok(kept), Err(error)) | (Err(error), Ok(kept)) => (kept, error),
        both => panic!("one of them launches: {both:?}"),
    };
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_ne!(error.retry(), RetryAdvice::Never, "{error}");
    assert_eq!(harness.call_count("instances.delete"), 1);
    for handle in [&*one, &other] {
        assert_eq!(handle.launch_instance(&config).await.unwrap().id, kept.id);
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn launch_gives_way_to_the_twin_of_a_dead_process() {
    let harness = GcpHarness::with_knobs(|_| {});
    let config = in_zone(&config_with_token(&harness, "t-1"), ZONES[0]);
    let slow = Fault::Delay {
        phase: Phase::Before,
        by: Duration::from_millis(500),
    };
    let rule = FaultRule::nth(Method::InstancesAggregatedList, 2, slow);
    harness.emulator().add_fault(rule);
    let gcp = harness.open().await;
    let launched = tokio::spawn(async move { gcp.launch_instance(&config).await });
    while alive(&harness) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Another process creates its instance after this one, and dies before it looks again.
    launch_twin(&harness);
    let error = launched.await.unwrap().unwrap_err();
    check_refusal(&error);
    wait_for_deletions(&harness).await;
    assert_eq!(harness.only_instance().zone, ZONES[1]);
}
