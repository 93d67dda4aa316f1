//! Lists of operations are charged for what they compare, and their quota cannot be raised: nothing in
//! the normal life of an instance may need one.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Capacity, ExternalAction, Fault, FaultRule, Method};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner, LaunchRecord, RetryAdvice,
    TagChange,
};

use crate::{
    HOUR, alive, config_with_token,
    emulated::{GcpHarness, path_of},
    wait_for_state,
};

/// All methods that list operations.
const LISTS: [Method; 4] = [
    Method::ZoneOperationsList,
    Method::RegionOperationsList,
    Method::GlobalOperationsList,
    Method::GlobalOperationsAggregatedList,
];

const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

/// Refuses every list of operations.
fn refuse_lists(harness: &GcpHarness) {
    for method in LISTS {
        let refused = Fault::Throttled {
            retry_after_secs: None,
        };
        let rule = FaultRule::always(method, refused);
        harness.emulator().add_fault(rule);
    }
}

/// Returns how many lists of operations were sent.
fn lists(harness: &GcpHarness) -> u64 {
    LISTS
        .iter()
        .map(|method| harness.call_count(method.name()))
        .sum()
}

/// Plays everything that happens to instances in a normal life, single and in batches.
async fn run_lifecycles(harness: &GcpHarness, gcp: &dyn InstanceProvisioner) {
    let config = config_with_token(harness, "one");
    let id = gcp.launch_instance(&config).await.unwrap().id;
    wait_for_state(gcp, &id, CloudInstanceState::Running).await;
    assert_eq!(gcp.launch_instance(&config).await.unwrap().id, id);
    gcp.stop_instance(&id).await.unwrap();
    gcp.stop_instance(&id).await.unwrap();
    let status = gcp.describe_instance(&id).await.unwrap();
    assert!(!status.state.is_ending(), "{status:?}");
    gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    wait_for_state(gcp, &id, CloudInstanceState::Stopped).await;
    gcp.start_instance(&id).await.unwrap();
    wait_for_state(gcp, &id, CloudInstanceState::Running).await;
    let change = TagChange::new().set("a", "b").unwrap();
    gcp.update_tags(&id, &change).await.unwrap();
    let token = config.launch_token.as_ref().unwrap();
    let record = gcp.find_launch(token).await.unwrap();
    assert!(matches!(record, LaunchRecord::Found(_)), "{record:?}");
    gcp.terminate_instance(&id).await.unwrap();
    let status = gcp.describe_instance(&id).await.unwrap();
    assert!(status.state.is_ending(), "{status:?}");
    gcp.terminate_instance(&id).await.unwrap();
    let error = gcp.start_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
    gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    wait_for_state(gcp, &id, CloudInstanceState::Terminated).await;
    gcp.terminate_instance(&id).await.unwrap();
    let error = gcp.stop_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");

    let config = config_with_token(harness, "many");
    let launched = gcp.launch_instances(&config, THREE).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    let again = gcp.launch_instances(&config, THREE).await.unwrap();
    assert!(again.iter().zip(&ids).all(|(info, id)| info.id == *id));
    for id in &ids {
        wait_for_state(gcp, id, CloudInstanceState::Running).await;
    }
    let all = |results: &[bool]| assert!(results.iter().all(|one| *one), "{results:?}");
    let stopped = gcp.stop_instances(&ids).await;
    all(&stopped.iter().map(Result::is_ok).collect::<Vec<_>>());
    for id in &ids {
        wait_for_state(gcp, id, CloudInstanceState::Stopped).await;
    }
    let started = gcp.start_instances(&ids).await;
    all(&started.iter().map(Result::is_ok).collect::<Vec<_>>());
    for id in &ids {
        wait_for_state(gcp, id, CloudInstanceState::Running).await;
    }
    let deleted = gcp.terminate_instances(&ids).await;
    all(&deleted.iter().map(Result::is_ok).collect::<Vec<_>>());
    gcp.describe_instances(&ids).await;
    for id in &ids {
        wait_for_state(gcp, id, CloudInstanceState::Terminated).await;
    }
    for described in gcp.describe_instances(&ids).await {
        assert_eq!(described.unwrap().state, CloudInstanceState::Terminated);
    }
}

#[tokio::test]
async fn trap_44_normal_life_lists_no_operations() {
    for lag in [false, true] {
        let harness = if lag {
            GcpHarness::new()
        } else {
            GcpHarness::with_knobs(|_| {})
        };
        let harness = harness.wait_for_launch();
        let gcp = harness.open().await;
        run_lifecycles(&harness, &*gcp).await;
        assert_eq!((lists(&harness), alive(&harness)), (0, 0), "lag: {lag}");
    }
}

