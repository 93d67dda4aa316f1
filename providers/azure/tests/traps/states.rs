//! The two states of a machine, and billing.

use fleetwright_azure::fleetwright::{
    CloudInstanceState, InstanceFilter, InstanceProvisioner as _,
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::{ExternalAction, LateFailure};
use fleetwright_provider_testkit::canned_responses::{self, CannedResponse};

use crate::{
    emulated::{AzureHarness, GROUP, SUBSCRIPTION, path_of},
    running, wait_for_state,
};

#[tokio::test]
async fn trap_01_power_and_provisioning_are_two_states() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    let fail = ExternalAction::Fail {
        id: path_of(&id),
        code: "VMExtensionProvisioningError".to_owned(),
        message: "an extension failed".to_owned(),
    };
    harness.emulator().perform_external(fail).unwrap();
    let status = azure.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Running);
    assert_eq!(status.native_state.as_deref(), Some("running"));
    assert!(
        status
            .state_reason
            .unwrap()
            .starts_with("VMExtensionProvisioningError")
    );
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    assert_eq!(listed[0].state, CloudInstanceState::Running);
}

#[tokio::test]
async fn trap_02_stop_deallocates_a_powered_off_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    let shutdown = ExternalAction::GuestShutdown { id: path_of(&id) };
    harness.emulator().perform_external(shutdown).unwrap();
    let off = wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    assert!(off.state_reason.unwrap().contains("still allocated"));
    assert!(
        harness.only_instance().allocated,
        "it is off and still billed"
    );
    azure.stop_instance(&id).await.unwrap();
    while harness.only_instance().power_state.as_deref() != Some("deallocated") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!harness.only_instance().allocated);
    assert_eq!(harness.call_count("VirtualMachines_PowerOff"), 0);
}

/// The document of a machine with an instance view.
fn document(view: &str) -> String {
    format!(
        r#"{{"id":"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/fw-1",
        "name":"fw-1","location":"eastus","properties":{{"vmId":"61ca152e-8a94-4455-b97f-c3ec52a06884",
        "timeCreated":"2026-01-02T03:04:05.678+00:00","provisioningState":"Succeeded"{view}}}}}"#
    )
}

/// Returns the states of a machine with an instance view, by each kind of read.
async fn shown(view: &'static str) -> Vec<CloudInstanceState> {
    let respond = move |request: &canned_responses::Request| {
        let path = &request.path;
        if path.contains("/virtualMachines?") {
            return CannedResponse::ok(format!("{{\"value\":[{}]}}", document(view)));
        }
        if path.contains("/virtualMachines/fw-1?") {
            return CannedResponse::ok(document(view));
        }
        CannedResponse::ok(r#"{"value":[]}"#)
    };
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = AzureHarness::open_at(
        &canned_responses::serve(respond).unwrap(),
        harness.options(),
    )
    .await;
    let listed = azure.list_instances(&InstanceFilter::new()).await.unwrap();
    let id = &listed[0].id;
    let status = azure.describe_instance(id).await.unwrap();
    vec![listed[0].state, status.state]
}

#[tokio::test]
async fn trap_03_missing_instance_view_proves_nothing() {
    let both = shown("").await;
    assert_eq!(both, [CloudInstanceState::Pending; 2]);
    let both = shown(r#","instanceView":{"statuses":null}"#).await;
    assert_eq!(both, [CloudInstanceState::Pending; 2]);
}

#[tokio::test]
async fn trap_04_status_codes_with_any_number_of_parts_are_read() {
    let odd = r#","instanceView":{"statuses":[{"level":"Info"},{"code":""},{"code":"OSState/generalized"},
        {"code":"ProvisioningState/failed/Conflict/x","message":null},{"code":"PowerState/running"}]}"#;
    assert_eq!(shown(odd).await, [CloudInstanceState::Running; 2]);
    let unknown = r#","instanceView":{"statuses":[{"code":"PowerState/defrosting"}]}"#;
    assert_eq!(shown(unknown).await, [CloudInstanceState::Pending; 2]);
}

#[tokio::test]
async fn trap_05_machine_with_silent_guest_is_running() {
    let harness = AzureHarness::with_knobs(|knobs| {
        let code = "OSProvisioningTimedOut";
        knobs.late_failures = vec![LateFailure::new(code, "no word from the guest")];
    })
    .wait_for_launch();
    let azure = harness.open().await;
    let launched = azure.launch_instance(&harness.config()).await.unwrap();
    let status = wait_for_state(&*azure, &launched.id, CloudInstanceState::Running).await;
    assert!(
        status
            .state_reason
            .unwrap()
            .starts_with("OSProvisioningTimedOut")
    );
    assert_eq!(harness.only_instance().provisioning_state, "Failed");
    assert_eq!(harness.call_count("VirtualMachines_Delete"), 0);
}

#[tokio::test]
async fn trap_07_public_address_is_kept_and_hidden_during_a_stop() {
    let harness = AzureHarness::with_knobs(|_| {}).wait_for_launch();
    let azure = harness.open().await;
    let id = running(&harness, &*azure).await;
    assert!(
        azure
            .describe_instance(&id)
            .await
            .unwrap()
            .public_ip
            .is_some()
    );
    azure.stop_instance(&id).await.unwrap();
    let stopped = wait_for_state(&*azure, &id, CloudInstanceState::Stopped).await;
    assert_eq!(stopped.public_ip, None);
    azure.start_instance(&id).await.unwrap();
    let again = wait_for_state(&*azure, &id, CloudInstanceState::Running).await;
    let truth = harness.only_instance();
    assert_eq!(again.public_ip, truth.public_ip.map(Into::into));
    assert!(again.public_ip.is_some());
}

#[tokio::test]
async fn evicted_spot_machine_ends_as_configured() {
    use fleetwright_azure::{Eviction, fleetwright::Market};
    for (eviction, state) in [
        (Eviction::Deleted, CloudInstanceState::Terminated),
        (Eviction::Deallocated, CloudInstanceState::Stopped),
    ] {
        let harness = AzureHarness::with_knobs(|_| {});
        let mut launch = AzureHarness::launch_config();
        launch.eviction = eviction;
        let azure = harness.open_with(launch).await;
        let mut config = harness.config();
        config.placement.market = Some(Market::Spot);
        let id = azure.launch_instance(&config).await.unwrap().id;
        wait_for_state(&azure, &id, CloudInstanceState::Running).await;
        let evict = ExternalAction::Evict { id: path_of(&id) };
        harness.emulator().perform_external(evict).unwrap();
        wait_for_state(&azure, &id, state).await;
    }
}
