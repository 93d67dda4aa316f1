//! Answers that cannot be understood: typed errors, and never a panic or a hang.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::Ec2Harness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::fleetwright::{
    CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
    ProvisionError,
    wait::{self, WaitPolicy},
};
use fleetwright_emulators::ec2::{Action, Fault, FaultRule, Phase};

const TICK: Duration = Duration::from_millis(10);

#[tokio::test]
async fn broken_answers_are_errors_of_unknown_effect() {
    let broken = [
        Fault::Truncated,
        Fault::Malformed,
        Fault::Reset,
        Fault::Lost {
            phase: Phase::After,
        },
    ];
    for fault in broken {
        let harness = Ec2Harness::with(|_| {});
        let ec2 = harness.open().await;
        let mut config = harness.config();
        let id = ec2.launch_instance(&config).await.unwrap().id;
        // Pending, a stop would be refused before its answer could break.
        let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK);
        let ids = std::slice::from_ref(&id);
        let running = wait::for_state(&*ec2, ids, CloudInstanceState::Running, &policy);
        running.await.unwrap();
        config.launch_token = Some("t-1".parse().unwrap());
        harness
            .emulator()
            .add_fault(FaultRule::always_any(fault.clone()));
        let reads = [
            ec2.describe_instance(&id).await.map(drop),
            ec2.list_instances(&InstanceFilter::new()).await.map(drop),
            ec2.find_launch(config.launch_token.as_ref().unwrap())
                .await
                .map(drop),
            ec2.console_output(&id).await.map(drop),
        ];
        for (at, answer) in reads.into_iter().enumerate() {
            let Err(error) = answer else {
                panic!("{fault:?}: read {at} was answered")
            };
            is_typed(&fault, &error);
            assert_eq!(error.effect(), Effect::None, "{fault:?}: {error}");
        }
        config.launch_token = None;
        let changes = [
            ec2.launch_instance(&config).await.map(drop),
            ec2.stop_instance(&id).await,
            ec2.terminate_instance(&id).await,
        ];
        for (at, answer) in changes.into_iter().enumerate() {
            let Err(error) = answer else {
                panic!("{fault:?}: change {at} was answered")
            };
            is_typed(&fault, &error);
            assert_eq!(error.effect(), Effect::Unknown, "{fault:?}: {error}");
        }
    }
}

fn is_typed(fault: &Fault, error: &ProvisionError) {
    let kinds = [
        ErrorKind::Unexpected,
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
    ];
    assert!(kinds.contains(&error.kind()), "{fault:?}: {error}");
}

#[tokio::test]
async fn a_page_that_leads_to_itself_is_an_error_and_no_circle() {
    let harness = Ec2Harness::with(|_| {});
    let ec2 = harness.open().await;
    let mut config = harness.config();
    config.launch_token = Some("t-1".parse().unwrap());
    let twelve = NonZeroU32::new(12).unwrap();
    ec2.launch_instances(&config, twelve).await.unwrap();
    let circle = || FaultRule::nth(Action::DescribeInstances, 2, Fault::RepeatedToken);
    harness.emulator().add_fault(circle());
    let error = ec2
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
    harness.emulator().clear_faults();
    harness.emulator().add_fault(circle());
    let error = ec2
        .find_launch(config.launch_token.as_ref().unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
}

#[tokio::test]
async fn a_state_that_nobody_knows_is_neither_ready_nor_gone() {
    let harness = Ec2Harness::with(|_| {});
    let ec2 = harness.open().await;
    let id = ec2.launch_instance(&harness.config()).await.unwrap().id;
    let state = "hibernated".to_owned();
    harness
        .emulator()
        .add_fault(FaultRule::always_any(Fault::UnknownState { state }));
    let status = ec2.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Pending);
    assert_eq!(status.native_state.as_deref(), Some("hibernated"));
}
