//! Ownership of names.

use std::num::NonZeroU32;

use fleetwright_azure::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, InstanceType, LaunchRecord, Scope,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{ExternalAction, Fault, FaultRule, Operation, Phase};

use crate::{
    config_with_token, count_resources,
    emulated::{AzureHarness, path_of},
    wait_for_state, wait_until_deleted,
};

#[tokio::test]
async fn trap_20_token_with_another_config_changes_nothing() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let id = azure.launch_instance(&config).await.unwrap().id;
    let before = harness.only_instance();
    let mut other = config.clone();
    other.instance_type = InstanceType::new("Standard_B2s").unwrap();
    // Another handle, with an empty memory.
    let azure = harness.open().await;
    let error = azure.launch_instance(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    assert_eq!(harness.only_instance().size, before.size);
    assert_eq!(harness.call_count("VirtualMachines_CreateOrUpdate"), 1);
    assert_eq!(azure.launch_instance(&config).await.unwrap().id, id);
    // A machine that the first read misses is not changed either.
    let hidden = Fault::Refused {
        status: 404,
        code: "ResourceNotFound".to_owned(),
        message: "not yet".to_owned(),
    };
    let get = Operation::VirtualMachinesGet;
    harness.emulator().add_fault(FaultRule::nth(get, 1, hidden));
    let error = azure.launch_instance(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
    assert_eq!(
        harness
            .latest_call("VirtualMachines_CreateOrUpdate")
            .parameters["if-none-match"],
        "*"
    );
    assert_eq!(harness.only_instance().size, before.size);
}

#[tokio::test]
async fn trap_21_machine_of_another_owner_is_not_adopted() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let id = azure.launch_instance(&config).await.unwrap().id;
    let tags = [("owner".to_owned(), "somebody else".to_owned())].into();
    let take = ExternalAction::SetTags {
        id: path_of(&id),
        tags,
    };
    harness.emulator().perform_external(take).unwrap();
    let azure = harness.open().await;
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(matches!(error.scopes()[0], Scope::Instance(_)), "{error}");
    let token = config.launch_token.as_ref().unwrap();
    assert_eq!(
        azure.find_launch(token).await.unwrap(),
        LaunchRecord::NotFound
    );
    assert_eq!(count_resources(&harness)[0], 1);
}

#[tokio::test]
async fn old_id_does_not_affect_the_new_machine_of_that_name() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let old = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*azure, &old, CloudInstanceState::Running).await;
    azure.terminate_instance(&old).await.unwrap();
    wait_until_deleted(&harness).await;
    let new = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*azure, &new, CloudInstanceState::Running).await;
    assert_eq!(path_of(&old), path_of(&new));
    assert_ne!(old, new);
    let status = azure.describe_instance(&old).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminated);
    azure.terminate_instance(&old).await.unwrap();
    let error = azure.stop_instance(&old).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
    wait_for_state(&*azure, &new, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn batch_stops_if_its_first_machine_is_refused() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let create = Operation::VirtualMachinesCreateOrUpdate;
    harness
        .emulator()
        .add_fault(FaultRule::nth(create, 1, Fault::Quota));
    let three = NonZeroU32::new(3).unwrap();
    let error = azure.launch_instances(&config, three).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
    assert_eq!(count_resources(&harness)[0], 0);
    assert_eq!(
        azure.launch_instances(&config, three).await.unwrap().len(),
        3
    );
    // The token belongs to the batch, and a single launch is another config.
    let azure = harness.open().await;
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenConflict, "{error}");
}

#[tokio::test]
async fn launch_is_found_after_a_crash() {
    for phase in [Phase::Before, Phase::After] {
        let harness = AzureHarness::with_knobs(|_| {});
        let config = config_with_token(&harness, "t-1");
        let create = Operation::VirtualMachinesCreateOrUpdate;
        let lost = Fault::Lost { phase };
        harness
            .emulator()
            .add_fault(FaultRule::nth(create, 1, lost));
        let dying = harness.open().await;
        dying.launch_instance(&config).await.unwrap_err();
        drop(dying);
        let azure = harness.open().await;
        let token = config.launch_token.as_ref().unwrap();
        let seen = azure.find_launch(token).await.unwrap();
        assert_eq!(
            seen == LaunchRecord::NotFound,
            phase == Phase::Before,
            "{seen:?}"
        );
        azure.launch_instance(&config).await.unwrap();
        assert_eq!(count_resources(&harness)[0], 1);
    }
}
