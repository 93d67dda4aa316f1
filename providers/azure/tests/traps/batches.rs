//! Batches: individual results with a shared number of calls.

use std::num::NonZeroU32;

use fleetwright_azure::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceId, InstanceProvisioner, LaunchRecord,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{ExternalAction, Failure, Fault, FaultRule, Operation};

use crate::{
    HOUR, config_with_token,
    emulated::{AzureHarness, path_of},
    wait_for_state, wait_until_deleted,
};

/// Launches that many running machines.
async fn fleet(
    harness: &AzureHarness,
    azure: &dyn InstanceProvisioner,
    count: u32,
) -> Vec<InstanceId> {
    let config = config_with_token(harness, "fleet-1");
    let count = NonZeroU32::new(count).unwrap();
    let launched = azure.launch_instances(&config, count).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    for id in &ids {
        wait_for_state(azure, id, CloudInstanceState::Running).await;
    }
    ids
}

#[tokio::test]
async fn failed_read_of_one_machine_does_not_affect_others() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let ids = fleet(&harness, &*azure, 5).await;
    // Another machine has the name of the second one, so it is read by name, which fails.
    harness
        .emulator()
        .perform_external(ExternalAction::Delete {
            id: path_of(&ids[1]),
        })
        .unwrap();
    wait_for_state(&*azure, &ids[1], CloudInstanceState::Terminated).await;
    let azure = harness.open().await;
    let config = config_with_token(&harness, "fleet-1");
    let five = NonZeroU32::new(5).unwrap();
    azure.launch_instances(&config, five).await.unwrap();
    let get = Operation::VirtualMachinesGet;
    let broken = Fault::ServerError {
        phase: fleetwright_emulators::azure::Phase::Before,
    };
    harness.emulator().add_fault(FaultRule::always(get, broken));
    let described = azure.describe_instances(&ids).await;
    let terminated = azure.terminate_instances(&ids).await;
    for at in [0, 2, 3, 4] {
        let status = described[at].as_ref().unwrap();
        assert_eq!(status.state, CloudInstanceState::Running);
        terminated[at].as_ref().unwrap();
    }
    let blind = [
        described[1].as_ref().unwrap_err(),
        terminated[1].as_ref().unwrap_err(),
    ];
    for error in blind {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert_eq!(blind[1].effect(), Effect::None);
}

#[tokio::test]
async fn known_end_of_machines_needs_no_call_each() {
    for skewed in [false, true] {
        let harness = AzureHarness::with_knobs(|_| {});
        if skewed {
            harness.emulator().advance(HOUR);
        }
        let azure = harness.open().await;
        let ids = fleet(&harness, &*azure, 8).await;
        for result in azure.terminate_instances(&ids).await {
            result.unwrap();
        }
        wait_until_deleted(&harness).await;
        harness.emulator().advance(HOUR);
        // Lists prove the end of what this handle has deleted. Another handle needs GETs of each, once.
        let other = harness.open().await;
        for (handle, expected) in [(&azure, [0, 0]), (&other, [3 * 8, 0])] {
            let mut sent = Vec::new();
            for _ in 0..2 {
                let before = harness.call_count("VirtualMachines_Get");
                for status in handle.describe_instances(&ids).await {
                    assert_eq!(status.unwrap().state, CloudInstanceState::Terminated);
                }
                sent.push(harness.call_count("VirtualMachines_Get") - before);
            }
            assert_eq!(sent, expected, "{skewed}");
        }
    }
}

#[tokio::test]
async fn batch_with_ended_machines_shows_the_addresses_of_the_others() {
    for living in 1..=4 {
        let harness = AzureHarness::with_knobs(|_| {});
        let azure = harness.open().await;
        let ids = fleet(&harness, &*azure, 5).await;
        let (living_ids, deleted_ids) = ids.split_at(living);
        for result in azure.terminate_instances(deleted_ids).await {
            result.unwrap();
        }
        for id in deleted_ids {
            wait_for_state(&*azure, id, CloudInstanceState::Terminated).await;
        }
        let described = azure.describe_instances(&ids).await;
        for (id, status) in living_ids.iter().zip(&described) {
            let alone = azure.describe_instance(id).await.unwrap();
            assert!(alone.private_ip.is_some() && alone.public_ip.is_some());
            assert_eq!(status.as_ref().unwrap(), &alone, "{living}");
        }
    }
}

#[tokio::test]
async fn machines_without_address_need_no_address_list() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let ids = fleet(&harness, &*azure, 6).await;
    let mut knobs = harness.emulator().knobs();
    knobs.timing.delete = HOUR;
    harness.emulator().set_knobs(knobs);
    azure.terminate_instance(&ids[0]).await.unwrap();
    let azure = harness.open().await;
    let refused = Fault::Throttled {
        retry_after_secs: Some(7),
    };
    let list = Operation::NetworkInterfacesList;
    harness
        .emulator()
        .add_fault(FaultRule::always(list, refused));
    let described = azure.describe_instances(&ids).await;
    let deleting = described[0].as_ref().unwrap();
    assert_eq!(deleting.state, CloudInstanceState::Terminating);
    for result in &described[1..] {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    }
}

#[tokio::test]
async fn find_launch_of_a_batch_needs_no_call_per_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let ids = fleet(&harness, &*azure, 8).await;
    let azure = harness.open().await;
    let before = harness.call_count("NetworkInterfaces_Get");
    let config = config_with_token(&harness, "fleet-1");
    let eight = NonZeroU32::new(8).unwrap();
    let again = azure.launch_instances(&config, eight).await.unwrap();
    let found = azure
        .find_launch(config.launch_token.as_ref().unwrap())
        .await
        .unwrap();
    assert_eq!(harness.call_count("NetworkInterfaces_Get"), before);
    let LaunchRecord::Found(found) = found else {
        panic!("{found:?}")
    };
    for infos in [again, found] {
        assert_eq!(infos.len(), ids.len());
        assert!(infos.iter().all(|info| info.private_ip.is_some()));
    }
}

#[tokio::test]
async fn batch_start_needs_few_calls_and_reports_missing_capacity() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.launch_wait = std::time::Duration::from_millis(200);
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let ids = fleet(&harness, &azure, 8).await;
    for result in azure.stop_instances(&ids).await {
        result.unwrap();
    }
    for id in &ids {
        wait_for_state(&azure, id, CloudInstanceState::Stopped).await;
    }
    let failing = Fault::OperationError {
        errors: vec![Failure::new("AllocationFailed", "no")],
    };
    let start = Operation::VirtualMachinesStart;
    harness
        .emulator()
        .add_fault(FaultRule::nth(start, 3, failing));
    let names = [
        "VirtualMachines_Start",
        "Operations_Get",
        "VirtualMachines_Get",
        "NetworkInterfaces_Get",
    ];
    let before = names.map(|name| harness.call_count(name));
    let started = azure.start_instances(&ids).await;
    let after = names.map(|name| harness.call_count(name));
    let sent: Vec<_> = after.iter().zip(before).map(|(a, b)| a - b).collect();
    assert_eq!(sent, [8, 8, 0, 0]);
    let (good, bad): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (7, 1));
    let error = bad[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    for info in good {
        let info = info.unwrap();
        assert_ne!(info.state, CloudInstanceState::Stopped);
        assert!(info.image.is_some() && info.launch_time.is_some());
    }
}
