//! Deleting virtual machines, and the resources that stay.

use super::*;

#[test]
fn delete_options_are_applied() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let mut kept = vm_body_with(
        "/properties/storageProfile/osDisk/deleteOption",
        json!(null),
    );
    let nic = kept.pointer_mut(NIC).unwrap();
    nic["deleteOption"] = json!("Detach");
    fixture.put("b", kept);
    fixture.advance(100);
    fixture.delete("a");
    let truth = fixture.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    fixture.delete("b");
    let truth = fixture.oracle();
    assert!(truth.vms.is_empty());
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    assert_eq!(
        (&truth.nics[0].attached_to, &truth.disks[0].attached_to),
        (&None, &None)
    );
    // The public address is deleted with the interface, as its delete option says.
    fixture.ok(&format!("DELETE {}", truth.nics[0].id), Value::Null);
    fixture.ok(&format!("DELETE {}", truth.disks[0].id), Value::Null);
    fixture.advance(0);
    let truth = fixture.oracle();
    assert!(truth.nics.is_empty() && truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn deleting_a_missing_resource_succeeds() {
    let mut fixture = Fixture::new();
    let delete =
        |fixture: &mut Fixture, path: &str| fixture.call(&format!("DELETE {path}"), Value::Null);
    for kind in [
        "Compute/virtualMachines",
        "Compute/disks",
        "Compute/images",
        "Network/networkInterfaces",
        "Network/publicIPAddresses",
    ] {
        let path = format!("/subscriptions/s/resourceGroups/rg/providers/Microsoft.{kind}/none");
        assert_eq!(delete(&mut fixture, &path).unwrap().status, 204);
        let in_missing_group = path.replace("/rg/", "/none/");
        assert_eq!(
            delete(&mut fixture, &in_missing_group).unwrap_err().code,
            "ResourceGroupNotFound"
        );
    }
}

#[test]
fn second_delete_returns_the_first_operation() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let first = fixture
        .call(&format!("DELETE {VMS}/a?forceDeletion=true"), Value::Null)
        .unwrap();
    let again = fixture
        .call(&format!("DELETE {VMS}/a"), Value::Null)
        .unwrap();
    assert_eq!((first.status, &first.headers), (202, &again.headers));
    assert_eq!(fixture.vm("a").provisioning_state, "Deleting");
    assert_eq!(
        fixture
            .refused(
                &format!("DELETE {VMS}/a?forceDeletion=perhaps"),
                Value::Null
            )
            .0,
        400
    );
}

#[test]
fn deleted_resource_has_two_not_found_codes() {
    let mut fixture = Fixture::new();
    let get = format!("GET {VMS}/a");
    let never = (404, "ResourceNotFound".to_owned());
    assert_eq!(fixture.refused(&get, Value::Null), never);
    fixture.running("a");
    fixture.delete("a");
    assert_eq!(
        fixture.refused(&get, Value::Null),
        (404, "NotFound".to_owned())
    );
    assert_eq!(
        fixture
            .refused(&format!("POST {VMS}/a/start"), Value::Null)
            .1,
        "NotFound"
    );
    fixture.advance(100);
    assert_eq!(fixture.refused(&get, Value::Null), never);
}
