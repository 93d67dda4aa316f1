//! The declared numbers of native calls are those that the emulator counts.

mod emulated;

use emulated::Ec2Harness;
use fleetwright_ec2::Ec2Options;
use fleetwright_provider_testkit::native_costs::check_native_costs;

#[tokio::test]
async fn operations_send_as_many_calls_as_declared() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut options = harness.options();
    options.page_size = Ec2Options::default().page_size;
    check_native_costs(&harness, &options, &[]).await;
}
