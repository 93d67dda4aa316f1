//! Making virtual machines.

use super::*;

#[test]
fn one_put_creates_a_machine_with_its_resources() {
    let mut lab = Lab::new();
    let answer = lab.put("a", order());
    assert_eq!(answer.status, 201);
    let document: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(document["properties"]["provisioningState"], "Creating");
    assert_eq!(lab.vm("a").power_state, None);
    lab.pass(100);
    let vm = lab.vm("a");
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
    let truth = lab.oracle();
    assert_eq!(
        (truth.nics.len(), truth.disks.len(), truth.public_ips.len()),
        (1, 1, 1)
    );
    assert_eq!(truth.nics[0].attached_to.as_ref(), Some(&vm.id));
    assert_eq!(truth.disks[0].attached_to.as_ref(), Some(&vm.id));
    let shown = lab.get(&format!("{VMS}/A"));
    assert_eq!(shown["properties"]["vmId"], vm.vm_id.as_str());
    assert!(!shown.to_string().contains("aGVsbG8="));
}

#[test]
fn reused_name_gets_a_new_guid() {
    let mut lab = Lab::new();
    lab.running("a");
    let first = lab.vm("a").vm_id;
    lab.delete("a");
    lab.running("a");
    assert_ne!(lab.vm("a").vm_id, first);
}

#[test]
fn repeated_put_during_creation_returns_the_same_operation() {
    let mut lab = Lab::new();
    let first = lab.put("a", order());
    let again = lab.put("a", order());
    assert_eq!((first.status, again.status), (201, 200));
    let url = |answer| header_of(answer, "azure-asyncoperation");
    assert_eq!(url(&first), url(&again));
    lab.pass(100);
    let after = lab.put("a", order());
    assert_ne!(url(&first), url(&after));
    lab.pass(0);
    assert_eq!(lab.oracle().vms.len(), 1);
    assert_eq!(lab.vm("a").boots, 1);
    assert_eq!(lab.oracle().nics.len(), 1);
}

#[test]
fn preconditions_protect_existing_resources() {
    let mut lab = Lab::new();
    let mut wanted = request(&format!("PUT {VMS}/a"), order());
    wanted.if_none_match = Some("*".to_owned());
    let put = |lab: &mut Lab, request: &Request| {
        lab.engine.catch_up();
        actions::execute(request, &mut lab.engine, &CallContext::default())
    };
    assert_eq!(put(&mut lab, &wanted).unwrap().status, 201);
    let refusal = put(&mut lab, &wanted).unwrap_err();
    assert_eq!(
        (refusal.status, &*refusal.code),
        (412, "PreconditionFailed")
    );
    lab.pass(100);
    let etag = lab.get(&format!("{VMS}/a"))["etag"]
        .as_str()
        .unwrap()
        .to_owned();
    wanted.if_none_match = None;
    wanted.if_match = Some("\"0\"".to_owned());
    assert_eq!(put(&mut lab, &wanted).unwrap_err().status, 412);
    wanted.if_match = Some(etag);
    assert_eq!(put(&mut lab, &wanted).unwrap().status, 200);
}

