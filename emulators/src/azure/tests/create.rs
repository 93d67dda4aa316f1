//! Creating virtual machines.

use super::*;

#[test]
fn one_put_creates_a_machine_with_its_resources() {
    let mut fixture = Fixture::new();
    let response = fixture.put("a", vm_body());
    assert_eq!(response.status, 201);
    let document: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(document["properties"]["provisioningState"], "Creating");
    assert_eq!(fixture.vm("a").power_state, None);
    fixture.advance(100);
    let vm = fixture.vm("a");
    assert_eq!(
        (
            vm.provisioning_state.as_str(),
            vm.power_state.as_deref(),
            vm.boots,
            vm.allocated
        ),
        ("Succeeded", Some("running"), 1, true)
    );
    assert_eq!(vm.custom_data.as_deref(), Some(b"hello".as_slice()));
    assert_eq!(vm.tags["Owner"], "me");
    assert!(vm.private_ip.is_some() && vm.public_ip.is_some());
    let truth = fixture.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    assert_eq!(truth.nics[0].attached_to.as_ref(), Some(&vm.id));
    assert_eq!(truth.disks[0].attached_to.as_ref(), Some(&vm.id));
    let document = fixture.get(&format!("{VMS}/A"));
    assert_eq!(document["properties"]["vmId"], vm.vm_id.as_str());
    assert!(!document.to_string().contains("aGVsbG8="));
}

#[test]
fn reused_name_gets_a_new_guid() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let first = fixture.vm("a").vm_id;
    fixture.delete("a");
    fixture.running("a");
    assert_ne!(fixture.vm("a").vm_id, first);
}

#[test]
fn repeated_put_during_creation_returns_the_same_operation() {
    let mut fixture = Fixture::new();
    let first = fixture.put("a", vm_body());
    let again = fixture.put("a", vm_body());
    assert_eq!((first.status, again.status), (201, 200));
    let url = |response| header_of(response, "azure-asyncoperation");
    assert_eq!(url(&first), url(&again));
    fixture.advance(100);
    let after = fixture.put("a", vm_body());
    assert_ne!(url(&first), url(&after));
    fixture.advance(0);
    assert_eq!(fixture.oracle().vms.len(), 1);
    assert_eq!(fixture.vm("a").boots, 1);
    assert_eq!(fixture.oracle().nics.len(), 1);
}

#[test]
fn preconditions_protect_existing_resources() {
    let mut fixture = Fixture::new();
    let mut requested = request(&format!("PUT {VMS}/a"), vm_body());
    requested.if_none_match = Some("*".to_owned());
    let put = |fixture: &mut Fixture, request: &Request| {
        fixture.engine.catch_up();
        actions::execute(request, &mut fixture.engine, &CallContext::default())
    };
    assert_eq!(put(&mut fixture, &requested).unwrap().status, 201);
    let refusal = put(&mut fixture, &requested).unwrap_err();
    assert_eq!(
        (refusal.status, &*refusal.code),
        (412, "PreconditionFailed")
    );
    fixture.advance(100);
    let etag = fixture.get(&format!("{VMS}/a"))["etag"]
        .as_str()
        .unwrap()
        .to_owned();
    requested.if_none_match = None;
    requested.if_match = Some("\"0\"".to_owned());
    assert_eq!(put(&mut fixture, &requested).unwrap_err().status, 412);
    requested.if_match = Some(etag);
    assert_eq!(put(&mut fixture, &requested).unwrap().status, 200);
}

