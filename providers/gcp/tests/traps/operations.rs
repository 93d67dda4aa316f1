//! Operations: an accepted launch can fail later, and only its operation shows it.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{
    Capacity, ExternalAction, Failure, Fault, FaultRule, LimitCheck, Method,
};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, LaunchRecord,
    Scope,
};

use crate::{
    HOUR, alive, config_with_token,
    emulated::{GcpHarness, path_of},
    wait_for_state,
};

fn fails(codes: &[&str]) -> FaultRule {
    let errors = codes.iter().map(|code| Failure::new(*code, "no")).collect();
    FaultRule::nth(Method::InstancesInsert, 1, Fault::OperationError { errors })
}

#[tokio::test]
async fn trap_20_failed_operation_fails_the_launch_with_all_its_errors() {
    let harness = GcpHarness::with_knobs(|_| {}).wait_for_launch();
    let codes = ["QUOTA_EXCEEDED", "RESOURCE_NOT_FOUND"];
    harness.emulator().add_fault(fails(&codes));
    let gcp = harness.open().await;
    let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Quota, Effect::None),
        "{error}"
    );
    assert_eq!(error.native_code(), Some("QUOTA_EXCEEDED"));
    assert!(error.message().contains("no; no"), "{error}");
    assert!(
        error
            .request_id()
            .is_some_and(|name| name.starts_with("operation-"))
    );
    // Without a wait, the instance shows the failure.
    let harness = GcpHarness::with_knobs(|_| {});
    harness.emulator().add_fault(fails(&codes));
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    let ended = wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    assert_eq!(
        ended.state_reason.as_deref(),
        Some("QUOTA_EXCEEDED: no; no")
    );
}

#[tokio::test]
async fn trap_21_capacity_and_quota_errors_are_returned_at_once_and_later() {
    for refused in [LimitCheck::Immediate, LimitCheck::InOperation] {
        let harness = GcpHarness::with_knobs(|knobs| {
            knobs.capacity = vec![Capacity::of(0)];
            knobs.stockout_check = refused;
        })
        .wait_for_launch();
        let config = config_with_token(&harness, "t-1");
        let gcp = harness.open().await;
        let error = gcp.launch_instance(&config).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Capacity, Effect::None),
            "{error}"
        );
        assert!(
            matches!(error.scopes()[0], Scope::Offering { zone: Some(_), .. }),
            "{error}"
        );
        // The token is free, and there is capacity now.
        let mut knobs = harness.emulator().knobs();
        knobs.capacity.clear();
        harness.emulator().set_knobs(knobs);
        let token = config.launch_token.as_ref().unwrap();
        assert_eq!(
            gcp.find_launch(token).await.unwrap(),
            LaunchRecord::NotFound
        );
        gcp.launch_instance(&config).await.unwrap();
        assert_eq!(alive(&harness), 1);

        let harness = GcpHarness::with_knobs(|knobs| {
            knobs.instance_quota = Some(0);
            knobs.quota_check = refused;
        })
        .wait_for_launch();
        let gcp = harness.open().await;
        let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Quota, Effect::None),
            "{error}"
        );
        assert_eq!(alive(&harness), 0);
    }
}

#[tokio::test]
async fn trap_22_visible_instance_disappears_if_its_creation_fails() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.capacity = vec![Capacity::of(0)];
        knobs.timing.provision = HOUR;
    });
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    let listed = gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].state),
        (1, CloudInstanceState::Pending)
    );
    harness.emulator().advance(HOUR);
    let ended = wait_for_state(&*gcp, &id, CloudInstanceState::Terminated).await;
    let reason = ended.state_reason.unwrap();
    assert!(
        reason.starts_with("ZONE_RESOURCE_POOL_EXHAUSTED"),
        "{reason}"
    );
    assert!(
        gcp.list_instances(&InstanceFilter::new())
            .await
            .unwrap()
            .is_empty()
    );
    gcp.terminate_instance(&id).await.unwrap();
}

#[tokio::test]
async fn trap_23_wait_is_repeated_until_the_operation_is_done() {
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.timing.wait = Duration::from_millis(1);
        knobs.timing.provision = HOUR;
        knobs.capacity = vec![Capacity::of(0)];
    })
    .wait_for_launch();
    let gcp = harness.open().await;
    let config = harness.config();
    let later = async {
        while harness.call_count("zoneOperations.wait") < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        harness.emulator().advance(HOUR);
    };
    let (result, ()) = tokio::join!(gcp.launch_instance(&config), later);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
}

#[tokio::test]
async fn expired_operation_is_not_a_failure() {
    let harness = GcpHarness::with_knobs(|_| {}).wait_for_launch();
    let expired = FaultRule::always(Method::ZoneOperationsWait, Fault::OperationExpired);
    harness.emulator().add_fault(expired);
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn start_without_capacity_fails() {
    let harness = GcpHarness::with_knobs(|_| {}).wait_for_launch();
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    let mut knobs = harness.emulator().knobs();
    knobs.capacity = vec![Capacity::of(0)];
    harness.emulator().set_knobs(knobs);
    let error = gcp.start_instance(&id).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None),
        "{error}"
    );
    wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
}

#[tokio::test]
async fn start_that_races_with_a_delete_reports_a_terminated_instance() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.operation_retention = HOUR * 24)
        .wait_for_launch();
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.stop_instance(&id).await.unwrap();
    wait_for_state(&*gcp, &id, CloudInstanceState::Stopped).await;
    let mut knobs = harness.emulator().knobs();
    knobs.timing.provision = HOUR;
    harness.emulator().set_knobs(knobs);
    // Another handle, which does not know that the instance is new.
    let gcp = harness.open().await;
    let waits = harness.call_count("zoneOperations.wait");
    let later = async {
        while harness.call_count("zoneOperations.wait") == waits {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let instance = path_of(&id);
        harness
            .emulator()
            .perform_external(ExternalAction::Delete { instance })
            .unwrap();
        harness.emulator().advance(HOUR);
    };
    let (result, ()) = tokio::join!(gcp.start_instance(&id), later);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongState, "{error}");
}
