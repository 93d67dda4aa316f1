//! The parts of a machine, and the remains of failed creations.

use fleetwright_azure::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, LaunchRecord,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Capacity, ExternalAction, LateFailure};

use crate::{
    HOUR, config_with_token, count_resources,
    emulated::{AzureHarness, path_of},
    running, wait_for_state, wait_until_deleted,
};

#[tokio::test]
async fn trap_06_remains_of_a_failed_creation_are_deleted() {
    let harness =
        AzureHarness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(0)]).wait_for_launch();
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None),
        "{error}"
    );
    wait_until_deleted(&harness).await;
    // Without a wait, the background cleanup deletes it and keeps the reason.
    let mut options = harness.options();
    options.launch_wait = std::time::Duration::ZERO;
    let without_wait = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let id = without_wait.launch_instance(&config).await.unwrap().id;
    let ended = wait_for_state(&without_wait, &id, CloudInstanceState::Terminated).await;
    let reason = ended.state_reason.unwrap();
    assert!(reason.starts_with("AllocationFailed"), "{reason}");
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn remains_of_a_failed_creation_are_deleted_by_terminate_and_replay() {
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        (knobs.timing.boot, knobs.timing.shortage) = (HOUR, std::time::Duration::ZERO);
    });
    let harness = std::sync::Arc::new(harness);
    let config = config_with_token(&*harness, "t-1");
    for how in ["terminate", "replay"] {
        // The launching process ends before the creation fails.
        let (other_harness, wanted) = (std::sync::Arc::clone(&harness), config.clone());
        let process = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let launch = async { other_harness.open().await.launch_instance(&wanted).await };
            runtime.unwrap().block_on(launch).unwrap().id
        });
        let id = process.join().unwrap();
        let azure = harness.open().await;
        let pending = azure.describe_instance(&id).await.unwrap();
        assert_eq!(pending.state, CloudInstanceState::Pending);
        harness.emulator().advance(HOUR);
        if how == "terminate" {
            azure.terminate_instance(&id).await.unwrap();
            wait_until_deleted(&harness).await;
            let terminated = wait_for_state(&*azure, &id, CloudInstanceState::Terminated).await;
            assert!(terminated.state_reason.is_some());
            continue;
        }
        let mut knobs = harness.emulator().knobs();
        knobs.late_failures.clear();
        knobs.timing.boot = std::time::Duration::from_millis(5);
        harness.emulator().set_knobs(knobs);
        let again = azure.launch_instance(&config).await.unwrap().id;
        assert_ne!(again, id);
        wait_for_state(&*azure, &again, CloudInstanceState::Running).await;
        assert_eq!(count_resources(&harness), [1, 1, 1, 1]);
    }
}

#[tokio::test]
async fn trap_08_parts_are_deleted_with_their_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    assert_eq!(count_resources(&harness), [1, 1, 1, 1]);
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
    let terminated = wait_for_state(&*azure, &id, CloudInstanceState::Terminated).await;
    assert_eq!(
        terminated.state_reason.as_deref(),
        Some("gone: no record kept")
    );
}

#[tokio::test]
async fn trap_09_every_part_has_the_delete_option() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    azure.launch_instance(&harness.config()).await.unwrap();
    let sent = harness
        .latest_call("VirtualMachines_CreateOrUpdate")
        .parameters;
    let nic = "body.properties.networkProfile.networkInterfaceConfigurations.0.properties";
    assert_eq!(sent[&format!("{nic}.deleteOption")], "Delete");
    let address = &sent[&format!("{nic}.ipConfigurations.0.properties")];
    assert!(address.contains(r#""deleteOption":"Delete""#), "{address}");
    assert_eq!(
        sent["body.properties.storageProfile.osDisk.deleteOption"],
        "Delete"
    );
}

#[tokio::test]
async fn trap_11_launch_after_a_failed_one_does_not_wait_for_its_interface() {
    let harness =
        AzureHarness::with_knobs(|knobs| knobs.capacity = vec![Capacity::of(0)]).wait_for_launch();
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    azure.launch_instance(&config).await.unwrap_err();
    wait_until_deleted(&harness).await;
    let mut knobs = harness.emulator().knobs();
    assert!(knobs.timing.nic_reservation > std::time::Duration::from_secs(100));
    knobs.capacity.clear();
    harness.emulator().set_knobs(knobs);
    let token = config.launch_token.as_ref().unwrap();
    assert_eq!(
        azure.find_launch(token).await.unwrap(),
        LaunchRecord::NotFound
    );
    let id = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn trap_12_one_call_creates_machine_and_parts() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    azure.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(count_resources(&harness), [1, 1, 1, 1]);
    let calls = harness.emulator().oracle().calls;
    let changes = calls
        .iter()
        .filter(|(name, _)| name.ends_with("CreateOrUpdate"));
    let changes: Vec<_> = changes.collect();
    assert_eq!(
        changes,
        [(&"VirtualMachines_CreateOrUpdate".to_owned(), &1)]
    );
}

#[tokio::test]
async fn machine_deleted_by_another_actor_is_terminated() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    let delete = ExternalAction::Delete { id: path_of(&id) };
    harness.emulator().perform_external(delete).unwrap();
    wait_for_state(&*azure, &id, CloudInstanceState::Terminated).await;
    azure.terminate_instance(&id).await.unwrap();
    let error = azure.start_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
}
