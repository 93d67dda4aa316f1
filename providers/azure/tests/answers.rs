//! Answers that cannot be understood: typed errors, and never a panic or a hang.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::AzureHarness;
use fleetwright_azure::{
    AzureCredentials, AzureOptions, AzureProvisioner,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
        wait::{self, WaitPolicy},
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation, Phase};

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
        let harness = AzureHarness::with(|_| {});
        let azure = harness.open().await;
        let mut config = harness.config();
        let id = azure.launch_instance(&config).await.unwrap().id;
        let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK);
        let ids = std::slice::from_ref(&id);
        let running = wait::for_state(&*azure, ids, CloudInstanceState::Running, &policy);
        running.await.unwrap();
        config.launch_token = Some("t-1".parse().unwrap());
        let token = config.launch_token.clone().unwrap();
        harness
            .emulator()
            .add_fault(FaultRule::always_any(fault.clone()));
        let reads = [
            azure.describe_instance(&id).await.map(drop),
            azure.list_instances(&InstanceFilter::new()).await.map(drop),
            azure.find_launch(&token).await.map(drop),
            azure.console_output(&id).await.map(drop),
            // What a change looks at first has no effect either.
            azure.stop_instance(&id).await,
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
        harness.emulator().add_fault(FaultRule::always(
            Operation::VirtualMachinesCreateOrUpdate,
            fault.clone(),
        ));
        let error = azure.launch_instance(&config).await.unwrap_err();
        assert!(TYPED.contains(&error.kind()), "{fault:?}: {error}");
        assert_eq!(error.effect(), Effect::Unknown, "{fault:?}: {error}");
        // The answers to these have no body that could break.
        if matches!(fault, Fault::Truncated) {
            continue;
        }
        for operation in [
            Operation::VirtualMachinesDeallocate,
            Operation::VirtualMachinesDelete,
        ] {
            harness
                .emulator()
                .add_fault(FaultRule::always(operation, fault.clone()));
        }
        let changes = [
            azure.stop_instance(&id).await,
            azure.terminate_instance(&id).await,
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
    for operation in [
        Operation::VirtualMachinesList,
        Operation::VirtualMachinesListAll,
        Operation::NetworkInterfacesList,
        Operation::PublicIPAddressesList,
    ] {
        // An emulator for each: a list that fails drops the other one beside it, which may arrive late.
        let harness = twelve_running().await;
        let circle = FaultRule::nth(operation, 2, Fault::RepeatedToken);
        harness.emulator().add_fault(circle);
        // A handle that knows no addresses yet.
        let azure = harness.open().await;
        let error = azure
            .list_instances(&InstanceFilter::new())
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Unexpected,
            "{operation:?}: {error}"
        );
    }
}

/// Three pages of machines.
async fn twelve_running() -> AzureHarness {
    let harness = AzureHarness::with(|knobs| knobs.page_size = NonZeroU32::new(5).unwrap());
    // Who watches what it launches looks so rarely that no fault strikes it instead.
    let mut options = harness.options();
    options.poll_interval = Duration::from_secs(3600);
    let azure = harness.behaving(AzureHarness::launch_config(), options);
    let mut config = harness.config();
    config.launch_token = Some("t-1".parse().unwrap());
    let twelve = NonZeroU32::new(12).unwrap();
    let launched = azure.launch_instances(&config, twelve).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK);
    let looking = harness.open().await;
    let running = wait::for_state(&*looking, &ids, CloudInstanceState::Running, &policy);
    running.await.unwrap();
    harness
}

#[tokio::test]
async fn a_provisioner_with_a_mistake_is_not_made() {
    let made = |endpoint: &str, group: &str| {
        let mut launch = AzureHarness::launch_config();
        group.clone_into(&mut launch.resource_group);
        let mut options = AzureOptions::default();
        endpoint.clone_into(&mut options.endpoint);
        AzureProvisioner::new(AzureCredentials::token("x"), launch, options)
    };
    let azure = "https://management.azure.com";
    assert!(made(azure, "rg").is_ok());
    let error = made(azure, "no group").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("resource_group"), "{error}");
    // A token goes over http to nobody but this machine.
    for odd in [
        "http://management.azure.com",
        "management.azure.com",
        "ftp://x",
        "",
    ] {
        let error = made(odd, "rg").unwrap_err();
        assert!(error.to_string().contains("endpoint"), "{odd}: {error}");
    }
    assert!(made("http://[::1]:1", "rg").is_ok());
    let mut options = AzureOptions::default();
    options.poll_interval = Duration::ZERO;
    let (who, launch) = (AzureCredentials::token("x"), AzureHarness::launch_config());
    let error = AzureProvisioner::new(who, launch, options).unwrap_err();
    assert!(error.to_string().contains("poll_interval"), "{error}");
}
