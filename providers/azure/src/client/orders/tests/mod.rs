//! The documents that requests become.

use super::*;

fn order() -> MachineSpec {
    MachineSpec {
        location: "eastus".to_owned(),
        zone: None,
        size: "Standard_B1s".to_owned(),
        source: Source::Resource("/image".to_owned()),
        disk_gib: Some(64),
        disk_type: None,
        system_disk: crate::SystemDisk::Managed,
        data_disks: Vec::new(),
        boot_security: None,
        accelerated_networking: AcceleratedNetworking::Off,
        admin_user: "me".to_owned(),
        ssh_public_key: "ssh-ed25519 AAAA".to_owned(),
        custom_data: Some("IyE=".to_owned()),
        user_data: None,
        subnet: "/subnet".to_owned(),
        security_group: None,
        public_address: false,
        spot: Some(Eviction::Deleted),
        system_identity: false,
        user_identities: vec!["/ci".to_owned()],
        plan: None,
        console: true,
        tags: BTreeMap::new(),
    }
}

fn written(order: &MachineSpec) -> Value {
    serde_json::from_slice(&document(order, "fw-1").unwrap()).unwrap()
}

#[test]
fn document_has_user_identities_and_no_nulls() {
    let document = written(&order());
    let identity = json!({ "type": "UserAssigned", "userAssignedIdentities": { "/ci": {} } });
    assert_eq!(document["identity"], identity);
    assert!(!document.to_string().contains("null"), "{document}");
    let properties = &document["properties"];
    assert_eq!(
        properties["storageProfile"]["imageReference"]["id"],
        "/image"
    );
    assert_eq!(properties["storageProfile"]["osDisk"]["diskSizeGB"], 64);
    assert_eq!(properties["evictionPolicy"], "Delete");
    assert_eq!(properties["billingProfile"]["maxPrice"], -1.0);
    assert_eq!(properties["osProfile"]["customData"], "IyE=");
    let network = properties["networkProfile"].to_string();
    assert!(
        !network.contains("publicIPAddressConfiguration"),
        "{network}"
    );
}

#[test]
fn document_has_the_hardware_options() {
    let mut order = order();
    order.system_disk = crate::SystemDisk::EphemeralNvme;
    let mut disk = crate::DataDisk::new(std::num::NonZeroU32::MIN);
    disk.disk_type = Some("Premium_LRS".to_owned());
    order.data_disks = vec![disk.clone(), disk];
    order.boot_security = Some(BootSecurity::TrustedLaunchWithoutSecureBoot);
    order.accelerated_networking = AcceleratedNetworking::On;
    let document = written(&order);
    let storage = &document["properties"]["storageProfile"];
    let ephemeral = json!({ "option": "Local", "placement": "NvmeDisk" });
    assert_eq!(storage["osDisk"]["diffDiskSettings"], ephemeral);
    assert_eq!(storage["osDisk"]["caching"], "ReadOnly");
    let second = json!({
        "lun": 1, "createOption": "Empty", "deleteOption": "Delete", "diskSizeGB": 1,
        "managedDisk": { "storageAccountType": "Premium_LRS" },
    });
    assert_eq!(storage["dataDisks"][1], second);
    let security = json!({
        "securityType": "TrustedLaunch",
        "uefiSettings": { "secureBootEnabled": false, "vTpmEnabled": true },
    });
    assert_eq!(document["properties"]["securityProfile"], security);
    let nic = "/properties/networkProfile/networkInterfaceConfigurations/0/properties";
    let nic = document.pointer(nic).unwrap();
    assert_eq!(nic["enableAcceleratedNetworking"], true);
}

#[test]
fn image_has_the_generation_of_its_machine() {
    let generation = |name| {
        let image = image("eastus", "/disk", name, &BTreeMap::new());
        let document = serde_json::to_value(image).unwrap();
        document["properties"]["hyperVGeneration"].clone()
    };
    assert_eq!(generation(Some("V1")), "V1");
    assert_eq!(generation(None), Value::Null);
}

#[test]
fn minimal_document_has_neither_identity_nor_price() {
    let mut order = order();
    order.user_identities.clear();
    order.spot = None;
    let document = written(&order);
    assert_eq!(document["identity"], Value::Null);
    assert_eq!(document["properties"]["priority"], Value::Null);
}
