//! Images of machines and of disks.

use super::*;

fn image_of_vm(name: &str) -> Value {
    json!({ "location": "eastus", "tags": { "a": "b" },
            "properties": { "sourceVirtualMachine": { "id": format!("{VMS}/{name}") } } })
}

#[test]
fn image_of_a_generalized_machine_can_be_launched() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let path = format!("{COMPUTE}/images/golden");
    let put = format!("PUT {path}");
    assert_eq!(
        fixture.refused(&put, image_of_vm("a")),
        (409, "OperationNotAllowed".to_owned())
    );
    assert_eq!(
        fixture
            .refused(&format!("POST {VMS}/a/generalize"), Value::Null)
            .0,
        409
    );
    fixture.post("a", "deallocate");
    fixture.post("a", "generalize");
    let response = fixture.call(&put, image_of_vm("a")).unwrap();
    assert_eq!(response.status, 201);
    assert_eq!(
        fixture.get(&path)["properties"]["provisioningState"],
        "Creating"
    );
    fixture.advance(100);
    let document = fixture.get(&path);
    assert_eq!(document["properties"]["provisioningState"], "Succeeded");
    assert_eq!(
        document["properties"]["storageProfile"]["osDisk"]["osState"],
        "Generalized"
    );
    fixture.put(
        "b",
        vm_body_with(
            "/properties/storageProfile/imageReference",
            json!({ "id": path }),
        ),
    );
    fixture.advance(100);
    assert_eq!(fixture.vm("b").power_state.as_deref(), Some("running"));
    assert_eq!(fixture.oracle().images[0].tags["a"], "b");
    fixture.ok(&format!("DELETE {path}"), Value::Null);
    fixture.advance(0);
    assert!(fixture.oracle().images.is_empty());
    assert_eq!(
        fixture.refused(&put, image_of_vm("none")).1,
        "ResourceNotFound"
    );
}

#[test]
fn image_of_a_disk_in_use_can_be_created() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let disk = fixture.vm("a").disks.remove(0);
    let image = |state: &str| {
        let disk = json!({ "osType": "Linux", "osState": state, "managedDisk": { "id": disk } });
        json!({ "location": "eastus", "properties": { "storageProfile": { "osDisk": disk } } })
    };
    let path = format!("{COMPUTE}/images/copy");
    assert_eq!(
        fixture.refused(&format!("PUT {path}"), image("Broken")).0,
        400
    );
    fixture.ok(&format!("PUT {path}"), image("Specialized"));
    fixture.advance(100);
    // A specialized image contains its users, so it needs no `osProfile`.
    let mut requested = vm_body_with(
        "/properties/storageProfile/imageReference",
        json!({ "id": path }),
    );
    requested["properties"]["osProfile"] = Value::Null;
    fixture.put("b", requested);
    let both = json!({ "location": "eastus", "properties": {} });
    assert_eq!(fixture.refused(&format!("PUT {path}2"), both).0, 400);
}
