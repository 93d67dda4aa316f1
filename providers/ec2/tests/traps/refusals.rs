//! Refusals that EC2 reports with codes of several meanings, or with codes that its reference does not list.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceProvisioner as _, Market, RetryAdvice, SnapshotRequest,
    layer::{Alternative, Fallback, FallbackPolicy, Layered, Stack},
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule};

use crate::{emulated::Ec2Harness, launch_error, wait_for_state};

fn refuse_launches(harness: &Ec2Harness, code: &str, message: &str) {
    let fault = Fault::Refused {
        status: 400,
        code: code.to_owned(),
        message: message.to_owned(),
    };
    harness.emulator().clear_faults();
    let rule = FaultRule::always(Action::RunInstances, fault);
    harness.emulator().add_fault(rule);
}

#[tokio::test]
async fn trap_49_codes_with_several_meanings_are_read_by_their_message() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let not_now = "The requested configuration is currently not supported. Please check the \
        documentation for supported configurations.";
    for (code, message, kind) in [
        (
            "AuthFailure",
            "Not authorized for images: [ami-1]",
            ErrorKind::Forbidden,
        ),
        (
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
            ErrorKind::Unauthenticated,
        ),
        ("Unsupported", not_now, ErrorKind::Capacity),
    ] {
        refuse_launches(&harness, code, message);
        let error = launch_error(&harness, &harness.config()).await;
        assert_eq!(
            (error.kind(), error.retry()),
            (kind, RetryAdvice::Never),
            "{error}"
        );
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn trap_49_stop_of_a_spot_instance_keeps_the_words_of_ec2() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.placement.market = Some(Market::Spot);
    let id = ec2.launch_instance(&config).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    let error = ec2.stop_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().to_lowercase().contains("spot"), "{error}");
}

#[tokio::test]
async fn trap_50_unlisted_refusal_is_sent_once() {
    let harness = Ec2Harness::with_knobs(|_| {});
    for (sent, code) in ["VPCIdNotSpecified", "MissingInput", "SomethingNew"]
        .into_iter()
        .enumerate()
    {
        refuse_launches(&harness, code, "no");
        let ec2 = Stack::default().wrap(harness.open().await);
        let error = ec2.launch_instance(&harness.config()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.retry()),
            (ErrorKind::Invalid, RetryAdvice::Never),
            "{error}"
        );
        let calls = harness.emulator().oracle().calls["RunInstances"];
        assert_eq!(usize::try_from(calls).unwrap(), sent + 1, "{code}");
    }
}

#[tokio::test]
async fn trap_61_shortage_under_another_code_moves_to_the_next_zone() {
    for code in ["InsufficientCapacityOnHost", "InsufficientNewCapacity"] {
        let harness = Ec2Harness::with_knobs(|_| {});
        let refused = Fault::Refused {
            status: 400,
            code: code.to_owned(),
            message: "not enough".to_owned(),
        };
        let rule = FaultRule::nth(Action::RunInstances, 1, refused);
        harness.emulator().add_fault(rule);
        let zones = ["us-east-1a", "us-east-1b"];
        let zones = zones.map(|zone| Alternative::new(zone).zone(zone).unwrap());
        let fallback = Fallback::new(FallbackPolicy::new(zones));
        let ec2 = Layered::new(harness.open().await, fallback);
        let launched = ec2.launch_instance(&harness.config()).await.unwrap();
        let zone = launched.placement.zone.unwrap();
        assert_eq!(zone.as_str(), "us-east-1b", "{code}");
    }
}

#[tokio::test]
async fn trap_61_rate_of_snapshots_is_waited_for() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = Stack::default().wrap(harness.open().await);
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    let refused = Fault::Refused {
        status: 400,
        code: "SnapshotCreationPerVolumeRateExceeded".to_owned(),
        message: "wait".to_owned(),
    };
    let rule = FaultRule::nth(Action::CreateImage, 1, refused);
    harness.emulator().add_fault(rule);
    let request = SnapshotRequest::new("golden").unwrap();
    ec2.snapshot_image(&id, &request).await.unwrap();
    assert_eq!(harness.call_count("CreateImage"), 2);
}
