//! The declared numbers of native calls are those that the emulator counts.

mod emulated;

use emulated::GcpHarness;
use fleetwright_gcp::GcpOptions;
use fleetwright_gcp::fleetwright::Operation;
use fleetwright_provider_testkit::native_costs::check_native_costs;

#[tokio::test]
async fn operations_send_as_many_calls_as_declared() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.page_size = GcpOptions::default().page_size;
    let launch = GcpHarness::launch_config();
    let handle = harness.open_with_options(launch, options).await;
    check_native_costs(
        &harness,
        &handle,
        &[
            Operation::LaunchInstance,
            Operation::LaunchInstances,
            Operation::StartInstance,
            Operation::StartInstances,
            Operation::UpdateTags,
            Operation::RebootInstance,
        ],
    )
    .await;
}
