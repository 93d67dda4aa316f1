//! Capacity, quota and throttling, which EC2 does not distinguish by status.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    ErrorKind, InstanceProvisioner as _, Market, NetworkId, ProvisionError, RetryAdvice, Scope,
    Zone,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule};

use crate::{alive, emulated::Ec2Harness, launch_error};

/// Returns the error of a launch that EC2 refuses with this status and code.
async fn refused_launch(harness: &Ec2Harness, status: u16, code: &str) -> ProvisionError {
    let (code, message) = (code.to_owned(), "no".to_owned());
    let fault = Fault::Refused {
        status,
        code,
        message,
    };
    harness
        .emulator()
        .add_fault(FaultRule::nth(Action::RunInstances, 1, fault));
    let mut config = harness.config();
    config.placement.network = Some(NetworkId::new("subnet-00000000000000001").unwrap());
    launch_error(harness, &config).await
}

#[tokio::test]
async fn trap_21_missing_capacity_is_reported_without_sdk_retries() {
    let harness = Ec2Harness::with_knobs(|_| {});
    harness
        .emulator()
        .add_fault(FaultRule::always(Action::RunInstances, Fault::Capacity));
    let error = launch_error(&harness, &harness.config()).await;
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::Capacity, RetryAdvice::Never)
    );
    assert_eq!(
        harness.emulator().oracle().calls["RunInstances"],
        1,
        "the SDK must not retry"
    );
}

#[tokio::test]
async fn trap_22_type_not_offered_in_a_zone_is_a_capacity_error_of_that_zone() {
    let harness = Ec2Harness::with_knobs(|knobs| {
        for spec in knobs
            .types
            .iter_mut()
            .filter(|spec| spec.name == "t3.micro")
        {
            spec.zones = vec!["us-east-1a".to_owned()];
        }
    });
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.placement.zone = Some(Zone::new("us-east-1b").unwrap());
    let error = ec2.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    let zone = config.placement.zone.clone();
    let is_offering_there = |scope: &Scope| matches!(scope, Scope::Offering { instance_type: Some(_), zone: there, .. } if *there == zone);
    assert!(error.scopes().iter().any(is_offering_there), "{error}");
    config.placement.zone = Some(Zone::new("us-east-1a").unwrap());
    ec2.launch_instance(&config).await.unwrap();
}

#[tokio::test]
async fn trap_23_full_subnet_is_a_capacity_error_of_the_subnet() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let error = refused_launch(&harness, 400, "InsufficientFreeAddressesInSubnet").await;
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(matches!(error.scopes(), [Scope::Network(_)]), "{error}");
}

#[tokio::test]
async fn trap_24_quota_codes_are_not_capacity_errors() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.vcpu_quota = Some(1));
    let error = launch_error(&harness, &harness.config()).await;
    assert_eq!(
        (error.kind(), error.native_code()),
        (ErrorKind::Quota, Some("VcpuLimitExceeded"))
    );
    let mut spot = harness.config();
    spot.placement.market = Some(Market::Spot);
    assert!(error.scopes()[0].covers(&harness.config()), "{error}");
    assert!(!error.scopes()[0].covers(&spot), "{error}");
    // Each code, whether its limit covers a spot launch of the same type, and one of a GPU type.
    let mut gpu = harness.config();
    gpu.instance_type = "g5.xlarge".parse().unwrap();
    let codes = [
        ("InstanceLimitExceeded", (false, false)),
        ("MaxSpotInstanceCountExceeded", (true, false)),
        ("VolumeLimitExceeded", (true, true)),
        ("MaxIOPSLimitExceeded", (true, true)),
    ];
    for (code, covered) in codes {
        let error = refused_launch(&harness, 400, code).await;
        assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
        let [scope] = error.scopes() else {
            panic!("{error}")
        };
        assert_eq!(
            (scope.covers(&spot), scope.covers(&gpu)),
            covered,
            "{error}"
        );
    }
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_29_throttling_with_status_503_is_not_unavailable() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let error = refused_launch(&harness, 503, "RequestLimitExceeded").await;
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
    let error = refused_launch(&harness, 503, "Unavailable").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}
