//! A process that launches or terminates is killed at every request that it sends, and another one goes on from what is left.

mod emulated;

use emulated::{GcpHarness, launching_at};
use fleetwright_gcp::{GcpOptions, fleetwright};
use fleetwright_provider_testkit::kills::{Kills, Orders};

/// What the processes do that are killed. In the test program itself there is nothing to do.
#[tokio::test]
async fn a_child_obeys() -> Result<(), fleetwright::ProvisionError> {
    let Some(orders) = Orders::of_this_process() else {
        return Ok(());
    };
    let handle = launching_at(&orders.endpoint, GcpOptions::default()).await;
    orders.obey(&handle).await
}

#[tokio::test]
async fn whatever_is_killed_leaves_one_machine_that_is_found_again() {
    let harness = GcpHarness::new();
    let kills = Kills {
        endpoint: harness.emulator().endpoint(),
        harness: &harness,
        child: "a_child_obeys",
    };
    let killed = kills
        .sweep()
        .await
        .unwrap_or_else(|found| panic!("{found}"));
    // A launch is a request at least, and is struck before its effect and after it; so is a termination.
    assert!(
        killed.launching >= 2 && killed.terminating >= 2,
        "{killed:?}"
    );
}
