//! Operations: deletes of missing machines, failures at once and later, expired links.

use std::time::Duration;

use fleetwright_azure::{
    AzureOptions,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, RetryAdvice, Scope,
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{
    Capacity, Failure, Fault, FaultRule, LateFailure, LimitCheck, Operation,
};

use crate::{
    HOUR, config_with_token, count_resources,
    emulated::{AzureHarness, path_of},
    running, wait_for_state, wait_until_deleted,
};

#[tokio::test]
async fn trap_18_delete_of_an_unknown_machine_differs_from_a_gone_one() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let error = azure.terminate_instance(&harness.unknown_id()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    let id = running(&harness, &*azure).await;
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
    azure.terminate_instance(&id).await.unwrap();
}

#[tokio::test]
async fn trap_19_running_delete_is_not_repeated() {
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.delete = HOUR);
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    for _ in 0..3 {
        azure.terminate_instance(&id).await.unwrap();
    }
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 1);
    let status = azure.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminating);
}

#[tokio::test]
async fn trap_22_capacity_and_quota_errors_are_returned_at_once_and_later() {
    for found in [LimitCheck::Immediate, LimitCheck::InOperation] {
        let harness = AzureHarness::with_knobs(|knobs| {
            knobs.capacity = vec![Capacity::of(0)];
            knobs.capacity_check = found;
        })
        .wait_for_launch();
        let azure = harness.open().await;
        let error = azure.launch_instance(&harness.config()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Capacity, Effect::None),
            "{error}"
        );
        assert!(
            matches!(error.scopes()[0], Scope::Offering { .. }),
            "{error}"
        );
        wait_until_deleted(&harness).await;

        let harness = AzureHarness::with_knobs(|knobs| {
            knobs.vcpu_quota = Some(0);
            knobs.quota_check = found;
        })
        .wait_for_launch();
        let azure = harness.open().await;
        let error = azure.launch_instance(&harness.config()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Quota, Effect::None),
            "{error}"
        );
        wait_until_deleted(&harness).await;
    }
}

#[tokio::test]
async fn trap_23_operations_are_polled_more_often_than_azure_suggests() {
    assert!(AzureOptions::default().poll_interval <= Duration::from_secs(5));
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.poll_after_secs = Some(3600);
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
    });
    // The first poll waits neither for `Retry-After` nor for the interval.
    let mut options = harness.options();
    (options.poll_interval, options.launch_wait) = (HOUR, HOUR);
    let launch = AzureHarness::launch_config();
    let azure = harness.open_with_options(launch, options).await;
    let config = harness.config();
    let launched = tokio::time::timeout(HOUR / 60, azure.launch_instance(&config)).await;
    let error = launched.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
}

#[tokio::test]
async fn failure_that_is_worth_a_retry_is_unavailable_and_leaves_nothing() {
    for code in [
        "InternalExecutionError",
        "NetworkingInternalOperationError",
        "RetryableError",
    ] {
        let harness = AzureHarness::with_knobs(|knobs| {
            knobs.late_failures = vec![LateFailure::new(code, "try again")];
        });
        let harness = harness.wait_for_launch();
        let azure = harness.open().await;
        let config = config_with_token(&harness, "t-1");
        let error = azure.launch_instance(&config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(error.effect(), Effect::None, "{error}");
        assert!(error.retry() != RetryAdvice::Never, "{error}");
        assert_eq!(error.native_code(), Some(code));
        wait_until_deleted(&harness).await;
        let mut knobs = harness.emulator().knobs();
        knobs.late_failures.clear();
        harness.emulator().set_knobs(knobs);
        let id = azure.launch_instance(&config).await.unwrap().id;
        wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
    }
}

#[tokio::test]
async fn trap_48_name_of_a_deleted_machine_is_used_again_once_azure_accepts_it() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.consistency_window = Duration::from_secs(60);
    let launch = AzureHarness::launch_config();
    let azure = harness.open_with_options(launch, options).await;
    let config = config_with_token(&harness, "t-1");
    let first = azure.launch_instance(&config).await.unwrap().id;
    azure.terminate_instance(&first).await.unwrap();
    wait_until_deleted(&harness).await;
    harness.emulator().advance(HOUR);
    let missing = Fault::Refused {
        status: 404,
        code: "NotFound".to_owned(),
        message: "The entity was not found in this Azure location.".to_owned(),
    };
    let put = Operation::VirtualMachinesCreateOrUpdate;
    for nth in 1..=3 {
        let rule = FaultRule::nth(put, nth, missing.clone());
        harness.emulator().add_fault(rule);
    }
    let puts = harness.call_count("VirtualMachines_CreateOrUpdate");
    let again = azure.launch_instance(&config).await.unwrap().id;
    assert_ne!(again, first);
    assert_eq!(
        harness.call_count("VirtualMachines_CreateOrUpdate") - puts,
        4
    );
    assert_eq!(
        harness.only_instance().name,
        path_of(&again).rsplit('/').next().unwrap()
    );
}

#[tokio::test]
async fn name_that_stays_unusable_is_a_conflict_without_effect() {
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.recreation = HOUR);
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let id = azure.launch_instance(&config).await.unwrap().id;
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
    assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
    harness.emulator().advance(HOUR);
    azure.launch_instance(&config).await.unwrap();
}

#[tokio::test]
async fn trap_25_expired_operation_is_not_a_failure() {
    let harness = AzureHarness::with_knobs(|_| {}).wait_for_launch();
    let expired = FaultRule::always(Operation::OperationsGet, Fault::OperationExpired);
    harness.emulator().add_fault(expired);
    let azure = harness.open().await;
    let id = azure.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn operation_failure_is_returned_with_its_code() {
    let harness = AzureHarness::with_knobs(|_| {}).wait_for_launch();
    let errors = vec![Failure::new("ZonalAllocationFailed", "not in zone 2")];
    let fault = Fault::OperationError { errors };
    let create = Operation::VirtualMachinesCreateOrUpdate;
    harness
        .emulator()
        .add_fault(FaultRule::nth(create, 1, fault));
    let azure = harness.open().await;
    let mut config = config_with_token(&harness, "t-1");
    config.placement.zone = Some("2".parse().unwrap());
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.native_code(), Some("ZonalAllocationFailed"));
    let zone = |scope: &Scope| matches!(scope, Scope::Offering { zone: Some(zone), .. } if zone.as_str() == "2");
    assert!(error.scopes().iter().any(zone), "{error}");
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn start_without_capacity_fails() {
    let harness = AzureHarness::with_knobs(|_| {}).wait_for_launch();
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    azure.stop_instance(&id).await.unwrap();
    wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    let mut knobs = harness.emulator().knobs();
    knobs.capacity = vec![Capacity::of(0)];
    harness.emulator().set_knobs(knobs);
    let error = azure.start_instance(&id).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None),
        "{error}"
    );
    wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    assert_eq!(
        count_resources(&harness)[0],
        1,
        "nothing is removed that ever had power"
    );
}

#[tokio::test]
async fn stop_during_a_launch_is_not_a_failure() {
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.boot = HOUR).wait_for_launch();
    let azure = harness.open().await;
    let config = harness.config();
    let later = async {
        while harness.call_count("Operations_Get") < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let id = harness.only_instance().id;
        let act = fleetwright_emulators::azure::ExternalAction::Deallocate { id };
        harness.emulator().perform_external(act).unwrap();
    };
    let (result, ()) = tokio::join!(azure.launch_instance(&config), later);
    let id = result.unwrap().id;
    wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 0);
}
