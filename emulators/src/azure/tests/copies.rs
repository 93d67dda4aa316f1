//! Snapshots, copies of disks, SSH keys, and what a machine shows besides.

use super::*;

#[test]
fn snapshot_of_a_disk_becomes_a_disk() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let disk = fixture.oracle().disks[0].id.clone();
    let snapshot = format!("{COMPUTE}/snapshots/s");
    let copy = |source: &str| json!({ "createOption": "Copy", "sourceResourceId": source });
    let body = json!({ "location": "eastus", "properties": { "creationData": copy(&disk) } });
    assert_eq!(
        fixture
            .call(&format!("PUT {snapshot}"), body)
            .unwrap()
            .status,
        202
    );
    let read = fixture.get(&snapshot);
    assert_eq!(
        (
            &read["properties"]["diskSizeGB"],
            &read["properties"]["osType"]
        ),
        (&json!(30), &json!("Linux"))
    );
    let restored = format!("{COMPUTE}/disks/restored");
    let body = json!({ "location": "eastus", "properties": { "creationData": copy(&snapshot) } });
    fixture.ok(&format!("PUT {restored}"), body.clone());
    fixture.advance(0);
    assert_eq!(fixture.get(&restored)["properties"]["diskSizeGB"], 30);
    let mut small = body;
    small["properties"]["diskSizeGB"] = json!(8);
    assert_eq!(
        fixture.refused(&format!("PUT {restored}2"), small).1,
        "InvalidParameter"
    );
    let missing = json!({ "location": "eastus", "properties": { "creationData": copy(&format!("{snapshot}x")) } });
    assert_eq!(fixture.refused(&format!("PUT {restored}2"), missing).0, 404);
    let patched = fixture.ok(
        &format!("PATCH {snapshot}"),
        json!({ "tags": { "a": "b" } }),
    );
    assert_eq!(patched["tags"], json!({ "a": "b" }));
    let all = "/subscriptions/s/providers/Microsoft.Compute/snapshots";
    assert_eq!(fixture.get(all)["value"].as_array().unwrap().len(), 1);
    fixture.ok(&format!("DELETE {snapshot}"), Value::Null);
    assert_eq!(
        fixture.refused(&format!("GET {snapshot}"), Value::Null).0,
        404
    );
}

#[test]
fn disks_and_tags_can_be_patched() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let oracle = fixture.oracle();
    let grown = json!({ "properties": { "diskSizeGB": 40 }, "sku": { "name": "Premium_LRS" } });
    let disk = fixture.ok(&format!("PATCH {}", oracle.disks[0].id), grown);
    assert_eq!(
        (&disk["properties"]["diskSizeGB"], &disk["sku"]["name"]),
        (&json!(40), &json!("Premium_LRS"))
    );
    for id in [&oracle.nics[0].id, &oracle.public_ips[0].id] {
        let patched = fixture.ok(&format!("PATCH {id}"), json!({ "tags": { "a": "b" } }));
        assert_eq!(patched["tags"], json!({ "a": "b" }));
        assert_eq!(
            fixture
                .refused(&format!("PATCH {id}"), json!({ "zones": [] }))
                .1,
            "BadRequest"
        );
        assert_eq!(
            fixture.refused(&format!("PATCH {id}x"), json!({})).1,
            "ResourceNotFound"
        );
    }
}

#[test]
fn keys_are_checked() {
    let mut fixture = Fixture::new();
    let path = format!("{COMPUTE}/sshPublicKeys/key");
    let body = |key: &str| json!({ "location": "eastus", "properties": { "publicKey": key } });
    assert_eq!(
        fixture
            .call(&format!("PUT {path}"), body("ssh-ed25519 AAAA"))
            .unwrap()
            .status,
        201
    );
    assert_eq!(
        fixture.refused(&format!("PUT {path}"), body("secret")).1,
        "InvalidParameter"
    );
    let patch = json!({ "properties": { "publicKey": "ssh-rsa BBBB" } });
    assert_eq!(
        fixture.ok(&format!("PATCH {path}"), patch)["properties"]["publicKey"],
        "ssh-rsa BBBB"
    );
    assert_eq!(
        fixture
            .call(&format!("DELETE {path}"), Value::Null)
            .unwrap()
            .status,
        200
    );
    assert_eq!(
        fixture
            .call(&format!("DELETE {path}"), Value::Null)
            .unwrap()
            .status,
        204
    );
}

#[test]
fn machine_shows_its_guest_until_it_is_deallocated() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.post("a", "powerOff");
    let view = fixture.get(&format!("{VMS}/a/instanceView"));
    assert_eq!(
        (&view["computerName"], &view["osName"]),
        (&json!("a"), &json!("linux"))
    );
    assert_eq!(view["vmAgent"]["statuses"][0]["displayStatus"], "Ready");
    fixture.post("a", "deallocate");
    let view = fixture.get(&format!("{VMS}/a/instanceView"));
    assert!(view.get("computerName").is_none() && view.get("vmAgent").is_none());
}

