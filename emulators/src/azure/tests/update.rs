//! Changing virtual machines.

use super::*;

#[test]
fn immutable_properties_are_refused_and_omitted_ones_stay() {
    let mut lab = Lab::new();
    lab.running("a");
    let keys = "/properties/osProfile/linuxConfiguration/ssh/publicKeys";
    for (order, code) in [
        (
            order_with("/zones", json!(["1"])),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/location", json!("westus")),
            "InvalidResourceLocation",
        ),
        (
            order_with("/properties/osProfile/customData", json!("eA==")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/osProfile/adminUsername", json!("you")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/osProfile/computerName", json!("b")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with(keys, json!([{ "path": "/x", "keyData": "other" }])),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/hardwareProfile/vmSize", json!("Standard_B2s")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with(
                "/properties/storageProfile/imageReference/version",
                json!("1"),
            ),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/priority", json!("Spot")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/storageProfile/osDisk/diskSizeGB", json!(64)),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with("/properties/licenseType", json!("RHEL_BYOS")),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with(
                "/properties/securityProfile",
                json!({ "encryptionAtHost": true }),
            ),
            "PropertyChangeNotAllowed",
        ),
        (
            order_with(&format!("{NIC}/deleteOption"), json!("Detach")),
            "PropertyChangeNotAllowed",
        ),
    ] {
        let refused = lab.refused(&format!("PUT {VMS}/a"), order.clone());
        assert_eq!(refused, (409, code.to_owned()), "{order}");
    }
    let before = lab.vm("a");
    lab.put(
        "a",
        json!({ "location": "East US", "tags": { "Owner": "me" } }),
    );
    lab.pass(0);
    let after = lab.vm("a");
    assert_eq!(
        (after.vm_id, after.disks, after.nics),
        (before.vm_id, before.disks, before.nics)
    );
}

#[test]
fn document_that_was_read_can_be_sent_back() {
    let mut lab = Lab::new();
    lab.running("a");
    let shown = lab.get(&format!("{VMS}/a?$expand=instanceView"));
    let answer = lab.put("a", shown);
    assert_eq!(answer.status, 200);
    lab.pass(0);
    assert_eq!(lab.status(&answer)["status"], "Succeeded");
}

#[test]
fn size_changes_only_while_deallocated() {
    let mut lab = Lab::new();
    lab.running("a");
    let bigger = json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_B2s" } } });
    let patch = format!("PATCH {VMS}/a");
    assert_eq!(
        lab.refused(&patch, bigger.clone()),
        (409, "OperationNotAllowed".to_owned())
    );
    lab.post("a", "powerOff");
    assert_eq!(lab.refused(&patch, bigger.clone()).0, 409);
    lab.post("a", "deallocate");
    lab.ok(&patch, bigger);
    lab.pass(0);
    lab.post("a", "start");
    let vm = lab.vm("a");
    assert_eq!(
        (vm.size.as_str(), vm.power_state.as_deref()),
        ("Standard_B2s", Some("running"))
    );
    let strange = json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_D2ps_v5" } } });
    assert_eq!(lab.refused(&patch, strange).1, "BadRequest");
}

#[test]
fn quota_counts_a_resized_machine_once() {
    let mut lab = Lab::with(|knobs| knobs.vcpu_quota = Some(2));
    lab.running("a");
    lab.post("a", "deallocate");
    let size = |name: &str| json!({ "properties": { "hardwareProfile": { "vmSize": name } } });
    let patch = format!("PATCH {VMS}/a");
    assert_eq!(
        lab.refused(&patch, size("Standard_D4s_v5")).1,
        "OperationNotAllowed"
    );
    let mut both = size("Standard_B2s");
    both["properties"]["storageProfile"] = json!({ "dataDisks": [{ "lun": 1 }] });
    assert_eq!(lab.refused(&patch, both).1, "InvalidParameter");
    assert_eq!(lab.vm("a").size, "Standard_B1s");
    lab.ok(&patch, size("Standard_B2s"));
    assert_eq!(
        lab.refused(&format!("PUT {VMS}/b"), order()).1,
        "OperationNotAllowed"
    );
}

#[test]
fn change_during_an_operation_is_a_conflict() {
    let mut lab = Lab::new();
    lab.put("a", order());
    let tags = json!({ "tags": { "x": "y" } });
    assert_eq!(
        lab.refused(&format!("PATCH {VMS}/a"), tags.clone()),
        (409, "Conflict".to_owned())
    );
    lab.pass(100);
    lab.ok(&format!("PATCH {VMS}/a"), tags);
    assert_eq!(lab.vm("a").provisioning_state, "Updating");
    lab.pass(0);
    assert_eq!(lab.vm("a").provisioning_state, "Succeeded");
    let missing = lab.refused(&format!("PATCH {VMS}/b"), json!({}));
    assert_eq!(missing, (404, "ResourceNotFound".to_owned()));
}

#[test]
fn delete_options_can_be_changed() {
    let mut lab = Lab::new();
    lab.running("a");
    let nic = lab.vm("a").nics.remove(0);
    let keep = json!({ "properties": {
        "storageProfile": { "osDisk": { "deleteOption": "Detach" } },
        "networkProfile": { "networkInterfaces": [{ "id": nic, "properties": { "deleteOption": "Detach" } }] },
    } });
    lab.ok(&format!("PATCH {VMS}/a"), keep);
    lab.pass(0);
    lab.delete("a");
    let truth = lab.oracle();
    assert_eq!(
        (truth.vms.len(), truth.nics.len(), truth.disks.len()),
        (0, 1, 1)
    );
}
