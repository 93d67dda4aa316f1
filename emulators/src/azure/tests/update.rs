//! Changing virtual machines.

use super::*;

#[test]
fn immutable_properties_are_refused_and_omitted_ones_stay() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let keys = "/properties/osProfile/linuxConfiguration/ssh/publicKeys";
    for (vm_body, code) in [
        (
            vm_body_with("/zones", json!(["1"])),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/location", json!("westus")),
            "InvalidResourceLocation",
        ),
        (
            vm_body_with("/properties/osProfile/customData", json!("eA==")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/osProfile/adminUsername", json!("you")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/osProfile/computerName", json!("b")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with(keys, json!([{ "path": "/x", "keyData": "other" }])),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/hardwareProfile/vmSize", json!("Standard_B2s")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with(
                "/properties/storageProfile/imageReference/version",
                json!("1"),
            ),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/priority", json!("Spot")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/storageProfile/osDisk/diskSizeGB", json!(64)),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with("/properties/licenseType", json!("RHEL_BYOS")),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with(
                "/properties/securityProfile",
                json!({ "encryptionAtHost": true }),
            ),
            "PropertyChangeNotAllowed",
        ),
        (
            vm_body_with(&format!("{NIC}/deleteOption"), json!("Detach")),
            "PropertyChangeNotAllowed",
        ),
    ] {
        let refused = fixture.refused(&format!("PUT {VMS}/a"), vm_body.clone());
        assert_eq!(refused, (409, code.to_owned()), "{vm_body}");
    }
    let before = fixture.vm("a");
    fixture.put(
        "a",
        json!({ "location": "East US", "tags": { "Owner": "me" } }),
    );
    fixture.advance(0);
    let after = fixture.vm("a");
    assert_eq!(
        (after.vm_id, after.disks, after.nics),
        (before.vm_id, before.disks, before.nics)
    );
}

#[test]
fn document_that_was_read_can_be_sent_back() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let document = fixture.get(&format!("{VMS}/a?$expand=instanceView"));
    let response = fixture.put("a", document);
    assert_eq!(response.status, 200);
    fixture.advance(0);
    assert_eq!(fixture.status(&response)["status"], "Succeeded");
}

#[test]
fn size_changes_only_while_deallocated() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let bigger = json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_B2s" } } });
    let patch = format!("PATCH {VMS}/a");
    assert_eq!(
        fixture.refused(&patch, bigger.clone()),
        (409, "OperationNotAllowed".to_owned())
    );
    fixture.post("a", "powerOff");
    assert_eq!(fixture.refused(&patch, bigger.clone()).0, 409);
    fixture.post("a", "deallocate");
    fixture.ok(&patch, bigger);
    fixture.advance(0);
    fixture.post("a", "start");
    let vm = fixture.vm("a");
    assert_eq!(
        (vm.size.as_str(), vm.power_state.as_deref()),
        ("Standard_B2s", Some("running"))
    );
    let other_architecture =
        json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_D2ps_v5" } } });
    assert_eq!(fixture.refused(&patch, other_architecture).1, "BadRequest");
}

#[test]
fn quota_counts_a_resized_machine_once() {
    let mut fixture = Fixture::with(|knobs| knobs.vcpu_quota = Some(2));
    fixture.running("a");
    fixture.post("a", "deallocate");
    let size = |name: &str| json!({ "properties": { "hardwareProfile": { "vmSize": name } } });
    let patch = format!("PATCH {VMS}/a");
    assert_eq!(
        fixture.refused(&patch, size("Standard_D4s_v5")).1,
        "OperationNotAllowed"
    );
    let mut both = size("Standard_B2s");
    both["properties"]["storageProfile"] = json!({ "dataDisks": [{ "lun": 1 }] });
    assert_eq!(fixture.refused(&patch, both).1, "InvalidParameter");
    assert_eq!(fixture.vm("a").size, "Standard_B1s");
    fixture.ok(&patch, size("Standard_B2s"));
    assert_eq!(
        fixture.refused(&format!("PUT {VMS}/b"), vm_body()).1,
        "OperationNotAllowed"
    );
}

#[test]
fn change_during_an_operation_is_a_conflict() {
    let mut fixture = Fixture::new();
    fixture.put("a", vm_body());
    let tags = json!({ "tags": { "x": "y" } });
    assert_eq!(
        fixture.refused(&format!("PATCH {VMS}/a"), tags.clone()),
        (409, "Conflict".to_owned())
    );
    fixture.advance(100);
    fixture.ok(&format!("PATCH {VMS}/a"), tags);
    assert_eq!(fixture.vm("a").provisioning_state, "Updating");
    fixture.advance(0);
    assert_eq!(fixture.vm("a").provisioning_state, "Succeeded");
    let missing = fixture.refused(&format!("PATCH {VMS}/b"), json!({}));
    assert_eq!(missing, (404, "ResourceNotFound".to_owned()));
}

#[test]
fn delete_options_can_be_changed() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let nic = fixture.vm("a").nics.remove(0);
    let keep = json!({ "properties": {
        "storageProfile": { "osDisk": { "deleteOption": "Detach" } },
        "networkProfile": { "networkInterfaces": [{ "id": nic, "properties": { "deleteOption": "Detach" } }] },
    } });
    fixture.ok(&format!("PATCH {VMS}/a"), keep);
    fixture.advance(0);
    fixture.delete("a");
    let truth = fixture.oracle();
    assert_eq!(
        (truth.vms.len(), truth.nics.len(), truth.disks.len()),
        (0, 1, 1)
    );
}
