//! The background cleanup without a client: what it tracks, and when its task runs and ends.

use super::*;
use crate::machine::Status;

fn machine(vm_id: &str) -> Machine {
    Machine {
        path: format!("/Machines/{vm_id}"),
        vm_id: vm_id.to_owned(),
        ..Machine::default()
    }
}

fn enabled() -> AzureCleanup {
    AzureCleanup {
        state: Arc::new(watch::Sender::new(State::default())),
    }
}

#[tokio::test(start_paused = true)]
async fn one_task_tracks_all_creations_until_none_is_open() {
    let (cleanup, window) = (enabled(), Duration::from_secs(20));
    assert!(cleanup.track(machine("a")));
    for vm_id in ["b", "c", "d", "f"] {
        assert!(!cleanup.track(machine(vm_id)), "a task runs already");
    }
    let statuses: Statuses = [
        ("a", "ProvisioningState/failed/AllocationFailed"),
        ("b", "PowerState/running"),
        ("c", "ProvisioningState/creating"),
        ("f", "ProvisioningState/failed"),
    ]
    .map(|(vm_id, code)| {
        let mut machine = machine(vm_id);
        machine.statuses = vec![Status {
            code: code.to_owned(),
            message: None,
        }];
        if vm_id == "f" {
            // A list of states may leave it out.
            machine.vm_id.clear();
        }
        (format!("/machines/{vm_id}"), machine)
    })
    .into();
    let mut failed = cleanup.failed_creations(&statuses, window);
    failed.sort_by_key(|failed| failed.machine.vm_id.clone());
    let failed = failed
        .iter()
        .map(|failed| (failed.machine.vm_id.as_str(), failed.reason.text.as_str()));
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed, [("a", "AllocationFailed"), ("f", "")]);
    assert_eq!(
        cleanup.tracked(),
        4,
        "c, d which lists may not show yet, a and f until they are deleted"
    );
    cleanup.untrack("a");
    cleanup.untrack("f");
    tokio::time::sleep(window * 3).await;
    // Several passes in a row must miss a machine.
    for tracked in [2, 1] {
        cleanup.failed_creations(&statuses, window);
        assert!(cleanup.continue_running());
        assert_eq!(cleanup.tracked(), tracked);
    }
    tokio::time::sleep(TRACKED_FOR).await;
    assert!(!cleanup.continue_running());
    assert!(cleanup.track(machine("e")), "another task must be started");
}

#[tokio::test(start_paused = true)]
async fn shutdown_reports_open_creations_and_tracks_no_more() {
    let cleanup = enabled();
    assert!(cleanup.track(machine("a")));
    // The runtime drops the task, or the task sees the stop.
    drop(EndedOnDrop {
        handle: cleanup.clone(),
        armed: true,
    });
    assert_eq!(cleanup.shutdown().await, 1);
    assert!(!cleanup.track(machine("b")));
    assert_eq!((cleanup.tracked(), cleanup.is_running()), (0, false));
    cleanup.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn task_dropped_by_its_runtime_is_started_again_by_the_next_creation() {
    let cleanup = enabled();
    assert!(cleanup.track(machine("a")));
    drop(EndedOnDrop {
        handle: cleanup.clone(),
        armed: true,
    });
    assert!(cleanup.track(machine("b")));
    assert_eq!(cleanup.tracked(), 2);
}
