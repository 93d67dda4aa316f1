//! Separate interfaces, public addresses and disks.

use super::*;
use crate::azure::wire::body::without_nulls;

fn nic(public: Option<&str>) -> Value {
    let public = public.map(|name| json!({ "id": format!("{NETWORK}/publicIPAddresses/{name}") }));
    let properties = json!({ "subnet": { "id": subnet() }, "publicIPAddress": public });
    json!({ "location": "eastus",
            "properties": { "ipConfigurations": [{ "name": "ip", "properties": properties }] } })
}

#[test]
fn interface_and_address_are_created_used_and_deleted_in_order() {
    let mut fixture = Fixture::new();
    let ip = format!("{NETWORK}/publicIPAddresses/p");
    let path = format!("{NETWORK}/networkInterfaces/n");
    let static_ip =
        json!({ "location": "eastus", "properties": { "publicIPAllocationMethod": "Static" } });
    fixture.ok(&format!("PUT {ip}"), static_ip);
    fixture.ok(&format!("PUT {path}"), nic(Some("p")));
    fixture.advance(0);
    let taken = fixture.refused(&format!("PUT {path}2"), nic(Some("p")));
    assert_eq!(taken.1, "PublicIPAddressInUse");
    let missing = fixture.refused(&format!("PUT {path}2"), nic(Some("q")));
    assert_eq!(missing.1, "InvalidResourceReference");
    let requested = json!({ "networkInterfaces": [{ "id": path, "properties": { "deleteOption": "Detach" } }] });
    fixture.put(
        "a",
        vm_body_with("/properties/networkProfile", requested.clone()),
    );
    fixture.advance(100);
    assert!(fixture.vm("a").public_ip.is_some());
    let document = fixture.get(&format!("{path}?$expand=ipConfigurations/publicIPAddress"));
    let public = &document["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"];
    assert!(public["properties"]["ipAddress"].is_string());
    let plain = fixture.get(&path);
    assert!(
        plain["properties"]["virtualMachine"]["id"]
            .as_str()
            .unwrap()
            .ends_with("/a")
    );
    let again = fixture.refused(
        &format!("PUT {VMS}/b"),
        vm_body_with("/properties/networkProfile", requested),
    );
    assert_eq!(again.1, "NicInUse");
    assert_eq!(
        fixture.refused(&format!("DELETE {path}"), Value::Null),
        (400, "NicInUse".to_owned())
    );
    let used = fixture.refused(&format!("DELETE {ip}"), Value::Null);
    assert_eq!(used, (400, "PublicIPAddressCannotBeDeleted".to_owned()));
    fixture.delete("a");
    for path in [&path, &ip] {
        let response = fixture
            .call(&format!("DELETE {path}"), Value::Null)
            .unwrap();
        assert_eq!(response.status, 202);
        fixture.advance(0);
        assert_eq!(fixture.follow(&response, "location").unwrap().status, 204);
        assert_eq!(
            fixture.refused(&format!("GET {path}"), Value::Null).1,
            "ResourceNotFound"
        );
    }
    assert!(fixture.oracle().nics.is_empty() && fixture.oracle().public_ips.is_empty());
}

fn with_disks(disks: &Value) -> Value {
    json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": disks } } })
}

