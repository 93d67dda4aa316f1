//! Ownership of instances, and launches that are sent twice.

use std::{collections::BTreeMap, time::Duration};

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{ExternalAction, Fault, FaultRule, Method, Phase};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, LaunchRecord, RetryAdvice,
};

use crate::{
    HOUR, alive, config_with_token,
    emulated::{GcpHarness, PROJECT, ZONES},
    wait_for_state,
};

#[tokio::test]
async fn trap_27_replay_finds_the_launch_after_its_request_id_is_forgotten() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.request_retention = Duration::ZERO);
    let config = config_with_token(&harness, "t-1");
    let first = harness.open().await.launch_instance(&config).await.unwrap();
    let sent = harness.latest_call("instances.insert").parameters["requestId"].clone();
    assert_eq!(sent.len(), 36, "a UUID: {sent}");
    assert_ne!(sent, "00000000-0000-0000-0000-000000000000");
    for _ in 0..3 {
        let again = harness.open().await.launch_instance(&config).await.unwrap();
        assert_eq!(again.id, first.id);
    }
    assert_eq!(alive(&harness), 1);
    // Even if no operation is kept, the name is taken.
    let mut options = harness.options();
    options.operations_kept = Duration::ZERO;
    let forgetful = harness
        .open_with_options(GcpHarness::launch_config(), options)
        .await;
    assert_eq!(
        forgetful.launch_instance(&config).await.unwrap().id,
        first.id
    );
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_28_instance_of_another_owner_is_not_adopted() {
    let harness = GcpHarness::with_knobs(|_| {});
    let config = config_with_token(&harness, "t-1");
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&config).await.unwrap().id;
    let name = harness.only_instance().name;
    gcp.terminate_instance(&id).await.unwrap();
    wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    harness.emulator().reset(None);
    let external = ExternalAction::LaunchExternal {
        project: PROJECT.to_owned(),
        zone: Some(ZONES[0].to_owned()),
        name: Some(name),
        machine_type: None,
        count: 1,
        labels: BTreeMap::new(),
        metadata: BTreeMap::new(),
    };
    harness.emulator().perform_external(external).unwrap();
    let gcp = harness.open().await;
    let error = gcp.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(
        (error.effect(), error.retry()),
        (Effect::None, RetryAdvice::Never),
        "{error}"
    );
    let record = gcp
        .find_launch(config.launch_token.as_ref().unwrap())
        .await
        .unwrap();
    assert_eq!(record, LaunchRecord::NotFound);
    let status = harness.only_instance().status;
    let booting_or_running = ["PROVISIONING", "STAGING", "RUNNING"];
    assert!(
        booting_or_running.iter().any(|one| status == *one),
        "{status}"
    );
}

#[tokio::test]
async fn trap_29_launch_without_response_is_found_by_its_token() {
    for fault in [
        Fault::Lost {
            phase: Phase::After,
        },
        Fault::ServerError {
            phase: Phase::After,
        },
    ] {
        let harness = GcpHarness::new();
        harness
            .emulator()
            .add_fault(FaultRule::nth(Method::InstancesInsert, 1, fault));
        let config = config_with_token(&harness, "t-1");
        let gcp = harness.open().await;
        let error = gcp.launch_instance(&config).await.unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{error}");
        assert_eq!(error.retry(), RetryAdvice::SameToken, "{error}");
        let found = harness.open().await.launch_instance(&config).await.unwrap();
        assert!(found.id.as_str().ends_with(&harness.only_instance().id));
    }
}

#[tokio::test]
async fn trap_31_repeated_delete_succeeds_although_it_is_refused() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.timing.delete = HOUR;
        knobs.repeated_deletes = 0;
    });
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    for _ in 0..4 {
        gcp.terminate_instance(&id).await.unwrap();
    }
    assert_eq!(harness.call_count("instances.delete"), 1);
    // Another handle does not know that one is running, until its own is refused.
    let other = harness.open().await;
    for _ in 0..4 {
        other.terminate_instance(&id).await.unwrap();
    }
    assert_eq!(harness.call_count("instances.delete"), 2);
    let status = gcp.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Terminating);
    harness.emulator().advance(HOUR);
    wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    gcp.terminate_instance(&id).await.unwrap();
    assert_eq!(harness.call_count("instances.delete"), 2);
}
