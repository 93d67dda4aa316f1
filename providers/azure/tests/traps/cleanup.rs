//! The background cleanup: it runs while it is owned and switched on, and ends with its owner.

use std::{num::NonZeroU32, time::Duration};

use fleetwright_azure::fleetwright::{CloudInstanceState, InstanceProvisioner as _};
use fleetwright_contract_tests::Harness as _;

use crate::{
    HOUR, config_with_token, count_resources,
    emulated::AzureHarness,
    failures::{failing, until_calls},
    wait_for_state, wait_until_deleted,
};

/// Many passes of the cleanup, with the harness's poll interval.
const PASSES: Duration = Duration::from_millis(300);

#[tokio::test]
async fn cleanup_runs_until_it_is_idle_and_ends_on_shutdown() {
    let harness = failing();
    let azure = harness.open_with(AzureHarness::launch_config()).await;
    let cleanup = azure.cleanup();
    assert!(!cleanup.is_running(), "nothing to do yet");
    let two = NonZeroU32::new(2).unwrap();
    azure
        .launch_instances(&harness.config(), two)
        .await
        .unwrap();
    assert_eq!((cleanup.tracked(), cleanup.is_running()), (2, true));
    harness.emulator().advance(HOUR);
    cleanup.wait_idle().await;
    assert_eq!(cleanup.shutdown().await, 0, "both are being deleted");
    assert!(!cleanup.is_running());
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn cleanup_sends_nothing_after_shutdown() {
    let harness = failing();
    let azure = harness.open_with(AzureHarness::launch_config()).await;
    let cleanup = azure.cleanup();
    let config = config_with_token(&harness, "t-1");
    let id = azure.launch_instance(&config).await.unwrap().id;
    until_calls(&harness, "VirtualMachines_ListAll", 2).await;
    assert_eq!(cleanup.shutdown().await, 1);
    cleanup.wait_idle().await;
    let calls = harness.emulator().calls().len();
    harness.emulator().advance(HOUR);
    tokio::time::sleep(PASSES).await;
    assert_eq!(harness.emulator().calls().len(), calls);
    assert_eq!(
        count_resources(&harness)[0],
        1,
        "the failed machine remains"
    );
    // It is still found, and a terminate deletes it.
    let failed = azure.describe_instance(&id).await.unwrap();
    assert_eq!(failed.state, CloudInstanceState::Terminating);
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
    // Launches after a shutdown work, and are not tracked.
    azure.launch_instance(&harness.config()).await.unwrap();
    assert_eq!((cleanup.tracked(), cleanup.is_running()), (0, false));
}

#[tokio::test]
async fn cleanup_ends_when_its_provisioner_is_dropped() {
    let harness = failing();
    let azure = harness.open_with(AzureHarness::launch_config()).await;
    let cleanup = azure.cleanup();
    azure.launch_instance(&harness.config()).await.unwrap();
    assert!(cleanup.is_running());
    drop(azure);
    while cleanup.is_running() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let calls = harness.emulator().calls().len();
    harness.emulator().advance(HOUR);
    tokio::time::sleep(PASSES).await;
    assert_eq!(harness.emulator().calls().len(), calls);
    assert_eq!(
        count_resources(&harness)[0],
        1,
        "the failed machine remains"
    );
}

#[tokio::test]
async fn cleanup_does_not_run_when_it_is_switched_off() {
    let harness = failing();
    let mut options = harness.options();
    options.background_cleanup = false;
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let cleanup = azure.cleanup();
    let config = config_with_token(&harness, "t-1");
    azure.launch_instance(&config).await.unwrap();
    assert_eq!((cleanup.tracked(), cleanup.is_running()), (0, false));
    cleanup.wait_idle().await;
    harness.emulator().advance(HOUR);
    tokio::time::sleep(PASSES).await;
    assert_eq!(harness.call_count("VirtualMachines_ListAll"), 0);
    assert_eq!(
        count_resources(&harness)[0],
        1,
        "the failed machine remains"
    );
    // A replay deletes it, and creates the instance.
    let mut knobs = harness.emulator().knobs();
    knobs.late_failures.clear();
    knobs.timing.boot = Duration::from_millis(5);
    harness.emulator().set_knobs(knobs);
    let id = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&azure, &id, CloudInstanceState::Running).await;
    assert_eq!(count_resources(&harness)[0], 1);
}
