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

use emulated::Ec2Harness;
use fleetwright_contract_tests::check_traps;
use fleetwright_provider_testkit::broken_responses::{config_with_token, wait_for_state};

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
