//! Creations that fail late: what they leave is removed, whoever is dropped, refused or told to wait, and nothing
//! else is.

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
use fleetwright_provider_testkit::canned::{self, Reply, Request};

use crate::{
    HOUR,
    emulated::{AzureHarness, GROUP, SUBSCRIPTION, launching_at},
    there, until, until_nothing, with_token,
};

/// A group whose creations fail when a test lets an hour pass.
pub(crate) fn failing() -> AzureHarness {
    AzureHarness::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        knobs.timing.boot = HOUR;
    })
}

/// Waits until so many calls of an operation were made.
pub(crate) async fn until_calls(harness: &AzureHarness, operation: &str, count: u64) {
    for _ in 0..6000 {
        if harness.calls_of(operation) >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {count} calls of {operation}");
}

/// Launches in a process that dies before the launch fails, so that nobody watches it.
fn launched_by_the_dead(harness: &Arc<AzureHarness>, config: &InstanceConfig, count: u32) {
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

#[tokio::test]
async fn what_a_dropped_launch_leaves_is_removed() {
    let harness = Arc::new(failing().patient());
    let azure = harness.open().await;
    let (launching, config) = (Arc::clone(&azure), harness.config());
    let launch = tokio::spawn(async move { launching.launch_instance(&config).await });
    // It was accepted, and is asked after.
    until_calls(&harness, "Operations_Get", 1).await;
    launch.abort();
    launch.await.unwrap_err();
    harness.emulator().advance(HOUR);
    until_nothing(&harness).await;
}

#[tokio::test]
async fn a_removal_that_is_refused_is_tried_again_when_azure_wishes() {
    let harness = failing();
    let mut options = harness.options();
    options.call_timeout = Duration::from_secs(2);
    let azure = harness.behaving(AzureHarness::launch_config(), options);
    let delete = Operation::VirtualMachinesDelete;
    let throttled = Fault::Throttled {
        retry_after_secs: Some(3),
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(delete, 1, throttled));
    azure.launch_instance(&harness.config()).await.unwrap();
    harness.emulator().advance(HOUR);
    until_nothing(&harness).await;
    assert_eq!(harness.calls_of("VirtualMachines_Delete"), 2);
}

#[tokio::test]
async fn a_launch_does_not_go_on_asking_whoever_wishes_to_be_left_alone() {
    let harness = AzureHarness::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
    })
    .patient();
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
    assert_eq!(harness.calls_of("VirtualMachines_Delete"), 1);
}

#[tokio::test]
async fn many_launches_ask_for_states_no_sooner_than_azure_wishes() {
    let harness = AzureHarness::with(|knobs| knobs.timing.boot = HOUR).patient();
    let azure = harness.open().await;
    let list = Operation::VirtualMachinesListAll;
    let throttled = Fault::Throttled {
        retry_after_secs: Some(3600),
    };
    // The first one is of what the token launched before.
    for nth in 2..200 {
        let rule = FaultRule::nth(list, nth, throttled.clone());
        harness.emulator().add_fault(rule);
    }
    let ten = NonZeroU32::new(10).unwrap();
    let config = with_token(&harness, "t-1");
    let launched = azure.launch_instances(&config, ten).await.unwrap();
    assert_eq!(launched.len(), 10);
    let asked = harness.calls_of("VirtualMachines_ListAll");
    assert!(
        (2..=3).contains(&asked),
        "by the launch and a watch: {asked}"
    );
}

/// The document of a machine whose creation has failed, with or without its power.
fn document(power: &str) -> String {
    format!(
        r#"{{"id":"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/fw-1",
        "name":"fw-1","location":"eastus","properties":{{"vmId":"61ca152e-8a94-4455-b97f-c3ec52a06884",
        "timeCreated":"2026-01-02T03:04:05.678+00:00","provisioningState":"Failed",
        "instanceView":{{"statuses":[{{"code":"ProvisioningState/failed/OSProvisioningTimedOut"}}{power}]}}}}}}"#
    )
}

