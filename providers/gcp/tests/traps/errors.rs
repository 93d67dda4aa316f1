//! Errors: one status with several meanings, and incomplete lists.

use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Failure, Fault, FaultRule, Method};
use fleetwright_gcp::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
    ProvisionError, Scope, Zone,
};

use crate::{
    alive,
    emulated::{GcpHarness, ZONES},
    wait_for_state,
};

/// Returns the error of a launch that is refused with this status and reason.
async fn refused(status: u16, reason: &str) -> ProvisionError {
    let harness = GcpHarness::with_knobs(|_| {});
    let (code, message) = (reason.to_owned(), "no".to_owned());
    let fault = Fault::Refused {
        status,
        code,
        message,
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(Method::InstancesInsert, 1, fault));
    let result = harness
        .open()
        .await
        .launch_instance(&harness.config())
        .await;
    assert_eq!(alive(&harness), 0);
    result.unwrap_err()
}

/// Returns the error of a launch whose operation fails with this code.
async fn failed(code: &str, message: &str) -> ProvisionError {
    let harness = GcpHarness::with_knobs(|_| {}).wait_for_launch();
    let errors = vec![Failure::new(code, message)];
    let fault = Fault::OperationError { errors };
    harness
        .emulator()
        .add_fault(FaultRule::nth(Method::InstancesInsert, 1, fault));
    let mut launch = GcpHarness::launch_config();
    launch.subnetwork = Some("default".to_owned());
    let gcp = harness.open_with(launch).await;
    let error = gcp.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(
        (error.effect(), alive(&harness)),
        (Effect::None, 0),
        "{error}"
    );
    error
}

#[tokio::test]
async fn trap_30_status_403_is_classified_by_its_reason() {
    for (status, reason, kind) in [
        (403, "quotaExceeded", ErrorKind::Quota),
        (403, "rateLimitExceeded", ErrorKind::Throttled),
        (403, "userRateLimitExceeded", ErrorKind::Throttled),
        (403, "forbidden", ErrorKind::Forbidden),
        (403, "accessNotConfigured", ErrorKind::Forbidden),
        (401, "authError", ErrorKind::Unauthenticated),
        (429, "rateLimitExceeded", ErrorKind::Throttled),
    ] {
        let error = refused(status, reason).await;
        assert_eq!(
            (error.kind(), error.effect()),
            (kind, Effect::None),
            "{error}"
        );
        assert_eq!(error.native_code(), Some(reason));
    }
}

#[tokio::test]
async fn trap_32_operation_rates_and_early_preemption_are_retryable() {
    let error = failed("RESOURCE_OPERATION_RATE_EXCEEDED", "too many").await;
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    let error = failed("UNSUPPORTED_OPERATION", "Instance was preempted.").await;
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
}

#[tokio::test]
async fn trap_34_missing_addresses_affect_all_types_of_a_network() {
    let error = failed("IP_SPACE_EXHAUSTED", "no address is left").await;
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    let [Scope::Network(network)] = error.scopes() else {
        panic!("the network is short, and not a type: {error}")
    };
    assert_eq!(network.as_str(), "regions/us-central1/subnetworks/default");
}

#[tokio::test]
async fn trap_37_empty_pages_are_skipped_and_unreachable_zones_are_gaps() {
    let harness = GcpHarness::with_knobs(|_| {});
    let gcp = harness.open().await;
    for zone in ZONES {
        let mut config = harness.config();
        config.placement.zone = Some(Zone::new(zone).unwrap());
        for _ in 0..4 {
            let id = gcp.launch_instance(&config).await.unwrap().id;
            wait_for_state(&*gcp, &id, CloudInstanceState::Running).await;
        }
    }
    let list = Method::InstancesAggregatedList;
    harness
        .emulator()
        .add_fault(FaultRule::nth(list, 2, Fault::EmptyPage));
    let all = gcp.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(all.len(), 8);
    assert!(harness.emulator().unused_faults().is_empty());

    let mut knobs = harness.emulator().knobs();
    knobs.unreachable_zones.insert(ZONES[1].to_owned());
    harness.emulator().set_knobs(knobs);
    let error = gcp
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    assert_eq!(error.scopes(), [Scope::zone(Zone::new(ZONES[1]).unwrap())]);
    // A zone that is not configured may be unreachable.
    let mut knobs = harness.emulator().knobs();
    knobs.unreachable_zones = ["europe-west1-b".to_owned()].into();
    harness.emulator().set_knobs(knobs);
    assert_eq!(
        gcp.list_instances(&InstanceFilter::new())
            .await
            .unwrap()
            .len(),
        8
    );
}

#[tokio::test]
async fn trap_49_one_shortage_has_several_codes() {
    let error = refused(429, "RESOURCE_AVAILABILITY").await;
    assert_eq!(
        (error.kind(), error.effect()),
        (ErrorKind::Capacity, Effect::None),
        "{error}"
    );
    let short = "The zone 'z' does not have enough resources available to fulfill the request.";
    for (code, message, kind) in [
        ("resource_availability", "", ErrorKind::Capacity),
        ("UNSUPPORTED_OPERATION", short, ErrorKind::Capacity),
        ("SOME_QUOTA_EXCEEDED", "", ErrorKind::Quota),
    ] {
        let error = failed(code, message).await;
        assert_eq!(error.kind(), kind, "{code}: {error}");
    }
}

#[tokio::test]
async fn trap_49_quota_of_newer_series_leaves_other_series() {
    let message = "Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 0.0 in region us-central1.";
    let error = failed("QUOTA_EXCEEDED", message).await;
    assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
    let mut config = GcpHarness::with_knobs(|_| {}).config();
    config.placement.zone = Some(Zone::new(ZONES[0]).unwrap());
    let covers = |config: &_| error.scopes().iter().any(|scope| scope.covers(config));
    assert!(covers(&config), "{:?}", error.scopes());
    config.instance_type = "n2-standard-2".parse().unwrap();
    assert!(!covers(&config), "{:?}", error.scopes());
}
