//! Deleting virtual machines, and what is left behind.

use super::*;

#[test]
fn what_goes_with_a_machine_goes_and_the_rest_is_left_behind() {
    let mut lab = Lab::new();
    lab.running("a");
    let mut kept = order_with(
        "/properties/storageProfile/osDisk/deleteOption",
        json!(null),
    );
    let nic = kept.pointer_mut(NIC).unwrap();
    nic["deleteOption"] = json!("Detach");
    lab.put("b", kept);
    lab.pass(100);
    lab.delete("a");
    let truth = lab.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    lab.delete("b");
    let truth = lab.oracle();
    assert!(truth.vms.is_empty());
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    assert_eq!(
        (&truth.nics[0].attached_to, &truth.disks[0].attached_to),
        (&None, &None)
    );
    // The address goes with the interface, as asked.
    lab.ok(&format!("DELETE {}", truth.nics[0].id), Value::Null);
    lab.ok(&format!("DELETE {}", truth.disks[0].id), Value::Null);
    lab.pass(0);
    let truth = lab.oracle();
    assert!(truth.nics.is_empty() && truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn what_is_not_there_is_deleted() {
    let mut lab = Lab::new();
    let delete = |lab: &mut Lab, path: &str| lab.call(&format!("DELETE {path}"), Value::Null);
    for kind in [
        "Compute/virtualMachines",
        "Compute/disks",
        "Compute/images",
        "Network/networkInterfaces",
        "Network/publicIPAddresses",
    ] {
        let path = format!("/subscriptions/s/resourceGroups/rg/providers/Microsoft.{kind}/none");
        assert_eq!(delete(&mut lab, &path).unwrap().status, 204);
        let elsewhere = path.replace("/rg/", "/none/");
        assert_eq!(
            delete(&mut lab, &elsewhere).unwrap_err().code,
            "ResourceGroupNotFound"
        );
    }
}

#[test]
fn a_second_delete_joins_the_first() {
    let mut lab = Lab::new();
    lab.running("a");
    let first = lab
        .call(&format!("DELETE {VMS}/a?forceDeletion=true"), Value::Null)
        .unwrap();
    let again = lab.call(&format!("DELETE {VMS}/a"), Value::Null).unwrap();
    assert_eq!((first.status, &first.headers), (202, &again.headers));
    assert_eq!(lab.vm("a").provisioning_state, "Deleting");
    assert_eq!(
        lab.refused(
            &format!("DELETE {VMS}/a?forceDeletion=perhaps"),
            Value::Null
        )
        .0,
        400
    );
}

#[test]
fn there_are_two_words_for_what_is_gone() {
    let mut lab = Lab::new();
    let get = format!("GET {VMS}/a");
    let never = (404, "ResourceNotFound".to_owned());
    assert_eq!(lab.refused(&get, Value::Null), never);
    lab.running("a");
    lab.delete("a");
    assert_eq!(lab.refused(&get, Value::Null), (404, "NotFound".to_owned()));
    assert_eq!(
        lab.refused(&format!("POST {VMS}/a/start"), Value::Null).1,
        "NotFound"
    );
    lab.pass(100);
    assert_eq!(lab.refused(&get, Value::Null), never);
}
