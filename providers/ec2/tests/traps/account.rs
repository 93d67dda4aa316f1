//! Credentials of another account, which list nothing and fail nothing.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    ErrorKind, InstanceFilter, InstanceProvisioner as _, ProvisionError,
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule, Phase};

use crate::emulated::Ec2Harness;

#[tokio::test]
async fn trap_57_empty_list_of_another_account_is_told_by_its_id() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let other = Ec2Harness::with_knobs(|knobs| knobs.account = "210987654321".to_owned());
    let (ec2, wrong) = (harness.open().await, other.open().await);
    ec2.launch_instance(&harness.config()).await.unwrap();
    let listed = wrong.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed, []);
    let right = ec2.account_id().await.unwrap().unwrap();
    let wrong = wrong.account_id().await.unwrap().unwrap();
    assert_eq!(right.as_str(), "aws/123456789012/us-east-1");
    assert_eq!(wrong.as_str(), "aws/210987654321/us-east-1");
    assert_eq!(harness.call_count("GetCallerIdentity"), 1);
}

#[tokio::test]
async fn account_of_a_handle_follows_its_credentials() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let before = ec2.account_id().await.unwrap().unwrap();
    let mut knobs = harness.emulator().knobs();
    knobs.account = "210987654321".to_owned();
    harness.emulator().set_knobs(knobs);
    let after = ec2.account_id().await.unwrap().unwrap();
    assert_ne!(before, after);
}

/// Reads the account while every call of STS fails.
async fn failed(harness: &Ec2Harness, fault: Fault) -> ProvisionError {
    let ec2 = harness.open().await;
    let rule = FaultRule::always(Action::GetCallerIdentity, fault);
    harness.emulator().add_fault(rule);
    let error = ec2.account_id().await.unwrap_err();
    harness.emulator().clear_faults();
    error
}

#[tokio::test]
async fn failures_of_sts_are_classified() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let phase = Phase::Before;
    let cases = [
        (
            Fault::Throttled {
                retry_after_secs: None,
            },
            ErrorKind::Throttled,
        ),
        (Fault::ExpiredCredentials, ErrorKind::Unauthenticated),
        (Fault::ServerError { phase }, ErrorKind::Unavailable),
        (Fault::Lost { phase }, ErrorKind::Unavailable),
        (Fault::Malformed, ErrorKind::Unexpected),
    ];
    for (fault, kind) in cases {
        let error = failed(&harness, fault.clone()).await;
        assert_eq!(error.kind(), kind, "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn account_is_not_read_if_it_is_not_reported() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let mut options = harness.options();
    options.report_account = false;
    let launch = Ec2Harness::launch_config();
    let ec2 = harness.open_with_options(launch, options).await;
    assert_eq!(ec2.account_id().await.unwrap(), None);
    assert_eq!(harness.total_calls(), 0);
}
