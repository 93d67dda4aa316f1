//! Known pitfalls of Compute Engine, each with the test that shows how the provider handles it. The
//! README has the list; [`readme_lists_every_trap`] compares.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod bulk;
#[path = "../emulated/mod.rs"]
mod emulated;
mod errors;
mod history;
mod identity;
mod late;
mod names;
mod operations;
mod quota;
mod states;
mod tags;
mod tokens;
mod twins;
mod zones;

use std::time::Duration;

use emulated::{GcpHarness, PROJECT, ZONES};
use fleetwright_contract_tests::check_traps;
use fleetwright_emulators::gcp::ExternalAction;
use fleetwright_provider_testkit::broken_responses::{config_with_token, wait_for_state};
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse};

/// Longer than any test. A test advances the emulator's clock by it.
const HOUR: Duration = Duration::from_secs(3600);

/// Serves a response to the path of each request, for responses that the emulator never sends.
fn serve(respond_to: impl Fn(&str) -> CannedResponse + Send + 'static) -> String {
    canned_responses::serve(move |request| respond_to(&request.path)).unwrap()
}

/// Returns how many instances there are.
fn alive(harness: &GcpHarness) -> usize {
    harness.emulator().oracle().instances.len()
}

/// Launches a second instance with the name and the marks of the only one, in the second zone, as another process would.
fn launch_twin(harness: &GcpHarness) {
    let first = harness.only_instance();
    let twin = ExternalAction::LaunchExternal {
        project: PROJECT.to_owned(),
        zone: Some(ZONES[1].to_owned()),
        name: Some(first.name),
        machine_type: None,
        count: 1,
        labels: first.labels,
        metadata: first.metadata,
    };
    harness.emulator().perform_external(twin).unwrap();
}

#[test]
fn readme_lists_every_trap() {
    check_traps(env!("CARGO_MANIFEST_DIR"), 49);
}