#[test]
fn linux_machine_has_a_configuration_by_default() {
    let mut fixture = Fixture::new();
    let profile = json!({ "adminUsername": "me", "adminPassword": "Secret-1" });
    fixture.put("a", vm_body_with("/properties/osProfile", profile));
    let linux = &fixture.get(&format!("{VMS}/a"))["properties"]["osProfile"]["linuxConfiguration"];
    assert_eq!(linux["disablePasswordAuthentication"], false);
    assert_eq!(linux["patchSettings"]["patchMode"], "ImageDefault");
}

#[test]
fn evicted_machine_with_delete_stays_not_found_by_the_provider() {
    let mut fixture = Fixture::new();
    let mut body = vm_body_with("/properties/priority", json!("Spot"));
    body["properties"]["evictionPolicy"] = json!("Delete");
    fixture.put("a", body.clone());
    fixture.advance(100);
    fixture.ok(&format!("POST {VMS}/a/simulateEviction"), Value::Null);
    fixture.advance(1_000_000);
    assert_eq!(
        fixture.refused(&format!("GET {VMS}/a"), Value::Null).1,
        "NotFound"
    );
    fixture.put("a", body);
    fixture.advance(100);
    fixture.delete("a");
    fixture.advance(1_000_000);
    assert_eq!(
        fixture.refused(&format!("GET {VMS}/a"), Value::Null).1,
        "ResourceNotFound"
    );
}

#[test]
fn machine_is_redeployed_and_has_no_extensions() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.post("a", "redeploy");
    assert_eq!(fixture.vm("a").boots, 2);
    fixture.post("a", "reapply");
    assert_eq!(fixture.vm("a").boots, 2);
    assert_eq!(
        fixture.get(&format!("{VMS}/a/extensions"))["value"],
        json!([])
    );
    assert_eq!(
        fixture
            .refused(&format!("GET {VMS}/a/extensions/x"), Value::Null)
            .1,
        "ResourceNotFound"
    );
    assert_eq!(
        fixture
            .call(&format!("DELETE {VMS}/a/extensions/x"), Value::Null)
            .unwrap()
            .status,
        204
    );
    assert_eq!(
        fixture.get(&format!("{VMS}/a/vmSizes"))["value"]
            .as_array()
            .unwrap()
            .len(),
        7
    );
}

#[test]
fn operation_urls_are_signed() {
    let mut fixture = Fixture::new();
    let response = fixture.put("a", vm_body());
    let url = header_of(&response, "azure-asyncoperation").unwrap();
    for parameter in ["&t=", "&c=", "&s=", "&h="] {
        assert!(url.contains(parameter), "{url}");
    }
}

#[test]
fn subscriptions_providers_and_images_can_be_listed() {
    let mut fixture = Fixture::new();
    let subscriptions = fixture.get("/subscriptions");
    assert_eq!(subscriptions["value"][0]["state"], "Enabled");
    assert_eq!(fixture.get("/subscriptions/s")["subscriptionId"], "s");
    let tenants = fixture.get("/tenants");
    assert_eq!(
        tenants["value"][0]["tenantId"],
        subscriptions["value"][0]["tenantId"]
    );
    assert_eq!(
        fixture.get("/subscriptions/s/providers")["value"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let registered = fixture.ok(
        "POST /subscriptions/s/providers/microsoft.network/register",
        Value::Null,
    );
    assert_eq!(registered["registrationState"], "Registered");
    assert!(
        fixture
            .get("/metadata/endpoints?api-version=2019-05-01")
            .is_array()
    );
    assert_eq!(
        fixture.get("/metadata/endpoints?api-version=2022-09-01")["resourceManager"],
        "http://here/"
    );
    let mut path =
        "/subscriptions/s/providers/Microsoft.Compute/locations/eastus/publishers".to_owned();
    for (name, next) in [
        ("Canonical", "/artifacttypes/vmimage/offers"),
        ("0001-com-ubuntu-server-jammy", "/skus"),
        ("22_04-lts-gen2", "/versions"),
    ] {
        let listed = fixture.get(&path);
        assert!(
            listed
                .as_array()
                .unwrap()
                .iter()
                .any(|it| it["name"] == name),
            "{path}: {listed}"
        );
        path = format!("{path}/{name}{next}");
    }
    assert_eq!(fixture.get(&format!("{path}?$top=0")), json!([]));
    let version = fixture.get(&path)[0]["name"].as_str().unwrap().to_owned();
    let image = fixture.get(&format!("{path}/{version}"));
    assert_eq!(
        image["properties"]["osDiskImage"]["operatingSystem"],
        "Linux"
    );
    assert_eq!(
        fixture.refused(&format!("GET {path}/0.0.0"), Value::Null).1,
        "NotFound"
    );
    let nobody = path.split("/Canonical").next().unwrap();
    let offers = format!("GET {nobody}/Nobody/artifacttypes/vmimage/offers");
    assert_eq!(fixture.refused(&offers, Value::Null).1, "NotFound");
}