#[test]
fn invalid_put_is_refused_and_creates_nothing() {
    let mut fixture = Fixture::new();
    let storage = "/properties/storageProfile";
    let system = "/properties/osProfile";
    for (vm_body, status, code) in [
        (
            vm_body_with("/location", json!(null)),
            400,
            "LocationRequired",
        ),
        (
            vm_body_with("/location", json!("moon")),
            400,
            "LocationNotAvailableForResourceType",
        ),
        (
            vm_body_with("/zones", json!(["9"])),
            400,
            "InvalidAvailabilityZone",
        ),
        (
            vm_body_with("/zones", json!(["1", "2"])),
            400,
            "InvalidParameter",
        ),
        (vm_body_with("/colour", json!("red")), 400, "BadRequest"),
        (
            vm_body_with("/properties/hardwareProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/hardwareProfile/vmSize", json!("Huge")),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(
                "/properties/hardwareProfile/vmSize",
                json!("Standard_D2ps_v5"),
            ),
            400,
            "BadRequest",
        ),
        (
            vm_body_with(&format!("{storage}/imageReference/sku"), json!("x")),
            404,
            "PlatformImageNotFound",
        ),
        (
            vm_body_with(&format!("{storage}/imageReference"), json!({ "id": "x" })),
            400,
            "LinkedInvalidPropertyId",
        ),
        (
            vm_body_with(
                &format!("{storage}/imageReference"),
                json!({ "id": format!("{COMPUTE}/images/x") }),
            ),
            404,
            "NotFound",
        ),
        (
            vm_body_with(&format!("{storage}/osDisk/diskSizeGB"), json!(10)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(
                &format!("{storage}/osDisk/managedDisk"),
                json!({ "storageAccountType": "Tape" }),
            ),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(&format!("{system}/adminUsername"), json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(&format!("{system}/customData"), json!("#!/bin/sh")),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/osProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/networkProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/networkProfile/networkApiVersion", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(
                &format!("{NIC}/ipConfigurations/0/properties/subnet"),
                json!({ "id": "/x" }),
            ),
            400,
            "InvalidResourceReference",
        ),
        (
            vm_body_with(
                &format!("{NIC}/networkSecurityGroup"),
                json!({ "id": "/x" }),
            ),
            400,
            "InvalidResourceReference",
        ),
        (
            vm_body_with("/properties/evictionPolicy", json!("Delete")),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/priority", json!("Urgent")),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/properties/userData", json!("#!")),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with("/identity", json!({ "type": "Myself" })),
            400,
            "InvalidParameter",
        ),
        (
            vm_body_with(
                &format!("{storage}/osDisk/writeAcceleratorEnabled"),
                json!(true),
            ),
            400,
            "NotSupported",
        ),
        (
            vm_body_with(
                &format!("{NIC}/dnsSettings"),
                json!({ "dnsServers": ["1"] }),
            ),
            400,
            "NotSupported",
        ),
        (
            vm_body_with("/tags/a%b", json!("x")),
            400,
            "InvalidTagNameCharacters",
        ),
    ] {
        let refused = fixture.refused(&format!("PUT {VMS}/a"), vm_body.clone());
        assert_eq!(refused, (status, code.to_owned()), "{vm_body}");
    }
    assert_eq!(
        fixture.refused(&format!("PUT {VMS}/-a"), vm_body()).1,
        "InvalidParameter"
    );
    let in_missing_group = VMS.replace("/rg/", "/none/");
    assert_eq!(
        fixture
            .refused(&format!("PUT {in_missing_group}/a"), vm_body())
            .1,
        "ResourceGroupNotFound"
    );
    let truth = fixture.oracle();
    assert!(truth.vms.is_empty() && truth.nics.is_empty());
    assert!(truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn existing_disk_is_not_created_again() {
    let mut fixture = Fixture::new();
    let named = vm_body_with("/properties/storageProfile/osDisk/name", json!("system"));
    fixture.put("a", named.clone());
    let refused = fixture.refused(&format!("PUT {VMS}/b"), named);
    assert_eq!(refused, (409, "ConflictingUserInput".to_owned()));
    assert_eq!(fixture.oracle().vms.len(), 1);
    assert_eq!(fixture.oracle().nics.len(), 1);
}

#[test]
fn properties_are_returned_as_sent() {
    let mut fixture = Fixture::new();
    let mut requested = vm_body_with("/properties/priority", json!("Spot"));
    requested["properties"]["evictionPolicy"] = json!("Delete");
    requested["properties"]["billingProfile"] = json!({ "maxPrice": -1.0 });
    requested["zones"] = json!(["2"]);
    requested["identity"] = json!({ "type": "SystemAssigned" });
    requested["properties"]["userData"] = json!("aGk=");
    fixture.put("a", requested);
    fixture.advance(100);
    let document = fixture.get(&format!("{VMS}/a"));
    assert_eq!(document["zones"], json!(["2"]));
    assert_eq!(document["properties"]["priority"], "Spot");
    assert_eq!(document["properties"]["evictionPolicy"], "Delete");
    assert!(document["identity"]["principalId"].is_string());
    assert!(document["properties"]["userData"].is_null());
    let expanded = fixture.get(&format!("{VMS}/a?$expand=userData"));
    assert_eq!(expanded["properties"]["userData"], "aGk=");
    assert_eq!(
        fixture
            .refused(&format!("GET {VMS}/a?$expand=soul"), Value::Null)
            .0,
        400
    );
}

#[test]
fn flags_may_be_text_as_clients_write_them() {
    let mut fixture = Fixture::new();
    let place = "/properties/osProfile/linuxConfiguration/disablePasswordAuthentication";
    fixture.put("a", vm_body_with(place, json!("True")));
    let document = fixture.get(&format!("{VMS}/a"));
    assert_eq!(document.pointer(place), Some(&json!(true)));
    let refused = fixture.refused(
        &format!("PUT {VMS}/b"),
        vm_body_with(place, json!("perhaps")),
    );
    assert_eq!(refused.1, "BadRequest");
}

#[test]
fn ephemeral_disk_needs_room_and_forbids_deallocation_and_capture() {
    let mut fixture = Fixture::new();
    let body = |size: &str, caching: &str, settings: Value| {
        let mut body = vm_body();
        body["properties"]["hardwareProfile"]["vmSize"] = json!(size);
        let disk = &mut body["properties"]["storageProfile"]["osDisk"];
        disk["caching"] = json!(caching);
        disk["diffDiskSettings"] = settings;
        body
    };
    let local = json!({ "option": "Local", "placement": "CacheDisk" });
    let put = format!("PUT {VMS}/a");
    let mut refused = |body| fixture.refused(&put, body);
    let invalid = (400, "InvalidParameter".to_owned());
    assert_eq!(
        refused(body("Standard_DS1_v2", "ReadWrite", local.clone())),
        invalid
    );
    let odd = json!({ "option": "Local", "placement": "Tape" });
    assert_eq!(refused(body("Standard_DS1_v2", "ReadOnly", odd)), invalid);
    assert_eq!(
        refused(body("Standard_DS1_v2", "ReadOnly", json!({}))),
        invalid
    );
    assert_eq!(
        refused(body("Standard_B1s", "ReadOnly", local.clone())),
        (400, "NotSupported".to_owned())
    );
    fixture.put("a", body("Standard_DS1_v2", "ReadOnly", local.clone()));
    fixture.advance(100);
    let document = fixture.get(&format!("{VMS}/a"));
    let disk = &document["properties"]["storageProfile"]["osDisk"];
    assert_eq!(disk["diffDiskSettings"], local);
    let deallocated = fixture.refused(&format!("POST {VMS}/a/deallocate"), Value::Null);
    assert_eq!(deallocated, (409, "OperationNotAllowed".to_owned()));
    let image = json!({ "location": "eastus", "properties": { "storageProfile": { "osDisk": {
        "osType": "Linux", "osState": "Generalized", "managedDisk": { "id": disk["managedDisk"]["id"] },
    }}}});
    let captured = fixture.refused(&format!("PUT {COMPUTE}/images/i"), image);
    assert_eq!(captured, (409, "OperationNotAllowed".to_owned()));
    fixture.delete("a");
    assert!(fixture.oracle().disks.is_empty());
}

#[test]
fn accelerated_networking_needs_a_size_that_offers_it() {
    let mut fixture = Fixture::new();
    let mut body = vm_body();
    body.pointer_mut(NIC).unwrap()["enableAcceleratedNetworking"] = json!(true);
    let code = "VMSizeIsNotPermittedToEnableAcceleratedNetworking";
    let refused = fixture.refused(&format!("PUT {VMS}/a"), body.clone());
    assert_eq!(refused, (400, code.to_owned()));
    body["properties"]["hardwareProfile"]["vmSize"] = json!("Standard_DS1_v2");
    fixture.put("a", body);
    let nics = fixture.get(&format!("{NETWORK}/networkInterfaces"));
    let nic = &nics["value"][0]["properties"];
    assert_eq!(nic["enableAcceleratedNetworking"], true);
}
