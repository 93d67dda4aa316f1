//! Known pitfalls of Azure, each with the test that shows how the provider handles it. The README has the
//! list; [`every_trap_is_accounted_for`] compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod absence;
mod batches;
mod cleanup;
mod configs;
#[path = "../emulated/mod.rs"]
mod emulated;
mod errors;
mod failures;
mod hosts;
mod lists;
mod operations;
mod parts;
mod states;
mod throttling;
mod tokens;

use std::time::Duration;

use fleetwright_azure::fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceProvisioner, InstanceStatus,
    wait::{self, WaitPolicy},
};

use emulated::AzureHarness;
use fleetwright_contract_tests::{Harness as _, check_traps};

/// Longer than any test. A test advances the emulator's clock by it.
const HOUR: Duration = Duration::from_secs(3600);

/// Waits until an instance is in a state.
async fn until(
    azure: &dyn InstanceProvisioner,
    id: &InstanceId,
    state: CloudInstanceState,
) -> InstanceStatus {
    let tick = Duration::from_millis(10);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(tick, tick * 4);
    let ids = std::slice::from_ref(id);
    let reached = wait::for_state(azure, ids, state, &policy).await;
    reached.unwrap().remove(0)
}

/// Launches a machine and waits until it runs.
async fn running(harness: &AzureHarness, azure: &dyn InstanceProvisioner) -> InstanceId {
    let launched = azure.launch_instance(&harness.config()).await.unwrap();
    until(azure, &launched.id, CloudInstanceState::Running).await;
    launched.id
}

/// Returns the harness's config with a token.
fn with_token(harness: &AzureHarness, token: &str) -> InstanceConfig {
    let mut config = harness.config();
    config.launch_token = Some(token.parse().unwrap());
    config
}

/// Counts machines, interfaces, disks and public addresses.
fn there(harness: &AzureHarness) -> [usize; 4] {
    let oracle = harness.emulator().oracle();
    [
        oracle.vms.len(),
        oracle.nics.len(),
        oracle.disks.len(),
        oracle.public_ips.len(),
    ]
}

/// Waits until all of them are deleted.
async fn until_nothing(harness: &AzureHarness) {
    for _ in 0..6000 {
        if there(harness) == [0; 4] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there still is {:?}", there(harness));
}

#[test]
fn every_trap_is_accounted_for() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 46);
}
