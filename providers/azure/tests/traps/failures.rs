//! Creations that fail late: their remains are deleted despite drops, refusals and throttling, and nothing else.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use fleetwright_azure::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceConfig, InstanceProvisioner as _,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{ExternalAction, Fault, FaultRule, LateFailure, Operation};
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse, Request};

use crate::{
    HOUR, config_with_token, count_resources,
    emulated::{AzureHarness, GROUP, SUBSCRIPTION},
    wait_for_state, wait_until_deleted,
};

/// A group whose creations fail when a test advances the clock by an hour.
pub(crate) fn failing() -> AzureHarness {
    AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        (knobs.timing.boot, knobs.timing.shortage) = (HOUR, Duration::ZERO);
    })
}

/// Waits until an operation was called `count` times.
pub(crate) async fn until_calls(harness: &AzureHarness, operation: &str, count: u64) {
    for _ in 0..6000 {
        if harness.call_count(operation) >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {count} calls of {operation}");
}

/// Launches in a process that ends before the creation fails, so that no cleanup runs.
fn launch_and_crash(harness: &Arc<AzureHarness>, config: &InstanceConfig, count: u32) {
    let (harness, config) = (Arc::clone(harness), config.clone());
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let count = NonZeroU32::new(count).unwrap();
        let launch = async { harness.open().await.launch_instances(&config, count).await };
        runtime.unwrap().block_on(launch).unwrap();
    });
    process.join().unwrap();
}

/// A group whose machines fail for lack of capacity after their creation was accepted.
fn failing_late() -> AzureHarness {
    AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
    })
}

#[tokio::test]
async fn remains_of_a_dropped_launch_are_deleted() {
    let harness = Arc::new(failing().wait_for_launch());
    let azure = harness.open().await;
    let (launching, config) = (Arc::clone(&azure), harness.config());
    let launch = tokio::spawn(async move { launching.launch_instance(&config).await });
    // It was accepted, and its operation is polled.
    until_calls(&harness, "Operations_Get", 1).await;
    launch.abort();
    launch.await.unwrap_err();
    harness.emulator().advance(HOUR);
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn refused_deletion_is_retried_after_the_retry_delay() {
    let harness = failing();
    let mut options = harness.options();
    options.call_timeout = Duration::from_secs(2);
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let delete = Operation::VirtualMachinesDelete;
    let throttled = Fault::Throttled {
        retry_after_secs: Some(3),
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(delete, 1, throttled));
    azure.launch_instance(&harness.config()).await.unwrap();
    harness.emulator().advance(HOUR);
    wait_until_deleted(&harness).await;
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 2);
}

#[tokio::test]
async fn launch_stops_when_the_retry_delay_exceeds_its_deadline() {
    let harness = failing_late().wait_for_launch();
    let delete = Operation::VirtualMachinesDelete;
    let throttled = Fault::Throttled {
        retry_after_secs: Some(3600),
    };
    harness
        .emulator()
        .add_fault(FaultRule::always(delete, throttled));
    let azure = harness.open().await;
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    assert_eq!(error.effect(), Effect::Unknown, "something is left");
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 1);
}

#[tokio::test]
async fn batch_launch_respects_the_retry_delay_of_state_lists() {
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.boot = HOUR).wait_for_launch();
    let azure = harness.open().await;
    let list = Operation::VirtualMachinesListAll;
    let throttled = Fault::Throttled {
        retry_after_secs: Some(3600),
    };
    // The first list is the lookup of the token.
    for nth in 2..200 {
        let rule = FaultRule::nth(list, nth, throttled.clone());
        harness.emulator().add_fault(rule);
    }
    let ten = NonZeroU32::new(10).unwrap();
    let config = config_with_token(&harness, "t-1");
    let launched = azure.launch_instances(&config, ten).await.unwrap();
    assert_eq!(launched.len(), 10);
    let lists = harness.call_count("VirtualMachines_ListAll");
    assert!(
        (2..=3).contains(&lists),
        "by the launch and the cleanup: {lists}"
    );
}

/// The document of a machine whose creation has failed, with or without a power state.
fn document(power: &str) -> String {
    format!(
        r#"{{"id":"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/fw-1",
        "name":"fw-1","location":"eastus","properties":{{"vmId":"61ca152e-8a94-4455-b97f-c3ec52a06884",
        "timeCreated":"2026-01-02T03:04:05.678+00:00","provisioningState":"Failed",
        "instanceView":{{"statuses":[{{"code":"ProvisioningState/failed/OSProvisioningTimedOut"}}{power}]}}}}}}"#
    )
}

