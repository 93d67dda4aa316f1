//! The options of a launch beside image and size.

use fleetwright_azure::{
    MarketplacePlan, SystemIdentity, UserDataAs,
    fleetwright::{ErrorKind, InstanceFilter, InstanceProvisioner as _, UserData},
};
use fleetwright_contract_tests::Harness as _;

use fleetwright_provider_testkit::emulated::parse_name;

use crate::emulated::{AzureHarness, KEY};

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
