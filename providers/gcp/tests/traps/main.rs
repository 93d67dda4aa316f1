//! What Compute Engine does to the unwary, each trap with the test that shows how we get past it. The
//! README has the list; [`every_trap_is_accounted_for`] compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

#[path = "../emulated/mod.rs"]
mod emulated;
mod errors;
mod identity;
mod names;
mod operations;
mod states;
mod tags;
mod tokens;
mod zones;

use std::time::Duration;

use emulated::GcpHarness;
use fleetwright_contract_tests::check_traps;
use fleetwright_provider_testkit::broken_responses::{config_with_token, wait_for_state};
use fleetwright_provider_testkit::canned_responses::{self, Reply};

/// Longer than any test: what takes this long is over when a test lets it pass.
const HOUR: Duration = Duration::from_secs(3600);

/// Answers every request by its path, for what the emulator never does.
fn serve(answer: impl Fn(&str) -> Reply + Send + 'static) -> String {
    canned_responses::serve(move |request| answer(&request.path)).unwrap()
}

/// How many instances there are.
fn alive(harness: &GcpHarness) -> usize {
    harness.emulator().oracle().instances.len()
}

#[test]
fn every_trap_is_accounted_for() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 42);
}