#[test]
fn invalid_insert_is_refused_and_creates_nothing() {
    let mut lab = Lab::new();
    let storage = "/properties/storageProfile";
    let system = "/properties/osProfile";
    for (order, status, code) in [
        (
            order_with("/location", json!(null)),
            400,
            "LocationRequired",
        ),
        (
            order_with("/location", json!("moon")),
            400,
            "LocationNotAvailableForResourceType",
        ),
        (
            order_with("/zones", json!(["9"])),
            400,
            "InvalidAvailabilityZone",
        ),
        (
            order_with("/zones", json!(["1", "2"])),
            400,
            "InvalidParameter",
        ),
        (order_with("/colour", json!("red")), 400, "BadRequest"),
        (
            order_with("/properties/hardwareProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/hardwareProfile/vmSize", json!("Huge")),
            400,
            "InvalidParameter",
        ),
        (
            order_with(
                "/properties/hardwareProfile/vmSize",
                json!("Standard_D2ps_v5"),
            ),
            400,
            "BadRequest",
        ),
        (
            order_with(&format!("{storage}/imageReference/sku"), json!("x")),
            404,
            "PlatformImageNotFound",
        ),
        (
            order_with(&format!("{storage}/imageReference"), json!({ "id": "x" })),
            400,
            "LinkedInvalidPropertyId",
        ),
        (
            order_with(
                &format!("{storage}/imageReference"),
                json!({ "id": format!("{COMPUTE}/images/x") }),
            ),
            404,
            "NotFound",
        ),
        (
            order_with(&format!("{storage}/osDisk/diskSizeGB"), json!(10)),
            400,
            "InvalidParameter",
        ),
        (
            order_with(
                &format!("{storage}/osDisk/managedDisk"),
                json!({ "storageAccountType": "Tape" }),
            ),
            400,
            "InvalidParameter",
        ),
        (
            order_with(&format!("{system}/adminUsername"), json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            order_with(&format!("{system}/customData"), json!("#!/bin/sh")),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/osProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/networkProfile", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/networkProfile/networkApiVersion", json!(null)),
            400,
            "InvalidParameter",
        ),
        (
            order_with(
                &format!("{NIC}/ipConfigurations/0/properties/subnet"),
                json!({ "id": "/x" }),
            ),
            400,
            "InvalidResourceReference",
        ),
        (
            order_with(
                &format!("{NIC}/networkSecurityGroup"),
                json!({ "id": "/x" }),
            ),
            400,
            "InvalidResourceReference",
        ),
        (
            order_with("/properties/evictionPolicy", json!("Delete")),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/priority", json!("Urgent")),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/properties/userData", json!("#!")),
            400,
            "InvalidParameter",
        ),
        (
            order_with("/identity", json!({ "type": "Myself" })),
            400,
            "InvalidParameter",
        ),
        (
            order_with(
                &format!("{storage}/osDisk/writeAcceleratorEnabled"),
                json!(true),
            ),
            400,
            "NotSupported",
        ),
        (
            order_with(
                &format!("{NIC}/dnsSettings"),
                json!({ "dnsServers": ["1"] }),
            ),
            400,
            "NotSupported",
        ),
        (
            order_with("/tags/a%b", json!("x")),
            400,
            "InvalidTagNameCharacters",
        ),
    ] {
        let refused = lab.refused(&format!("PUT {VMS}/a"), order.clone());
        assert_eq!(refused, (status, code.to_owned()), "{order}");
    }
    assert_eq!(
        lab.refused(&format!("PUT {VMS}/-a"), order()).1,
        "InvalidParameter"
    );
    let elsewhere = VMS.replace("/rg/", "/none/");
    assert_eq!(
        lab.refused(&format!("PUT {elsewhere}/a"), order()).1,
        "ResourceGroupNotFound"
    );
    let truth = lab.oracle();
    assert!(truth.vms.is_empty() && truth.nics.is_empty());
    assert!(truth.disks.is_empty() && truth.public_ips.is_empty());
}

#[test]
fn existing_disk_is_not_created_again() {
    let mut lab = Lab::new();
    let named = order_with("/properties/storageProfile/osDisk/name", json!("system"));
    lab.put("a", named.clone());
    let refused = lab.refused(&format!("PUT {VMS}/b"), named);
    assert_eq!(refused, (409, "ConflictingUserInput".to_owned()));
    assert_eq!(lab.oracle().vms.len(), 1);
    assert_eq!(lab.oracle().nics.len(), 1);
}

#[test]
fn properties_are_returned_as_sent() {
    let mut lab = Lab::new();
    let mut wanted = order_with("/properties/priority", json!("Spot"));
    wanted["properties"]["evictionPolicy"] = json!("Delete");
    wanted["properties"]["billingProfile"] = json!({ "maxPrice": -1.0 });
    wanted["zones"] = json!(["2"]);
    wanted["identity"] = json!({ "type": "SystemAssigned" });
    wanted["properties"]["userData"] = json!("aGk=");
    lab.put("a", wanted);
    lab.pass(100);
    let shown = lab.get(&format!("{VMS}/a"));
    assert_eq!(shown["zones"], json!(["2"]));
    assert_eq!(shown["properties"]["priority"], "Spot");
    assert_eq!(shown["properties"]["evictionPolicy"], "Delete");
    assert!(shown["identity"]["principalId"].is_string());
    assert!(shown["properties"]["userData"].is_null());
    let expanded = lab.get(&format!("{VMS}/a?$expand=userData"));
    assert_eq!(expanded["properties"]["userData"], "aGk=");
    assert_eq!(
        lab.refused(&format!("GET {VMS}/a?$expand=soul"), Value::Null)
            .0,
        400
    );
}

#[test]
fn flags_may_be_text_as_clients_write_them() {
    let mut lab = Lab::new();
    let place = "/properties/osProfile/linuxConfiguration/disablePasswordAuthentication";
    lab.put("a", order_with(place, json!("True")));
    let shown = lab.get(&format!("{VMS}/a"));
    assert_eq!(shown.pointer(place), Some(&json!(true)));
    let refused = lab.refused(&format!("PUT {VMS}/b"), order_with(place, json!("perhaps")));
    assert_eq!(refused.1, "BadRequest");
}