#[tokio::test]
async fn running_machine_is_kept_if_its_power_state_is_missing_briefly() {
    let seen = Arc::new(Mutex::new((0, 0)));
    let kept = Arc::clone(&seen);
    let respond = move |request: &Request| {
        let mut seen = kept.lock().unwrap();
        match request.method.as_str() {
            "PUT" => CannedResponse::new("201 Created", document("")),
            "DELETE" => {
                seen.1 += 1;
                CannedResponse::new("202 Accepted", "")
            }
            _ if request.path.contains("statusOnly") => {
                CannedResponse::ok(format!(r#"{{"value":[{}]}}"#, document("")))
            }
            _ => {
                seen.0 += 1;
                let power = r#",{"code":"PowerState/running"}"#;
                CannedResponse::ok(document(if seen.0 < 5 { "" } else { power }))
            }
        }
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.consistency_window = HOUR;
    let azure = AzureHarness::open_at(&canned_responses::serve(respond).unwrap(), options).await;
    azure.launch_instance(&harness.config()).await.unwrap();
    while seen.lock().unwrap().0 < 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*seen.lock().unwrap(), (5, 0), "it is not deleted");
}

#[tokio::test]
async fn replay_deletes_the_remains_of_a_batch_concurrently() {
    let harness = Arc::new(failing());
    let config = config_with_token(&*harness, "t-1");
    launch_and_crash(&harness, &config, 6);
    harness.emulator().advance(HOUR);
    let mut knobs = harness.emulator().knobs();
    knobs.late_failures.clear();
    knobs.timing.boot = Duration::from_millis(5);
    harness.emulator().set_knobs(knobs);
    let azure = harness.open().await;
    let before = harness.emulator().calls().len();
    let six = NonZeroU32::new(6).unwrap();
    let again = azure.launch_instances(&config, six).await.unwrap();
    assert_eq!((again.len(), count_resources(&harness)[0]), (6, 6));
    let calls = harness.emulator().calls().split_off(before);
    let lookups = calls
        .iter()
        .take_while(|call| call.operation != "VirtualMachines_Delete")
        .filter(|call| call.operation == "VirtualMachines_Get");
    let mut names: Vec<_> = lookups.map(|call| call.parameters.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "all are read before one is deleted");
}

#[tokio::test]
async fn remains_deleted_by_another_actor_leave_the_token_free() {
    let harness = Arc::new(failing());
    let config = config_with_token(&*harness, "t-1");
    launch_and_crash(&harness, &config, 1);
    harness.emulator().advance(HOUR);
    let mut knobs = harness.emulator().knobs();
    knobs.timing.delete = HOUR;
    harness.emulator().set_knobs(knobs);
    let mut options = harness.options();
    options.consistency_window = HOUR;
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let before = harness.call_count("VirtualMachines_Get");
    let replay = tokio::spawn(async move {
        let count = NonZeroU32::MIN;
        azure.launch_instances(&config, count).await
    });
    // It was recognized as remains, and is read for a window.
    until_calls(&harness, "VirtualMachines_Get", before + 2).await;
    let left = harness.only_instance().id;
    harness
        .emulator()
        .perform_external(ExternalAction::Delete { id: left })
        .unwrap();
    let error = replay.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
}

#[tokio::test]
async fn stale_read_does_not_cause_a_second_delete() {
    let lag = Duration::from_millis(300);
    let harness = Arc::new(AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        (knobs.timing.boot, knobs.timing.shortage) = (HOUR, Duration::ZERO);
        knobs.lag.reads = lag;
    }));
    let config = config_with_token(&*harness, "t-1");
    launch_and_crash(&harness, &config, 1);
    harness.emulator().advance(HOUR);
    harness.emulator().advance(HOUR);
    let mut knobs = harness.emulator().knobs();
    knobs.late_failures.clear();
    knobs.timing.boot = Duration::from_millis(5);
    harness.emulator().set_knobs(knobs);
    let get = Operation::VirtualMachinesGet;
    let stale = FaultRule::always(get, Fault::StaleRead);
    harness.emulator().add_fault(stale);
    let mut options = harness.options();
    options.consistency_window = lag * 2;
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let id = azure.launch_instance(&config).await.unwrap().id;
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 1);
    wait_for_state(&azure, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn remains_are_deleted_although_the_first_read_misses_them() {
    let harness = failing_late().wait_for_launch();
    let get = Operation::VirtualMachinesGet;
    let hidden = Fault::Refused {
        status: 404,
        code: "ResourceNotFound".to_owned(),
        message: "not yet".to_owned(),
    };
    harness.emulator().add_fault(FaultRule::nth(get, 1, hidden));
    let azure = harness.open().await;
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error}");
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn machine_being_deleted_is_not_adopted_when_it_shows_late() {
    let harness = AzureHarness::with_knobs(|knobs| knobs.timing.delete = HOUR);
    let config = config_with_token(&harness, "t-1");
    let azure = harness.open().await;
    let id = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
    let delete = ExternalAction::Delete {
        id: harness.only_instance().id,
    };
    harness.emulator().perform_external(delete).unwrap();
    let azure = harness.open().await;
    let get = Operation::VirtualMachinesGet;
    let hidden = Fault::Refused {
        status: 404,
        code: "ResourceNotFound".to_owned(),
        message: "not yet".to_owned(),
    };
    harness.emulator().add_fault(FaultRule::nth(get, 1, hidden));
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokenSpent, "{error}");
}
