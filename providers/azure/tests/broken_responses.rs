//! Responses that cannot be understood: typed errors, and never a panic or an endless loop.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod emulated;

use std::{num::NonZeroU32, time::Duration};

use emulated::AzureHarness;
use fleetwright_azure::{
    AzureCredentials, AzureOptions, AzureProvisioner,
    fleetwright::{
        CloudInstanceState, ErrorKind, InstanceFilter, InstanceProvisioner as _,
        wait::{self, WaitPolicy},
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{Fault, FaultRule, Operation};
use fleetwright_provider_testkit::broken_responses::{ChangeOperations, check_broken_responses};

const TICK: Duration = Duration::from_millis(10);

#[tokio::test]
async fn broken_responses_are_typed_errors() {
    let operations = ChangeOperations {
        launch: Operation::VirtualMachinesCreateOrUpdate,
        stop: Operation::VirtualMachinesDeallocate,
        terminate: Operation::VirtualMachinesDelete,
        stop_reads_first: true,
        has_body: false,
    };
    check_broken_responses(|| AzureHarness::with_knobs(|_| {}), operations).await;
}

#[tokio::test]
async fn repeated_page_token_is_an_error() {
    for operation in [
        Operation::VirtualMachinesList,
        Operation::VirtualMachinesListAll,
        Operation::NetworkInterfacesList,
        Operation::PublicIPAddressesList,
    ] {
        // An emulator for each: a list that fails drops the other one beside it, which may arrive late.
        let harness = twelve_running().await;
        let repeated_token = FaultRule::nth(operation, 2, Fault::RepeatedToken);
        harness.emulator().add_fault(repeated_token);
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
    let harness = AzureHarness::with_knobs(|knobs| knobs.page_size = NonZeroU32::new(5).unwrap());
    // The polls of the launches are so rare that the injected faults hit only the calls under test.
    let mut options = harness.options();
    options.poll_interval = Duration::from_secs(3600);
    let azure = harness
        .open_with_options(AzureHarness::launch_config(), options)
        .await;
    let mut config = harness.config();
    config.launch_token = Some("t-1".parse().unwrap());
    let twelve = NonZeroU32::new(12).unwrap();
    let launched = azure.launch_instances(&config, twelve).await.unwrap();
    let ids: Vec<_> = launched.into_iter().map(|info| info.id).collect();
    let policy = WaitPolicy::within(Duration::from_secs(60)).delays(TICK, TICK);
    let reader = harness.open().await;
    let running = wait::for_state(&*reader, &ids, CloudInstanceState::Running, &policy);
    running.await.unwrap();
    harness
}

#[tokio::test]
async fn invalid_settings_create_no_provisioner() {
    let provisioner = |endpoint: &str, group: &str| {
        let mut launch = AzureHarness::launch_config();
        group.clone_into(&mut launch.resource_group);
        let mut options = AzureOptions::default();
        endpoint.clone_into(&mut options.endpoint);
        AzureProvisioner::new(AzureCredentials::token("x"), launch, options)
    };
    let azure = "https://management.azure.com";
    assert!(provisioner(azure, "rg").is_ok());
    let error = provisioner(azure, "no group").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("resource_group"), "{error}");
    // Over http, a token is sent only to this machine.
    for odd in [
        "http://management.azure.com",
        "management.azure.com",
        "ftp://x",
        "",
    ] {
        let error = provisioner(odd, "rg").unwrap_err();
        assert!(error.to_string().contains("endpoint"), "{odd}: {error}");
    }
    assert!(provisioner("http://[::1]:1", "rg").is_ok());
    let mut options = AzureOptions::default();
    options.poll_interval = Duration::ZERO;
    let (credentials, launch) = (AzureCredentials::token("x"), AzureHarness::launch_config());
    let error = AzureProvisioner::new(credentials, launch, options).unwrap_err();
    assert!(error.to_string().contains("poll_interval"), "{error}");
}
