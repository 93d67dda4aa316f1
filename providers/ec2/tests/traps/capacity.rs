//! No machine, no quota, too many calls: three things, and EC2 has a status for none of them.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    ErrorKind, InstanceProvisioner as _, NetworkId, ProvisionError, RetryAdvice, Scope, Zone,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule};

use crate::{alive, emulated::Ec2Harness};

/// The error of a launch that EC2 refuses so.
async fn refused(harness: &Ec2Harness, status: u16, code: &str) -> ProvisionError {
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
    let answer = harness.open().await.launch_instance(&config).await;
    answer.unwrap_err()
}

#[tokio::test]
async fn trap_21_no_capacity_is_told_at_once() {
    let harness = Ec2Harness::with_knobs(|_| {});
    harness
        .emulator()
        .add_fault(FaultRule::always(Action::RunInstances, Fault::Capacity));
    let error = harness
        .open()
        .await
        .launch_instance(&harness.config())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.retry()),
        (ErrorKind::Capacity, RetryAdvice::Never)
    );
    assert_eq!(
        harness.emulator().oracle().calls["RunInstances"],
        1,
        "the SDK repeats nothing"
    );
}

#[tokio::test]
async fn trap_22_a_type_that_a_zone_lacks_is_short_there_only() {
    let harness = Ec2Harness::with_knobs(|knobs| {
        for of_type in knobs
            .types
            .iter_mut()
            .filter(|of_type| of_type.name == "t3.micro")
        {
            of_type.zones = vec!["us-east-1a".to_owned()];
        }
    });
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.placement.zone = Some(Zone::new("us-east-1b").unwrap());
    let error = ec2.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    let zone = config.placement.zone.clone();
    let of_both = |scope: &Scope| matches!(scope, Scope::Offering { instance_type: Some(_), zone: there, .. } if *there == zone);
    assert!(error.scopes().iter().any(of_both), "{error}");
    config.placement.zone = Some(Zone::new("us-east-1a").unwrap());
    ec2.launch_instance(&config).await.unwrap();
}

#[tokio::test]
async fn trap_23_a_full_subnet_is_about_the_subnet() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let error = refused(&harness, 400, "InsufficientFreeAddressesInSubnet").await;
    assert_eq!(error.kind(), ErrorKind::Capacity);
    assert!(matches!(error.scopes(), [Scope::Network(_)]), "{error}");
}

#[tokio::test]
async fn trap_24_a_quota_is_no_capacity() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.vcpu_quota = Some(1));
    let error = harness
        .open()
        .await
        .launch_instance(&harness.config())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.native_code()),
        (ErrorKind::Quota, Some("VcpuLimitExceeded"))
    );
    let codes = [
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VolumeLimitExceeded",
        "MaxIOPSLimitExceeded",
    ];
    for code in codes {
        let error = refused(&harness, 400, code).await;
        assert_eq!(
            (error.kind(), error.scopes()),
            (ErrorKind::Quota, &[Scope::Account][..]),
            "{error}"
        );
    }
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_29_throttling_is_a_503_and_no_outage() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let error = refused(&harness, 503, "RequestLimitExceeded").await;
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
    let error = refused(&harness, 503, "Unavailable").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}
