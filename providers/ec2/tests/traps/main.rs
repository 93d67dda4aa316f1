//! Known pitfalls of EC2, each with the test that shows how the provider handles it. The README has the
//! list; [`readme_lists_every_trap`] compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod account;
mod batches;
mod capacity;
mod changes;
mod configs;
#[path = "../emulated/mod.rs"]
mod emulated;
mod fallback;
mod identity;
mod images;
mod lag;
mod late;
mod lifecycle;
mod parts;
mod refusals;
mod replays;
mod tokens;

use emulated::Ec2Harness;
use fleetwright_contract_tests::{Harness as _, check_traps};
use fleetwright_ec2::fleetwright::{InstanceConfig, InstanceProvisioner as _, ProvisionError};
use fleetwright_provider_testkit::broken_responses::{config_with_token, wait_for_state};

/// Launches on a new handle and returns the error.
async fn launch_error(harness: &Ec2Harness, config: &InstanceConfig) -> ProvisionError {
    let launched = harness.open().await.launch_instance(config).await;
    launched.unwrap_err()
}

/// Returns how many instances are not terminated.
fn alive(harness: &Ec2Harness) -> usize {
    let oracle = harness.emulator().oracle();
    oracle
        .instances
        .iter()
        .filter(|truth| truth.state != "terminated")
        .count()
}

#[test]
fn readme_lists_every_trap() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 61);
}