#[test]
fn disks_are_attached_and_detached() {
    let mut fixture = Fixture::with(|knobs| knobs.timing.update = Duration::from_millis(50));
    let disk = format!("{COMPUTE}/disks/data");
    let empty = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
                        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
    fixture.ok(&format!("PUT {disk}"), empty.clone());
    fixture.running("a");
    fixture.running("b");
    let attach = json!([{ "lun": 0, "createOption": "Attach", "managedDisk": { "id": disk } }]);
    fixture.ok(&format!("PATCH {VMS}/a"), with_disks(&attach));
    fixture.advance(50);
    assert_eq!(fixture.vm("a").disks.len(), 2);
    assert_eq!(fixture.get(&disk)["properties"]["diskState"], "Attached");
    let taken = fixture.refused(&format!("PATCH {VMS}/b"), with_disks(&attach));
    assert_eq!(taken, (409, "Conflict".to_owned()));
    assert_eq!(
        fixture.refused(&format!("DELETE {disk}"), Value::Null).1,
        "OperationNotAllowed"
    );
    fixture.ok(&format!("PATCH {VMS}/a"), with_disks(&json!([])));
    let detaching = fixture.refused(&format!("PATCH {VMS}/b"), with_disks(&attach));
    assert_eq!(detaching, (409, "AttachDiskWhileBeingDetached".to_owned()));
    fixture.advance(50);
    fixture.ok(&format!("PATCH {VMS}/b"), with_disks(&attach));
    fixture.advance(50);
    fixture.post("b", "deallocate");
    assert_eq!(fixture.get(&disk)["properties"]["diskState"], "Reserved");
    fixture.delete("b");
    assert_eq!(fixture.get(&disk)["properties"]["diskState"], "Unattached");
    fixture.ok(&format!("DELETE {disk}"), Value::Null);
    let deleting = fixture.refused(&format!("PATCH {VMS}/a"), with_disks(&attach));
    assert_eq!(deleting, (409, "Conflict".to_owned()));
    fixture.advance(50);
    fixture.ok(&format!("PUT {disk}"), empty.clone());
    let bigger = json!({ "location": "eastus", "properties": { "diskSizeGB": 16 } });
    fixture.ok(&format!("PUT {disk}"), bigger);
    assert_eq!(fixture.refused(&format!("PUT {disk}"), empty).0, 400);
}

