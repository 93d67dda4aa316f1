//! Stopping, starting, and instances that stop by themselves.

use std::time::Duration;

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::{
    Ec2LaunchConfig, GuestShutdown,
    fleetwright::{CloudInstanceState, ErrorKind, InstanceProvisioner as _, Market, RetryAdvice},
};
use fleetwright_emulators::ec2::ExternalAction;

use crate::{emulated::Ec2Harness, wait_for_state};

#[tokio::test]
async fn trap_41_spot_request_is_one_time_and_cannot_be_stopped() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let (ec2, mut config) = (harness.open().await, harness.config());
    config.placement.market = Some(Market::Spot);
    let id = ec2.launch_instance(&config).await.unwrap().id;
    let sent = harness.latest_call("RunInstances").parameters;
    assert_eq!(
        sent["InstanceMarketOptions.SpotOptions.SpotInstanceType"],
        "one-time"
    );
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    let error = ec2.stop_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(
        ec2.describe_instance(&id).await.unwrap().state,
        CloudInstanceState::Running
    );
    ec2.terminate_instance(&id).await.unwrap();
}

#[tokio::test]
async fn trap_42_guest_shutdown_stops_or_terminates_as_configured() {
    let harness = Ec2Harness::with_knobs(|_| {});
    for (configured, end_state) in [
        (GuestShutdown::Stop, CloudInstanceState::Stopped),
        (GuestShutdown::Terminate, CloudInstanceState::Terminated),
    ] {
        let mut launch = Ec2LaunchConfig::new();
        launch.guest_shutdown = configured;
        let ec2 = harness.open_with(launch).await;
        let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
        wait_for_state(&ec2, &id, CloudInstanceState::Running).await;
        harness
            .emulator()
            .perform_external(ExternalAction::GuestShutdown { id: id.to_string() })
            .unwrap();
        wait_for_state(&ec2, &id, end_state).await;
    }
}

#[tokio::test]
async fn trap_43_start_of_a_stopping_instance_is_a_conflict_with_a_retry_delay() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.timing.stop = Duration::from_millis(400));
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    ec2.stop_instance(&id).await.unwrap();
    let error = ec2.start_instance(&id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(matches!(error.retry(), RetryAdvice::After(_)), "{error}");
    wait_for_state(&*ec2, &id, CloudInstanceState::Stopped).await;
    ec2.start_instance(&id).await.unwrap();
    wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
}

#[tokio::test]
async fn trap_44_stop_changes_the_public_address_and_keeps_the_private_one() {
    let harness = Ec2Harness::with_knobs(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let before = wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    ec2.stop_instance(&id).await.unwrap();
    assert_eq!(
        wait_for_state(&*ec2, &id, CloudInstanceState::Stopped)
            .await
            .public_ip,
        None
    );
    ec2.start_instance(&id).await.unwrap();
    let after = wait_for_state(&*ec2, &id, CloudInstanceState::Running).await;
    assert!(after.public_ip.is_some() && after.public_ip != before.public_ip);
    assert_eq!(after.private_ip, before.private_ip);
}
