//! What EC2 does to the unwary, each trap with the test that shows how we get past it. The README has
//! the list; [`every_trap_is_accounted_for`] compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod batches;
mod capacity;
mod configs;
#[path = "../emulated/mod.rs"]
mod emulated;
mod identity;
mod lifecycle;
mod tokens;

use std::time::Duration;

use fleetwright_ec2::fleetwright::{
    CloudInstanceState, InstanceConfig, InstanceId, InstanceProvisioner, InstanceStatus,
    wait::{self, WaitPolicy},
};

use emulated::Ec2Harness;
use fleetwright_contract_tests::{Harness as _, check_traps};

/// Waits until an instance is in a state.
async fn until(
    ec2: &dyn InstanceProvisioner,
    id: &InstanceId,
    state: CloudInstanceState,
) -> InstanceStatus {
    let tick = Duration::from_millis(10);
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(tick, tick * 4);
    let ids = std::slice::from_ref(id);
    let reached = wait::for_state(ec2, ids, state, &policy).await;
    reached.unwrap().remove(0)
}

/// The harness's config with a token.
fn with_token(harness: &Ec2Harness, token: &str) -> InstanceConfig {
    let mut config = harness.config();
    config.launch_token = Some(token.parse().unwrap());
    config
}

/// How many instances are not terminated.
fn alive(harness: &Ec2Harness) -> usize {
    let oracle = harness.emulator().oracle();
    oracle
        .instances
        .iter()
        .filter(|truth| truth.state != "terminated")
        .count()
}

#[test]
fn every_trap_is_accounted_for() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 44);
}
