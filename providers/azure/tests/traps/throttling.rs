//! Throttling: retry delays, and the number of calls.

use std::{num::NonZeroU32, time::Duration};

use fleetwright_azure::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, RetryAdvice,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation, RetryAfter};

use crate::{config_with_token, emulated::AzureHarness, wait_for_state};

#[tokio::test]
async fn trap_37_retry_delay_is_read_as_seconds_and_as_date() {
    for written in [RetryAfter::Seconds, RetryAfter::Date] {
        let harness = AzureHarness::with_knobs(|knobs| knobs.retry_after = written);
        let azure = harness.open().await;
        let fault = Fault::Throttled {
            retry_after_secs: Some(1200),
        };
        let get = Operation::VirtualMachinesGet;
        harness.emulator().add_fault(FaultRule::nth(get, 1, fault));
        let token = "t-1".parse().unwrap();
        let error = azure.find_launch(&token).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
        let RetryAdvice::After(wait) = error.retry() else {
            panic!("{error}")
        };
        // A date has whole seconds.
        let expected = Duration::from_secs(1198)..=Duration::from_secs(1201);
        assert!(expected.contains(&wait), "{written:?}: {wait:?}");
    }
}

#[tokio::test]
async fn trap_38_many_machines_are_described_by_lists() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let config = config_with_token(&harness, "t-1");
    let twenty = NonZeroU32::new(20).unwrap();
    let launched = azure.launch_instances(&config, twenty).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    for id in &ids {
        wait_for_state(&*azure, id, CloudInstanceState::Running).await;
    }
    // A handle with an empty cache of addresses.
    let azure = harness.open().await;
    let names = [
        "VirtualMachines_Get",
        "NetworkInterfaces_Get",
        "VirtualMachines_ListAll",
    ];
    let before = names.map(|name| harness.call_count(name));
    for status in azure.describe_instances(&ids).await {
        assert!(status.unwrap().private_ip.is_some());
    }
    let sent = names.map(|name| harness.call_count(name));
    assert_eq!(sent, [before[0], before[1], before[2] + 1]);
}

#[tokio::test]
async fn trap_39_concurrent_operation_is_a_conflict_not_throttling() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = crate::running(&harness, &*azure).await;
    let fault = Fault::Refused {
        status: 429,
        code: "RetryableErrorDueToAnotherOperation".to_owned(),
        message: "another operation is in progress".to_owned(),
    };
    let deallocate = Operation::VirtualMachinesDeallocate;
    harness
        .emulator()
        .add_fault(FaultRule::nth(deallocate, 1, fault));
    let error = azure.stop_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
}
