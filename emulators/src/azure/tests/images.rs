//! Images made of machines and of disks.

use super::*;

fn of_vm(name: &str) -> Value {
    json!({ "location": "eastus", "tags": { "a": "b" },
            "properties": { "sourceVirtualMachine": { "id": format!("{VMS}/{name}") } } })
}

#[test]
fn image_of_a_generalized_machine_can_be_launched() {
    let mut lab = Lab::new();
    lab.running("a");
    let path = format!("{COMPUTE}/images/golden");
    let put = format!("PUT {path}");
    assert_eq!(
        lab.refused(&put, of_vm("a")),
        (409, "OperationNotAllowed".to_owned())
    );
    assert_eq!(
        lab.refused(&format!("POST {VMS}/a/generalize"), Value::Null)
            .0,
        409
    );
    lab.post("a", "deallocate");
    lab.post("a", "generalize");
    let answer = lab.call(&put, of_vm("a")).unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(
        lab.get(&path)["properties"]["provisioningState"],
        "Creating"
    );
    lab.pass(100);
    let shown = lab.get(&path);
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    assert_eq!(
        shown["properties"]["storageProfile"]["osDisk"]["osState"],
        "Generalized"
    );
    lab.put(
        "b",
        order_with(
            "/properties/storageProfile/imageReference",
            json!({ "id": path }),
        ),
    );
    lab.pass(100);
    assert_eq!(lab.vm("b").power_state.as_deref(), Some("running"));
    assert_eq!(lab.oracle().images[0].tags["a"], "b");
    lab.ok(&format!("DELETE {path}"), Value::Null);
    lab.pass(0);
    assert!(lab.oracle().images.is_empty());
    assert_eq!(lab.refused(&put, of_vm("none")).1, "ResourceNotFound");
}

#[test]
fn image_of_a_disk_in_use_can_be_created() {
    let mut lab = Lab::new();
    lab.running("a");
    let disk = lab.vm("a").disks.remove(0);
    let image = |state: &str| {
        let disk = json!({ "osType": "Linux", "osState": state, "managedDisk": { "id": disk } });
        json!({ "location": "eastus", "properties": { "storageProfile": { "osDisk": disk } } })
    };
    let path = format!("{COMPUTE}/images/copy");
    assert_eq!(lab.refused(&format!("PUT {path}"), image("Broken")).0, 400);
    lab.ok(&format!("PUT {path}"), image("Specialized"));
    lab.pass(100);
    // A copy of a machine as it was needs no user.
    let mut wanted = order_with(
        "/properties/storageProfile/imageReference",
        json!({ "id": path }),
    );
    wanted["properties"]["osProfile"] = Value::Null;
    lab.put("b", wanted);
    let both = json!({ "location": "eastus", "properties": {} });
    assert_eq!(lab.refused(&format!("PUT {path}2"), both).0, 400);
}
