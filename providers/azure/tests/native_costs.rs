//! The declared numbers of native calls are those that the emulator counts.

mod emulated;

use std::time::Duration;

use emulated::AzureHarness;
use fleetwright_provider_testkit::native_costs::check_native_costs;

#[tokio::test]
async fn operations_send_as_many_calls_as_declared() {
    // A started machine has its addresses at once, so that reading them is part of every start.
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.boot = Duration::ZERO);
    let mut options = harness.options();
    // Its reads follow launches that have returned.
    options.background_cleanup = false;
    check_native_costs(&harness, &options, &["Operations_Get"]).await;
}
