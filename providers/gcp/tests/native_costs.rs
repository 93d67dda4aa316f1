//! The declared numbers of native calls are those that the emulator counts.

mod emulated;

use emulated::GcpHarness;
use fleetwright_gcp::GcpOptions;
use fleetwright_provider_testkit::native_costs::check_native_costs;

#[tokio::test]
async fn operations_send_as_many_calls_as_declared() {
    for remember_spent_tokens in [false, true] {
        let harness = GcpHarness::with_knobs(|_| {});
        let mut options = harness.options();
        options.page_size = GcpOptions::default().page_size;
        options.remember_spent_tokens = remember_spent_tokens;
        let polls = [
            "zoneOperations.get",
            "zoneOperations.wait",
            "globalOperations.wait",
        ];
        check_native_costs(&harness, &options, &polls).await;
    }
}
