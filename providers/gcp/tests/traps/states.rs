//! States: TERMINATED is only off, and a deleted instance has no state.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{ExternalAction, Fault, FaultRule, Method};
use fleetwright_gcp::{
    SpotEnd,
    fleetwright::{
        CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _, Market,
    },
};

use crate::{
    HOUR, alive,
    emulated::{GcpHarness, path_of},
    wait_for_state,
};

#[tokio::test]
async fn trap_01_terminated_means_stopped_and_deleted_means_terminated() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    let stopped = wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    assert_eq!(stopped.native_state.as_deref(), Some("TERMINATED"));
    let listed = gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed[0].state, CloudInstanceState::Stopped);
    assert_eq!(
        harness.emulator().oracle().disks.len(),
        1,
        "its disk is paid for"
    );
    gcp.terminate_instance(&id).await.unwrap();
    let terminated = wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    assert_eq!(terminated.state_reason.as_deref(), Some("deleted"));
    assert_eq!(
        (alive(&harness), harness.emulator().oracle().disks.len()),
        (0, 0)
    );
    // Another handle knows it from the operations.
    let again = harness.open().await.describe_instance(&id).await.unwrap();
    assert_eq!(again.state, CloudInstanceState::Terminated);
}

#[tokio::test]
async fn trap_03_unknown_state_is_not_terminated() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let state = "DEFROSTING".to_owned();
    let rule = FaultRule::always_any(Fault::UnknownState { state });
    harness.emulator().add_fault(rule);
    let status = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Pending);
    assert_eq!(status.native_state.as_deref(), Some("DEFROSTING"));
    let listed = gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed[0].state, CloudInstanceState::Pending);
    harness.emulator().clear_faults();
    harness
        .emulator()
        .perform_external(ExternalAction::Repair {
            instance: path_of(&id),
        })
        .unwrap();
    let repaired = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(repaired.native_state.as_deref(), Some("REPAIRING"));
    assert_eq!(repaired.state, CloudInstanceState::Pending);
}

#[tokio::test]
async fn trap_04_preempted_spot_instance_is_deleted_unless_configured() {
    for (end, state) in [
        (SpotEnd::Deleted, CloudInstanceState::Terminated),
        (SpotEnd::Stopped, CloudInstanceState::Stopped),
    ] {
        let harness = GcpHarness::with_knobs(|_| {});
        let mut launch = GcpHarness::launch_config();
        launch.spot_end = end;
        let gcp = harness.open_with(launch).await;
        let mut config = harness.config();
        config.placement.market = Some(Market::Spot);
        let id = gcp.launch_instance(&config).await.unwrap().id;
        wait_for_state(&gcp, &id, CloudInstanceState::Running).await;
        harness
            .emulator()
            .perform_external(ExternalAction::Preempt {
                instance: path_of(&id),
            })
            .unwrap();
        let ended = wait_for_state(&gcp, &id, state).await;
        let left = usize::from(end == SpotEnd::Stopped);
        assert_eq!(
            (alive(&harness), harness.emulator().oracle().disks.len()),
            (left, left)
        );
        if end == SpotEnd::Stopped {
            let again = gcp.start_instance(&id).await.unwrap();
            assert_ne!(again.state, CloudInstanceState::Stopped, "{ended:?}");
        }
    }
}

#[tokio::test]
async fn trap_05_stop_ends_with_the_instance_state_not_its_operation() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.stop_done_early = true;
        knobs.timing.stop = HOUR;
    });
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    let done = || {
        let operations = harness.emulator().oracle().operations;
        let stop = operations.iter().find(|one| one.operation_type == "stop");
        stop.unwrap().status == "DONE"
    };
    while !done() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Stopping);
    harness.emulator().advance(HOUR);
    wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
}

#[tokio::test]
async fn trap_06_stop_discards_local_ssds_only_if_allowed() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut launch = GcpHarness::launch_config();
    launch.local_ssds = 1;
    let keeps_ssds = harness.open_with(launch.clone()).await;
    let mut config = harness.config();
    config.instance_type = "n2-standard-2".parse().unwrap();
    let id = keeps_ssds.launch_instance(&config).await.unwrap().id;
    wait_for_state(&keeps_ssds, &id, CloudInstanceState::Running).await;
    let error = keeps_ssds.stop_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(
        error.message().contains("discard_local_ssds"),
        "it says what to do: {error}"
    );
    let mut options = harness.options();
    options.discard_local_ssds = true;
    let discards_ssds = harness.open_with_options(launch, options).await;
    discards_ssds.stop_instance(&id).await.unwrap();
    wait_for_state(&discards_ssds, &id, CloudInstanceState::Stopped).await;
}

#[tokio::test]
async fn trap_07_stopping_instance_cannot_be_started() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.stop = HOUR);
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    let error = gcp.start_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.retry().delay().is_some(), "{error}");
    harness.emulator().advance(HOUR);
    wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    gcp.start_instance(&id).await.unwrap();
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn trap_08_stop_changes_the_external_address_only() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    let before = wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    let stopped = wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    assert_eq!(stopped.public_ip, None);
    gcp.start_instance(&id).await.unwrap();
    let after = wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    assert!(before.public_ip.is_some() && after.public_ip.is_some());
    assert_ne!(before.public_ip, after.public_ip);
    assert_eq!(before.private_ip, after.private_ip);
}

#[tokio::test]
async fn suspended_instance_is_started_by_a_resume() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    harness
        .emulator()
        .perform_external(ExternalAction::Suspend {
            instance: path_of(&id),
        })
        .unwrap();
    let off = wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    assert_eq!(off.native_state.as_deref(), Some("SUSPENDED"));
    gcp.start_instance(&id).await.unwrap();
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    assert_eq!(harness.call_count(Method::InstancesResume.name()), 1);
}

#[tokio::test]
async fn terminated_instance_is_reported_despite_a_stale_read() {
    let window = Duration::from_secs(5);
    let harness = GcpHarness::with_knobs(|knobs| knobs.lag.reads = window);
    let mut options = harness.options();
    options.consistency_window = window * 2;
    let open = || harness.open_with_options(GcpHarness::launch_config(), options.clone());
    let gcp = open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&gcp, &id, CloudInstanceState::Running).await;
    harness.emulator().advance(HOUR);
    harness
        .emulator()
        .perform_external(ExternalAction::Delete {
            instance: path_of(&id),
        })
        .unwrap();
    let is_deleted = || {
        let operations = harness.emulator().oracle().operations;
        let delete = operations.iter().find(|one| one.operation_type == "delete");
        delete.is_some_and(|one| one.status == "DONE")
    };
    while !is_deleted() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Another handle, which did not launch it, and whose first read is from before the deletion.
    let stale = FaultRule::nth(Method::InstancesGet, 1, Fault::StaleRead);
    harness.emulator().add_fault(stale);
    let error = open().await.start_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
}