#[test]
fn machine_is_created_with_data_disks_and_delete_options() {
    let mut fixture = Fixture::new();
    let disks = json!([
        { "lun": 0, "createOption": "Empty", "diskSizeGB": 4, "deleteOption": "Delete" },
        { "lun": 1, "createOption": "Empty", "diskSizeGB": 4, "name": "kept" },
    ]);
    fixture.put(
        "a",
        vm_body_with("/properties/storageProfile/dataDisks", disks.clone()),
    );
    fixture.advance(100);
    assert_eq!(
        fixture.get(&format!("{VMS}/a"))["properties"]["storageProfile"]["dataDisks"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    fixture.delete("a");
    let left: Vec<_> = fixture
        .oracle()
        .disks
        .into_iter()
        .map(|disk| disk.id)
        .collect();
    assert_eq!(left, [format!("{COMPUTE}/disks/kept")]);
    for (member, value) in [("lun", json!(0)), ("name", json!("b_disk_0"))] {
        let mut twice = disks.clone();
        twice[1]["name"] = json!("other");
        twice[1][member] = value;
        let requested = vm_body_with("/properties/storageProfile/dataDisks", twice);
        let refused = fixture.refused(&format!("PUT {VMS}/b"), requested);
        assert_eq!(refused.1, "InvalidParameter");
    }
    fixture.ok(&format!("PUT {NETWORK}/networkInterfaces/n"), nic(None));
    let one = json!({ "id": format!("{NETWORK}/networkInterfaces/n") });
    let twice = json!({ "networkInterfaces": [one, one] });
    let requested = vm_body_with("/properties/networkProfile", twice);
    assert_eq!(
        fixture.refused(&format!("PUT {VMS}/b"), requested).1,
        "InvalidParameter"
    );
}

#[test]
fn console_url_needs_no_token() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let retrieve = format!("POST {VMS}/a/retrieveBootDiagnosticsData");
    assert_eq!(
        fixture.refused(&retrieve, Value::Null),
        (409, "OperationNotAllowed".to_owned())
    );
    let on = json!({ "properties": { "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } } } });
    fixture.ok(&format!("PATCH {VMS}/a"), on);
    fixture.advance(0);
    fixture.post("a", "restart");
    let urls = fixture.ok(&retrieve, Value::Null);
    let path = |name: &str| urls[name].as_str().unwrap().replace("http://here", "");
    let console = fixture
        .call(
            &format!("GET {}", path("serialConsoleLogBlobUri")),
            Value::Null,
        )
        .unwrap();
    assert_eq!(console.body.matches("booted").count(), 2);
    let screenshot = format!("GET {}", path("consoleScreenshotBlobUri"));
    assert_eq!(
        fixture.refused(&screenshot, Value::Null),
        (404, "BlobNotFound".to_owned())
    );
}

#[test]
fn unsupported_member_is_refused_without_effect() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.virtual_networks[0].subnets[0].cidr = "10.0.0.0/29".parse().unwrap();
    });
    let path = format!("{NETWORK}/networkInterfaces/n");
    let put = format!("PUT {path}");
    let address = |name: &str, value: Value| {
        let mut nic = nic(None);
        nic["properties"]["ipConfigurations"][0]["properties"][name] = value;
        nic
    };
    for requested in [
        address("privateIPAllocationMethod", json!("Static")),
        address("privateIPAddressVersion", json!("IPv6")),
    ] {
        assert_eq!(
            fixture.refused(&put, requested),
            (400, "NotSupported".to_owned())
        );
    }
    let mut named = nic(None);
    named["properties"]["dnsSettings"] = json!({ "dnsServers": ["10.0.0.4"] });
    assert_eq!(fixture.refused(&put, named).1, "NotSupported");
    let ip = format!("PUT {NETWORK}/publicIPAddresses/p");
    let ipv6 = json!({ "location": "eastus", "properties": { "publicIPAddressVersion": "IPv6" } });
    assert_eq!(fixture.refused(&ip, ipv6).1, "NotSupported");
    fixture.ok(&ip, json!({ "location": "eastus" }));
    let static_ip =
        json!({ "location": "eastus", "properties": { "publicIPAllocationMethod": "Static" } });
    assert_eq!(fixture.refused(&ip, static_ip).1, "NotSupported");
    let sku = json!({ "location": "eastus", "sku": { "name": "Standard" } });
    assert_eq!(fixture.refused(&ip, sku).1, "PropertyChangeNotAllowed");
    // One public address used twice, and more addresses than the subnet has.
    let mut twice = nic(Some("p"));
    let one = twice["properties"]["ipConfigurations"][0].clone();
    twice["properties"]["ipConfigurations"] = json!([one, one]);
    assert_eq!(fixture.refused(&put, twice).1, "InvalidParameter");
    let mut many = nic(None);
    let one = many["properties"]["ipConfigurations"][0].clone();
    many["properties"]["ipConfigurations"] = json!([one, one, one, one]);
    assert_eq!(fixture.refused(&put, many).1, "SubnetIsFull");
    assert!(fixture.oracle().nics.is_empty());
    for name in ["n", "m", "o"] {
        fixture.ok(
            &format!("PUT {NETWORK}/networkInterfaces/{name}"),
            nic(None),
        );
    }
    fixture.advance(0);
    assert_eq!(fixture.refused(&put, nic(Some("p"))).1, "NotSupported");
}

#[test]
fn document_that_was_read_can_be_sent_back() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let vm = fixture.vm("a");
    let image = format!("{COMPUTE}/images/copy");
    let disk = json!({ "osState": "Generalized", "managedDisk": { "id": vm.disks[0] } });
    let requested =
        json!({ "location": "eastus", "properties": { "storageProfile": { "osDisk": disk } } });
    fixture.ok(&format!("PUT {image}"), requested);
    fixture.advance(100);
    let ip = fixture.oracle().public_ips[0].id.clone();
    for path in [&vm.id, &vm.nics[0], &vm.disks[0], &ip, &image] {
        let document = fixture.get(path);
        let response = fixture.call(&format!("PUT {path}"), document.clone());
        let response = response.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"));
        assert!(response.status < 300);
        fixture.advance(100);
        let mut again = fixture.get(path);
        // Only the etag of a virtual machine changes.
        again["etag"] = document["etag"].clone();
        let (before, after) = (without_nulls(document), without_nulls(again));
        assert_eq!(before, after, "{path}");
    }
}
