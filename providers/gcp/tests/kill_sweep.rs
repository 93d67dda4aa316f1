//! Kills a launching or terminating process at every request that it sends, and lets another process continue.

mod emulated;

use emulated::GcpHarness;
use fleetwright_gcp::{GcpOptions, fleetwright};
use fleetwright_provider_testkit::kill_sweep::{ChildTask, check_kill_sweep};

/// The task of the killed processes. Does nothing in the test program itself.
#[tokio::test]
async fn child_runs_its_task() -> Result<(), fleetwright::ProvisionError> {
    let Some(task) = ChildTask::from_env() else {
        return Ok(());
    };
    let handle = GcpHarness::open_at(&task.endpoint, GcpOptions::default()).await;
    task.run(&handle).await
}

#[tokio::test]
async fn killed_process_leaves_one_instance_that_its_token_finds() {
    let harness = GcpHarness::new();
    let endpoint = harness.emulator().endpoint();
    check_kill_sweep(&harness, endpoint, "child_runs_its_task").await;
}
