//! The options of a launch beside image and size.

use std::num::NonZeroU32;

use fleetwright_azure::{
    AcceleratedNetworking, BootSecurity, DataDisk, MarketplacePlan, SystemDisk, SystemIdentity,
    UserDataAs,
    fleetwright::{
        CloudInstanceState, Effect, ErrorKind, InstanceFilter, InstanceProvisioner as _,
        SnapshotRequest, UserData,
    },
};
use fleetwright_contract_tests::Harness as _;
use fleetwright_emulators::azure::LateFailure;

use fleetwright_provider_testkit::emulated::parse_name;

use crate::{
    count_resources,
    emulated::{AzureHarness, KEY},
    wait_for_state, wait_until_deleted,
};

/// A size that offers accelerated networking and ephemeral disks.
const CAPABLE: &str = "Standard_DS1_v2";

#[tokio::test]
async fn trap_42_user_data_is_transported_exactly_or_refused() {
    let harness = AzureHarness::with_knobs(|_| {});
    let azure = harness.open().await;
    let most = azure.capabilities().max_user_data_bytes;
    let bytes: Vec<u8> = (0..=255).cycle().take(most).collect();
    let mut config = harness.config();
    config.user_data = Some(UserData::new(bytes.clone()).unwrap());
    azure.launch_instance(&config).await.unwrap();
    assert_eq!(harness.only_instance().custom_data, Some(bytes.clone()));
    config.user_data = Some(UserData::new(vec![0; most + 1]).unwrap());
    let error = azure.launch_instance(&config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(harness.call_count("VirtualMachines_CreateOrUpdate"), 1);
    // User data for the metadata service is another field.
    let mut launch = AzureHarness::launch_config();
    launch.user_data = UserDataAs::UserData;
    let azure = harness.open_with(launch).await;
    config.user_data = Some(UserData::new(*b"#!").unwrap());
    azure.launch_instance(&config).await.unwrap();
    let sent = harness
        .latest_call("VirtualMachines_CreateOrUpdate")
        .parameters;
    assert_eq!(sent["body.properties.userData"], "IyE=");
    assert!(!sent.contains_key("body.properties.osProfile.customData"));
}

#[tokio::test]
async fn trap_44_machine_has_key_and_marketplace_plan() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.ssh_public_key = "password".to_owned();
    assert_eq!(launch.check().unwrap_err().field(), "ssh_public_key");
    let mut launch = AzureHarness::launch_config();
    launch.plan = Some(MarketplacePlan::new("sku", "publisher", "offer"));
    let azure = harness.open_with(launch).await;
    azure.launch_instance(&harness.config()).await.unwrap();
    let sent = harness
        .latest_call("VirtualMachines_CreateOrUpdate")
        .parameters;
    let linux = "body.properties.osProfile.linuxConfiguration";
    assert_eq!(sent[&format!("{linux}.ssh.publicKeys.0.keyData")], KEY);
    assert_eq!(
        sent[&format!("{linux}.disablePasswordAuthentication")],
        "true"
    );
    assert_eq!(sent["body.plan.product"], "offer");
    assert!(!sent.keys().any(|key| key.contains("adminPassword")));
}

#[tokio::test]
async fn identities_groups_and_disks_reach_the_request() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.network_security_group = Some(parse_name("nsg"));
    launch.os_disk_type = Some("StandardSSD_LRS".to_owned());
    launch.system_identity = SystemIdentity::Assigned;
    let identity = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ci";
    launch.user_identities = [identity.to_owned()].into();
    launch.tags = [("site".to_owned(), "x".to_owned())].into();
    let azure = harness.open_with(launch).await;
    let info = azure.launch_instance(&harness.config()).await.unwrap();
    assert_eq!(info.tags.get("site"), Some("x"));
    let sent = harness
        .latest_call("VirtualMachines_CreateOrUpdate")
        .parameters;
    assert_eq!(sent["body.identity.type"], "SystemAssigned, UserAssigned");
    let nic = "body.properties.networkProfile.networkInterfaceConfigurations.0.properties";
    assert!(sent[&format!("{nic}.networkSecurityGroup.id")].ends_with("/nsg"));
    let disk = "body.properties.storageProfile.osDisk.managedDisk.storageAccountType";
    assert_eq!(sent[disk], "StandardSSD_LRS");
    let listed = azure.list_instances(&InstanceFilter::new()).await;
    assert_eq!(listed.unwrap().len(), 1);
}

#[tokio::test]
async fn boot_security_networking_and_data_disks_reach_the_machine() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.boot_security = Some(BootSecurity::TrustedLaunch);
    launch.accelerated_networking = AcceleratedNetworking::On;
    let mut fast = DataDisk::new(NonZeroU32::new(64).unwrap());
    fast.disk_type = Some("Premium_LRS".to_owned());
    launch.data_disks = vec![fast, DataDisk::new(NonZeroU32::new(32).unwrap())];
    let azure = harness.open_with(launch).await;
    let mut config = harness.config();
    config.instance_type = parse_name(CAPABLE);
    let id = azure.launch_instance(&config).await.unwrap().id;
    let sent = harness
        .latest_call("VirtualMachines_CreateOrUpdate")
        .parameters;
    let security = "body.properties.securityProfile";
    assert_eq!(sent[&format!("{security}.securityType")], "TrustedLaunch");
    let secure_boot = format!("{security}.uefiSettings.secureBootEnabled");
    assert_eq!(sent[&secure_boot], "true");
    let nic = "body.properties.networkProfile.networkInterfaceConfigurations.0.properties";
    assert_eq!(sent[&format!("{nic}.enableAcceleratedNetworking")], "true");
    wait_for_state(&azure, &id, CloudInstanceState::Running).await;
    let disks = harness.emulator().oracle().disks;
    let mut sizes: Vec<_> = disks.iter().map(|disk| disk.gib).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [30, 32, 64]);
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn data_disks_of_a_failed_creation_are_deleted() {
    let harness = AzureHarness::with_knobs(|knobs| {
        knobs.late_failures = vec![LateFailure::new("AllocationFailed", "no")];
    });
    let harness = harness.wait_for_launch();
    let mut launch = AzureHarness::launch_config();
    launch.data_disks = vec![DataDisk::new(NonZeroU32::MIN); 3];
    let azure = harness.open_with(launch).await;
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    wait_until_deleted(&harness).await;
}

#[tokio::test]
async fn trap_49_machine_with_an_ephemeral_disk_cannot_be_stopped_or_captured() {
    let harness = AzureHarness::with_knobs(|_| {});
    let mut launch = AzureHarness::launch_config();
    launch.system_disk = SystemDisk::EphemeralCache;
    let azure = harness.open_with(launch).await;
    let error = azure.launch_instance(&harness.config()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("system_disk"), "{error}");
    assert_eq!(count_resources(&harness), [0; 4]);
    let mut config = harness.config();
    config.instance_type = parse_name(CAPABLE);
    let id = azure.launch_instance(&config).await.unwrap().id;
    wait_for_state(&azure, &id, CloudInstanceState::Running).await;
    let request = SnapshotRequest::new("copy").unwrap();
    let errors = [
        azure.stop_instance(&id).await.unwrap_err(),
        azure.snapshot_image(&id, &request).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(error.effect(), Effect::None, "{error}");
    }
    let status = azure.describe_instance(&id).await.unwrap();
    assert_eq!(status.state, CloudInstanceState::Running);
    azure.terminate_instance(&id).await.unwrap();
    wait_until_deleted(&harness).await;
}