#[tokio::test]
async fn everything_works_while_lists_of_operations_are_refused() {
    let harness = GcpHarness::new().wait_for_launch();
    refuse_lists(&harness);
    run_lifecycles(&harness, &*harness.open().await).await;
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn other_handle_works_while_lists_of_operations_are_refused() {
    let harness = GcpHarness::with_knobs(|_| {});
    refuse_lists(&harness);
    let config = config_with_token(&harness, "t-1");
    let id = harness
        .open()
        .await
        .launch_instance(&config)
        .await
        .unwrap()
        .id;
    let other = || harness.open();
    wait_for_state(&*other().await, &id, CloudInstanceState::Running).await;
    let replayed = other().await.launch_instance(&config).await.unwrap();
    assert_eq!(replayed.id, id);
    other().await.stop_instance(&id).await.unwrap();
    wait_for_state(&*other().await, &id, CloudInstanceState::Stopped).await;
    other().await.start_instance(&id).await.unwrap();
    wait_for_state(&*other().await, &id, CloudInstanceState::Running).await;
    other().await.terminate_instance(&id).await.unwrap();
    while alive(&harness) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Nothing but the operations knows that it existed.
    let error = other().await.describe_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    harness.emulator().clear_faults();
    let status = other().await.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminated);
}

#[tokio::test]
async fn full_quota_of_filtered_lists_does_not_stop_a_termination() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let launched = gcp.launch_instances(&harness.config(), THREE).await;
    let ids: Vec<_> = launched.unwrap().into_iter().map(|info| info.id).collect();
    let mut knobs = harness.emulator().knobs();
    knobs.filtered_list_quota = 0;
    harness.emulator().set_knobs(knobs);
    let other: Arc<dyn InstanceProvisioner> = harness.open().await;
    for result in other.terminate_instances(&ids).await {
        result.unwrap();
    }
    assert_eq!(harness.call_count("instances.delete"), 3);
    // A list itself is throttled until the quota is full again, at the next full minute.
    let token = "t-1".parse().unwrap();
    let error = other.find_launch(&token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    let RetryAdvice::After(delay) = error.retry() else {
        panic!("{error}")
    };
    assert!(delay <= Duration::from_secs(60) && !delay.is_zero());
}

#[tokio::test]
async fn trap_45_throttling_advises_to_wait_for_the_next_full_minute() {
    let harness = GcpHarness::with_knobs(|_| {});
    let refused = Fault::Throttled {
        retry_after_secs: None,
    };
    let rule = FaultRule::always(Method::InstancesInsert, refused);
    harness.emulator().add_fault(rule);
    let gcp = harness.open().await;
    let mut delays = BTreeSet::new();
    for _ in 0..3 {
        harness.emulator().advance(Duration::from_secs(17));
        let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
        let RetryAdvice::After(delay) = error.retry() else {
            panic!("{error}")
        };
        // The emulator's clock begins at the real time, so only the range is known.
        assert!(
            delay <= Duration::from_secs(60) && !delay.is_zero(),
            "{error}"
        );
        delays.insert(delay);
    }
    assert!(delays.len() > 1, "the delay follows the clock: {delays:?}");
    harness.emulator().clear_faults();
    let fault = Fault::Throttled {
        retry_after_secs: Some(7),
    };
    let rule = FaultRule::always(Method::InstancesInsert, fault);
    harness.emulator().add_fault(rule);
    let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.retry(), RetryAdvice::After(Duration::from_secs(7)));
}

#[tokio::test]
async fn failed_deletion_is_sent_again_and_not_reported_as_terminating() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let errors = vec![fleetwright_emulators::gcp::Failure::new(
        "INTERNAL_ERROR",
        "no",
    )];
    let fails = Fault::OperationError { errors };
    let rule = FaultRule::nth(Method::InstancesDelete, 1, fails);
    harness.emulator().add_fault(rule);
    gcp.terminate_instance(&id).await.unwrap();
    let has_failed = || {
        let operations = harness.emulator().oracle().operations;
        operations
            .iter()
            .any(|one| one.operation_type == "delete" && one.status == "DONE")
    };
    while !has_failed() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Running);
    gcp.terminate_instance(&id).await.unwrap();
    assert_eq!(harness.call_count("instances.delete"), 2);
    wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    assert_eq!(lists(&harness), 0);
}

#[tokio::test]
async fn late_failure_is_reported_with_its_reason_without_a_list() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.capacity = vec![Capacity::of(0)];
        knobs.timing.provision = HOUR;
    });
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    harness.emulator().advance(HOUR);
    let ended = wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    let reason = ended.state_reason.unwrap();
    assert!(
        reason.starts_with("ZONE_RESOURCE_POOL_EXHAUSTED"),
        "{reason}"
    );
    assert_eq!(lists(&harness), 0);
}

#[tokio::test]
async fn external_deletion_is_found_in_the_operations() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.delete = HOUR);
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let instance = path_of(&id);
    harness
        .emulator()
        .perform_external(ExternalAction::Delete { instance })
        .unwrap();
    for _ in 0..4 {
        let status = gcp.describe_instance(&id).await.unwrap();
        assert_eq!(status.state, CloudInstanceState::Terminating);
    }
    assert_eq!(lists(&harness), 1, "the first one is remembered");
    // The instance was created long ago, and the memory of this handle has ended.
    harness.emulator().advance(HOUR);
    wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
}
