//! Known pitfalls of Azure, each with the test that shows how the provider handles it. The README has the
//! list; [`readme_lists_every_trap`] compares.
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
mod late;
mod lists;
mod omissions;
mod operations;
mod parts;
mod states;
mod throttling;
mod tokens;

use std::time::Duration;

use fleetwright_azure::fleetwright::{CloudInstanceState, InstanceId, InstanceProvisioner};

use emulated::AzureHarness;
use fleetwright_contract_tests::{Harness as _, check_traps};
use fleetwright_provider_testkit::broken_responses::{config_with_token, wait_for_state};

/// Longer than any test. A test advances the emulator's clock by it.
const HOUR: Duration = Duration::from_secs(3600);

/// Launches a machine and waits until it runs.
async fn running(harness: &AzureHarness, azure: &dyn InstanceProvisioner) -> InstanceId {
    let launched = azure.launch_instance(&harness.config()).await.unwrap();
    wait_for_state(azure, &launched.id, CloudInstanceState::Running).await;
    launched.id
}

/// Counts machines, interfaces, disks and public addresses.
fn count_resources(harness: &AzureHarness) -> [usize; 4] {
    let oracle = harness.emulator().oracle();
    [
        oracle.vms.len(),
        oracle.nics.len(),
        oracle.disks.len(),
        oracle.public_ips.len(),
    ]
}

/// Waits until all of them are deleted.
async fn wait_until_deleted(harness: &AzureHarness) {
    for _ in 0..6000 {
        if count_resources(harness) == [0; 4] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there still is {:?}", count_resources(harness));
}

#[test]
fn readme_lists_every_trap() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 51);
}
