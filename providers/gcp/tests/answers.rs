//! Answers that cannot be understood: typed errors, and never a panic or a hang.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::GcpHarness;
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::gcp::{Fault, FaultRule, Method, Phase};
use fleetwright_gcp::{
    GcpLaunchConfig, GcpOptions, GcpProvisioner,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _, Zone,
        wait::{self, WaitPolicy},
    },
    google_cloud_auth::credentials::anonymous,
};

const TICK: Duration = Duration::from_millis(10);

const TYPED: [ErrorKind; 3] = [
    ErrorKind::Unexpected,
    ErrorKind::Unavailable,
    ErrorKind::Timeout,
];

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
        let harness = GcpHarness::with(|_| {});
        let gcp = harness.open().await;
        let mut config = harness.config();
        let id = gcp.launch_instance(&config).await.unwrap().id;
        let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK);
        let ids = std::slice::from_ref(&id);
        let running = wait::for_state(&*gcp, ids, CloudInstanceState::Running, &policy);
        running.await.unwrap();
        config.launch_token = Some("t-1".parse().unwrap());
        let token = config.launch_token.clone().unwrap();
        harness
            .emulator()
            .add_fault(FaultRule::always_any(fault.clone()));
        let reads = [
            gcp.describe_instance(&id).await.map(drop),
            gcp.list_instances(&InstanceFilter::new()).await.map(drop),
            gcp.find_launch(&token).await.map(drop),
            gcp.console_output(&id).await.map(drop),
            // What a change looks at first has no effect either.
            gcp.stop_instance(&id).await,
        ];
        for (at, answer) in reads.into_iter().enumerate() {
            let Err(error) = answer else {
                panic!("{fault:?}: read {at} was answered")
            };
            assert!(TYPED.contains(&error.kind()), "{fault:?}: {error}");
            assert_eq!(error.effect(), Effect::None, "{fault:?}: {error}");
        }
        harness.emulator().clear_faults();
        config.launch_token = None;
        for method in [
            Method::InstancesInsert,
            Method::InstancesStop,
            Method::InstancesDelete,
        ] {
            harness
                .emulator()
                .add_fault(FaultRule::always(method, fault.clone()));
        }
        let changes = [
            gcp.launch_instance(&config).await.map(drop),
            gcp.stop_instance(&id).await,
            gcp.terminate_instance(&id).await,
        ];
        for (at, answer) in changes.into_iter().enumerate() {
            let Err(error) = answer else {
                panic!("{fault:?}: change {at} was answered")
            };
            assert!(TYPED.contains(&error.kind()), "{fault:?}: {error}");
            assert_eq!(error.effect(), Effect::Unknown, "{fault:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_page_that_leads_to_itself_is_an_error_and_no_circle() {
    let harness = GcpHarness::with(|_| {});
    let gcp = harness.open().await;
    let mut config = harness.config();
    config.launch_token = Some("t-1".parse().unwrap());
    let twelve = NonZeroU32::new(12).unwrap();
    gcp.launch_instances(&config, twelve).await.unwrap();
    let list = Method::InstancesAggregatedList;
    let circle = || FaultRule::nth(list, 2, Fault::RepeatedToken);
    harness.emulator().add_fault(circle());
    let error = gcp
        .list_instances(&InstanceFilter::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
    harness.emulator().clear_faults();
    harness.emulator().add_fault(circle());
    let token = config.launch_token.as_ref().unwrap();
    let error = gcp.find_launch(token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
}

#[tokio::test]
async fn a_provisioner_with_a_mistake_is_not_made() {
    let zones = [Zone::new("us-central1-a").unwrap()];
    let launch = GcpLaunchConfig::new("No Project", zones);
    let nobody = anonymous::Builder::new().build();
    let made = GcpProvisioner::new(nobody, None, launch, GcpOptions::default()).await;
    let error = made.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("project"), "{error}");
}
