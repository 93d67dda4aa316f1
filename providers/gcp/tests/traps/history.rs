//! Operations are kept for an hour only, and the local clock may be wrong.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Fault, FaultRule, Knobs, LimitCheck, Method};
use fleetwright_gcp::{
    GcpOptions,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceProvisioner as _, LaunchRecord, RetryAdvice,
    },
};

use crate::{HOUR, alive, config_with_token, emulated::GcpHarness, wait_for_state};

#[test]
fn declared_retention_is_what_google_promises() {
    let promised = Knobs::default().timing.operation_retention;
    assert_eq!(promised, HOUR);
    let mut options = GcpOptions::default();
    assert!(options.operations_kept <= promised);
    assert!(!options.remember_spent_tokens);
    options.remember_spent_tokens = true;
    assert_eq!(options.operations_kept, promised);
}

#[tokio::test]
async fn token_is_spent_for_an_hour_if_that_is_declared() {
    let harness = GcpHarness::with_knobs(|_| {});
    let mut options = harness.options();
    options.remember_spent_tokens = true;
    let open = || harness.open_with_options(GcpHarness::launch_config(), options.clone());
    let config = config_with_token(&harness, "t-1");
    let token = config.launch_token.as_ref().unwrap();
    let gcp = open().await;
    assert_eq!(gcp.capabilities().token_after_terminate, HOUR);
    let id = gcp.launch_instance(&config).await.unwrap().id;
    wait_for_state(&gcp, &id, CloudInstanceState::Running).await;
    // The operation of its creation expires while it runs.
    harness.emulator().advance(HOUR * 2);
    gcp.terminate_instance(&id).await.unwrap();
    wait_for_state(&gcp, &id, CloudInstanceState::Terminated).await;
    harness.emulator().advance(HOUR - Duration::from_secs(60));
    for handle in [&gcp, &open().await] {
        let error = handle.launch_instance(&config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenSpent, "{error}");
        let record = handle.find_launch(token).await.unwrap();
        assert!(matches!(record, LaunchRecord::Terminated(_)), "{record:?}");
    }
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_24_replay_after_the_operations_expired_has_one_instance() {
    for remember in [false, true] {
        let harness = GcpHarness::with_knobs(|_| {});
        let mut options = harness.options();
        options.remember_spent_tokens = remember;
        let open = || harness.open_with_options(GcpHarness::launch_config(), options.clone());
        let config = config_with_token(&harness, "t-1");
        let first = open().await.launch_instance(&config).await.unwrap().id;
        wait_for_state(&open().await, &first, CloudInstanceState::Running).await;
        harness.emulator().advance(HOUR * 30);
        // Nothing but the name and the owner mark identifies it now.
        for _ in 0..2 {
            assert_eq!(
                open().await.launch_instance(&config).await.unwrap().id,
                first
            );
        }
        assert_eq!(alive(&harness), 1);
        open().await.terminate_instance(&first).await.unwrap();
        while alive(&harness) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        harness.emulator().advance(HOUR * 30);
        let second = open().await.launch_instance(&config).await.unwrap().id;
        assert_ne!(second, first);
        for _ in 0..2 {
            assert_eq!(
                open().await.launch_instance(&config).await.unwrap().id,
                second
            );
        }
        assert_eq!(alive(&harness), 1);
    }
}

#[tokio::test]
async fn replay_while_the_instance_is_deleted_is_spent_for_every_handle() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.delete = HOUR);
    let config = config_with_token(&harness, "t-1");
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    gcp.terminate_instance(&id).await.unwrap();
    for handle in [&gcp, &harness.open().await] {
        let error = handle.launch_instance(&config).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TokenSpent, "{error}");
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_47_fresh_instance_is_not_gone_for_a_clock_that_is_ahead() {
    let window = Duration::from_secs(20);
    let harness = GcpHarness::with_knobs(|knobs| {
        knobs.clock_behind = HOUR * 5;
        knobs.lag.reads = window;
    });
    let mut options = harness.options();
    options.consistency_window = window * 2;
    options.launch_wait = Duration::from_secs(2);
    let open = || harness.open_with_options(GcpHarness::launch_config(), options.clone());
    let first = open().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(first.launch_instance(&harness.config()).await.unwrap().id);
    }
    // Another handle, whose reads do not show the instance yet.
    for method in [Method::InstancesGet, Method::InstancesAggregatedList] {
        let stale = FaultRule::always(method, Fault::StaleRead);
        harness.emulator().add_fault(stale);
    }
    let stale = FaultRule::always(Method::InstancesList, Fault::StaleRead);
    harness.emulator().add_fault(stale);
    let other = open().await;
    let error = other.describe_instance(&ids[0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    for result in other.describe_instances(&ids).await {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn trap_43_organization_policy_is_forbidden_and_named() {
    let policy = "constraints/compute.vmExternalIpAccess";
    for checked in [LimitCheck::Immediate, LimitCheck::InOperation] {
        let harness = GcpHarness::with_knobs(|knobs| {
            knobs.organization_policies = [policy.to_owned()].into();
            knobs.policy_check = checked;
        })
        .wait_for_launch();
        let gcp = harness.open().await;
        let config = config_with_token(&harness, "t-1");
        let error = gcp.launch_instance(&config).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.effect(), error.retry()),
            (ErrorKind::Forbidden, Effect::None, RetryAdvice::Never),
            "{error}"
        );
        assert!(error.to_string().contains(policy), "{error}");
        assert_eq!(alive(&harness), 0);
    }
}

#[tokio::test]
async fn organization_policy_does_not_look_like_a_stale_fingerprint() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    let id = gcp.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
    let refused = Fault::Refused {
        status: 412,
        code: "conditionNotMet".to_owned(),
        message: "Constraint customConstraints/custom.labels violated.".to_owned(),
    };
    let rule = FaultRule::always(Method::InstancesSetLabels, refused);
    harness.emulator().add_fault(rule);
    let change = fleetwright_gcp::fleetwright::TagChange::new()
        .set("a", "b")
        .unwrap();
    let error = gcp.update_tags(&id, &change).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert_eq!(harness.call_count("instances.setLabels"), 1);
}

#[tokio::test]
async fn throttled_wait_is_not_repeated_before_the_quota_is_full() {
    let harness = GcpHarness::with_knobs(|knobs| knobs.timing.provision = HOUR).wait_for_launch();
    let throttled = Fault::Throttled {
        retry_after_secs: None,
    };
    let rule = FaultRule::always(Method::ZoneOperationsWait, throttled);
    harness.emulator().add_fault(rule);
    let mut options = harness.options();
    options.launch_wait = Duration::from_millis(400);
    let launch = GcpHarness::launch_config();
    let gcp = harness.open_with_options(launch, options).await;
    gcp.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(harness.call_count("zoneOperations.wait"), 1);
}
