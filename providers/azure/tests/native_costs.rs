//! The declared numbers of native calls are those that the emulator counts.

mod emulated;

use emulated::AzureHarness;
use fleetwright_azure::fleetwright::Operation;
use fleetwright_provider_testkit::native_costs::check_native_costs;

#[tokio::test]
async fn operations_send_as_many_calls_as_declared() {
    let harness = AzureHarness::with_knobs(|_| {});
    let handle = harness.open_with(AzureHarness::launch_config()).await;
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
