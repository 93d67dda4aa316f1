//! Stale reads, terminated instances and late failures.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _, RetryAdvice,
};
use fleetwright_emulators::ec2::LateFailure;

use crate::{alive, config_with_token, emulated::Ec2Harness, wait_for_state};

const LAG: Duration = Duration::from_millis(40);

#[tokio::test]
async fn trap_01_recent_launch_that_is_not_found_is_read_again() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.writes = LAG);
    let (ec2, other) = (harness.open().await, harness.open().await);
    for _ in 0..5 {
        let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
        if let Err(error) = other.describe_instance(&id).await {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert_eq!(error.retry(), RetryAdvice::Never, "{error}");
        }
        assert_eq!(ec2.describe_instance(&id).await.unwrap().id, id);
    }
}

#[tokio::test]
async fn trap_02_termination_right_after_launch_succeeds() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.writes = LAG);
    let ec2 = harness.open().await;
    for _ in 0..5 {
        let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
        ec2.terminate_instance(&id).await.unwrap();
        wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    }
    assert_eq!(alive(&harness), 0);
}

#[tokio::test]
async fn trap_03_terminated_instances_are_listed_only_on_request() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let mut config = harness.config();
    config.tags.insert("fleet-id", "blue").unwrap();
    let id = ec2.launch_instance(&config).await.unwrap().id;
    ec2.terminate_instance(&id).await.unwrap();
    wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    let filter = InstanceFilter::tagged("fleet-id", "blue").unwrap();
    assert_eq!(ec2.list_instances(&filter).await.unwrap(), []);
    let all = ec2.list_instances(&filter.in_any_state()).await.unwrap();
    assert_eq!(all[0].id, id);
}

#[tokio::test]
async fn trap_04_stale_list_does_not_cause_a_second_launch() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.reads = LAG);
    let config = config_with_token(&harness, "t-1");
    let first = harness.open().await.launch_instance(&config).await.unwrap();
    for _ in 0..5 {
        let replayed = harness.open().await.launch_instance(&config).await.unwrap();
        assert_eq!(replayed.id, first.id);
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_05_pending_instance_has_no_public_address() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.timing.boot = Duration::from_secs(60));
    let ec2 = harness.open().await;
    let info = ec2.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(
        (info.state, info.public_ip),
        (CloudInstanceState::Pending, None)
    );
}

#[tokio::test]
async fn trap_07_late_launch_failure_has_a_state_reason() {
    let code = "Client.VolumeLimitExceeded";
    let harness = Ec2Harness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new(code, "volume limit reached")];
    });
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let status = wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    let reason = status.state_reason.unwrap();
    assert!(
        reason.contains(code) && reason.contains("volume limit reached"),
        "{reason}"
    );
}
