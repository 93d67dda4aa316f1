//! What is there, and what is seen of it.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _, RetryAdvice,
};
use fleetwright_emulators::ec2::LateFailure;

use crate::{alive, config_with_token, emulated::Ec2Harness, wait_for_state};

const LAG: Duration = Duration::from_millis(40);

#[tokio::test]
async fn trap_01_not_found_after_a_launch_is_waited_out() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.writes = LAG);
    let (ec2, other) = (harness.open().await, harness.open().await);
    for _ in 0..5 {
        let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
        if let Err(error) = other.describe_instance(&id).await {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
        }
        assert_eq!(ec2.describe_instance(&id).await.unwrap().id, id);
    }
}

#[tokio::test]
async fn trap_02_a_terminate_soon_after_a_launch_is_not_lost() {
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
async fn trap_03_what_is_terminated_is_listed_only_if_it_is_asked_for() {
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
async fn trap_04_a_list_that_lags_launches_nothing_twice() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.lag.reads = LAG);
    let config = config_with_token(&harness, "t-1");
    let first = harness.open().await.launch_instance(&config).await.unwrap();
    for _ in 0..5 {
        let again = harness.open().await.launch_instance(&config).await.unwrap();
        assert_eq!(again.id, first.id);
    }
    assert_eq!(alive(&harness), 1);
}

#[tokio::test]
async fn trap_05_an_address_that_is_not_there_yet_is_none() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.timing.boot = Duration::from_secs(60));
    let ec2 = harness.open().await;
    let info = ec2.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(
        (info.state, info.public_ip),
        (CloudInstanceState::Pending, None)
    );
}

#[tokio::test]
async fn trap_07_a_launch_that_fails_late_tells_why() {
    let code = "Client.VolumeLimitExceeded";
    let harness = Ec2Harness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new(code, "no more volumes")]
    });
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let status = wait_for_state(&*ec2, &id, CloudInstanceState::Terminated).await;
    let reason = status.state_reason.unwrap();
    assert!(
        reason.contains(code) && reason.contains("no more volumes"),
        "{reason}"
    );
}