#[tokio::test]
async fn what_has_power_is_not_removed_because_that_is_missing_for_a_moment() {
    let seen = Arc::new(Mutex::new((0, 0)));
    let kept = Arc::clone(&seen);
    let answer = move |request: &Request| {
        let mut seen = kept.lock().unwrap();
        match request.method.as_str() {
            "PUT" => Reply::new("201 Created", document("")),
            "DELETE" => {
                seen.1 += 1;
                Reply::new("202 Accepted", "")
            }
            _ if request.path.contains("statusOnly") => {
                Reply::ok(format!(r#"{{"value":[{}]}}"#, document("")))
            }
            _ => {
                seen.0 += 1;
                let power = r#",{"code":"PowerState/running"}"#;
                Reply::ok(document(if seen.0 < 5 { "" } else { power }))
            }
        }
    };
    let harness = AzureHarness::with(|_| {});
    let mut options = harness.options();
    options.consistency_window = HOUR;
    let azure = launching_at(&canned::serve(answer).unwrap(), options);
    azure.launch_instance(&harness.config()).await.unwrap();
    while seen.lock().unwrap().0 < 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*seen.lock().unwrap(), (5, 0), "it is let alone");
}

#[tokio::test]
async fn a_replay_removes_what_is_left_of_a_batch_side_by_side() {
    let harness = Arc::new(failing());
    let config = with_token(&harness, "t-1");
    launched_by_the_dead(&harness, &config, 6);
    harness.emulator().advance(HOUR);
    let mut knobs = harness.emulator().knobs();
    knobs.late_failures.clear();
    knobs.timing.boot = Duration::from_millis(5);
    harness.emulator().set_knobs(knobs);
    let azure = harness.open().await;
    let before = harness.emulator().calls().len();
    let six = NonZeroU32::new(6).unwrap();
    let again = azure.launch_instances(&config, six).await.unwrap();
    assert_eq!((again.len(), there(&harness)[0]), (6, 6));
    let calls = harness.emulator().calls().split_off(before);
    let looks = calls
        .iter()
        .take_while(|call| call.operation != "VirtualMachines_Delete")
        .filter(|call| call.operation == "VirtualMachines_Get");
    let mut names: Vec<_> = looks.map(|call| call.parameters.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "all are looked at before one is deleted");
}

#[tokio::test]
async fn what_somebody_else_removes_of_a_failed_launch_leaves_its_token_free() {
    let harness = Arc::new(failing());
    let config = with_token(&harness, "t-1");
    launched_by_the_dead(&harness, &config, 1);
    harness.emulator().advance(HOUR);
    let mut knobs = harness.emulator().knobs();
    knobs.timing.delete = HOUR;
    harness.emulator().set_knobs(knobs);
    let mut options = harness.options();
    options.consistency_window = HOUR;
    let azure = harness.behaving(AzureHarness::launch_config(), options);
    let before = harness.calls_of("VirtualMachines_Get");
    let replay = tokio::spawn(async move {
        let count = NonZeroU32::MIN;
        azure.launch_instances(&config, count).await
    });
    // It was seen to be what is left, and is looked at for a window.
    until_calls(&harness, "VirtualMachines_Get", before + 2).await;
    let left = harness.only_vm().id;
    harness
        .emulator()
        .perform_external(ExternalAction::Delete { id: left })
        .unwrap();
    let error = replay.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(error.effect(), Effect::None, "{error}");
}

#[tokio::test]
async fn a_read_of_before_does_not_delete_twice() {
    let lag = Duration::from_millis(300);
    let harness = Arc::new(AzureHarness::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
        knobs.timing.boot = HOUR;
        knobs.lag.reads = lag;
    }));
    let config = with_token(&harness, "t-1");
    launched_by_the_dead(&harness, &config, 1);
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
    let azure = harness.behaving(AzureHarness::launch_config(), options);
    let id = azure.launch_instance(&config).await.unwrap().id;
    assert_eq!(harness.calls_of("VirtualMachines_Delete"), 1);
    until(&azure, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn what_is_left_is_removed_although_a_read_does_not_show_it_yet() {
    let harness = AzureHarness::with(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
    })
    .patient();
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
    until_nothing(&harness).await;
}

#[tokio::test]
async fn a_name_whose_machine_is_going_is_not_adopted_when_it_is_shown_late() {
    let harness = AzureHarness::with(|knobs| knobs.timing.delete = HOUR);
    let config = with_token(&harness, "t-1");
    let azure = harness.open().await;
    let id = azure.launch_instance(&config).await.unwrap().id;
    until(&*azure, &id, CloudInstanceState::Running).await;
    let delete = ExternalAction::Delete {
        id: harness.only_vm().id,
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
