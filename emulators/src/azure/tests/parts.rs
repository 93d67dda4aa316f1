//! Interfaces, public addresses and disks by themselves.

use super::*;
use crate::azure::wire::body::without_nulls;

fn nic(public: Option<&str>) -> Value {
    let public = public.map(|name| json!({ "id": format!("{NETWORK}/publicIPAddresses/{name}") }));
    let properties = json!({ "subnet": { "id": subnet() }, "publicIPAddress": public });
    json!({ "location": "eastus",
            "properties": { "ipConfigurations": [{ "name": "ip", "properties": properties }] } })
}

#[test]
fn an_interface_and_an_address_are_made_used_and_deleted_in_order() {
    let mut lab = Lab::new();
    let ip = format!("{NETWORK}/publicIPAddresses/p");
    let path = format!("{NETWORK}/networkInterfaces/n");
    let fixed =
        json!({ "location": "eastus", "properties": { "publicIPAllocationMethod": "Static" } });
    lab.ok(&format!("PUT {ip}"), fixed);
    lab.ok(&format!("PUT {path}"), nic(Some("p")));
    lab.pass(0);
    let taken = lab.refused(&format!("PUT {path}2"), nic(Some("p")));
    assert_eq!(taken.1, "PublicIPAddressInUse");
    let missing = lab.refused(&format!("PUT {path}2"), nic(Some("q")));
    assert_eq!(missing.1, "InvalidResourceReference");
    let wanted = json!({ "networkInterfaces": [{ "id": path, "properties": { "deleteOption": "Detach" } }] });
    lab.put(
        "a",
        order_with("/properties/networkProfile", wanted.clone()),
    );
    lab.pass(100);
    assert!(lab.vm("a").public_ip.is_some());
    let shown = lab.get(&format!("{path}?$expand=ipConfigurations/publicIPAddress"));
    let public = &shown["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"];
    assert!(public["properties"]["ipAddress"].is_string());
    let plain = lab.get(&path);
    assert!(
        plain["properties"]["virtualMachine"]["id"]
            .as_str()
            .unwrap()
            .ends_with("/a")
    );
    let again = lab.refused(
        &format!("PUT {VMS}/b"),
        order_with("/properties/networkProfile", wanted),
    );
    assert_eq!(again.1, "NicInUse");
    assert_eq!(
        lab.refused(&format!("DELETE {path}"), Value::Null),
        (400, "NicInUse".to_owned())
    );
    let used = lab.refused(&format!("DELETE {ip}"), Value::Null);
    assert_eq!(used, (400, "PublicIPAddressCannotBeDeleted".to_owned()));
    lab.delete("a");
    for path in [&path, &ip] {
        let answer = lab.call(&format!("DELETE {path}"), Value::Null).unwrap();
        assert_eq!(answer.status, 202);
        lab.pass(0);
        assert_eq!(lab.follow(&answer, "location").unwrap().status, 204);
        assert_eq!(
            lab.refused(&format!("GET {path}"), Value::Null).1,
            "ResourceNotFound"
        );
    }
    assert!(lab.oracle().nics.is_empty() && lab.oracle().public_ips.is_empty());
}

fn with_disks(disks: &Value) -> Value {
    json!({ "location": "eastus", "properties": { "storageProfile": { "dataDisks": disks } } })
}

#[test]
fn disks_are_attached_and_detached() {
    let mut lab = Lab::with(|knobs| knobs.timing.update = Duration::from_millis(50));
    let disk = format!("{COMPUTE}/disks/data");
    let empty = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
                        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
    lab.ok(&format!("PUT {disk}"), empty.clone());
    lab.running("a");
    lab.running("b");
    let attach = json!([{ "lun": 0, "createOption": "Attach", "managedDisk": { "id": disk } }]);
    lab.ok(&format!("PATCH {VMS}/a"), with_disks(&attach));
    lab.pass(50);
    assert_eq!(lab.vm("a").disks.len(), 2);
    assert_eq!(lab.get(&disk)["properties"]["diskState"], "Attached");
    let taken = lab.refused(&format!("PATCH {VMS}/b"), with_disks(&attach));
    assert_eq!(taken, (409, "Conflict".to_owned()));
    assert_eq!(
        lab.refused(&format!("DELETE {disk}"), Value::Null).1,
        "OperationNotAllowed"
    );
    lab.ok(&format!("PATCH {VMS}/a"), with_disks(&json!([])));
    let leaving = lab.refused(&format!("PATCH {VMS}/b"), with_disks(&attach));
    assert_eq!(leaving, (409, "AttachDiskWhileBeingDetached".to_owned()));
    lab.pass(50);
    lab.ok(&format!("PATCH {VMS}/b"), with_disks(&attach));
    lab.pass(50);
    lab.post("b", "deallocate");
    assert_eq!(lab.get(&disk)["properties"]["diskState"], "Reserved");
    lab.delete("b");
    assert_eq!(lab.get(&disk)["properties"]["diskState"], "Unattached");
    lab.ok(&format!("DELETE {disk}"), Value::Null);
    let going = lab.refused(&format!("PATCH {VMS}/a"), with_disks(&attach));
    assert_eq!(going, (409, "Conflict".to_owned()));
    lab.pass(50);
    lab.ok(&format!("PUT {disk}"), empty.clone());
    let bigger = json!({ "location": "eastus", "properties": { "diskSizeGB": 16 } });
    lab.ok(&format!("PUT {disk}"), bigger);
    assert_eq!(lab.refused(&format!("PUT {disk}"), empty).0, 400);
}

#[test]
fn machine_is_created_with_data_disks_and_delete_options() {
    let mut lab = Lab::new();
    let disks = json!([
        { "lun": 0, "createOption": "Empty", "diskSizeGB": 4, "deleteOption": "Delete" },
        { "lun": 1, "createOption": "Empty", "diskSizeGB": 4, "name": "kept" },
    ]);
    lab.put(
        "a",
        order_with("/properties/storageProfile/dataDisks", disks.clone()),
    );
    lab.pass(100);
    assert_eq!(
        lab.get(&format!("{VMS}/a"))["properties"]["storageProfile"]["dataDisks"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    lab.delete("a");
    let left: Vec<_> = lab.oracle().disks.into_iter().map(|disk| disk.id).collect();
    assert_eq!(left, [format!("{COMPUTE}/disks/kept")]);
    for (member, value) in [("lun", json!(0)), ("name", json!("b_disk_0"))] {
        let mut twice = disks.clone();
        twice[1]["name"] = json!("other");
        twice[1][member] = value;
        let wanted = order_with("/properties/storageProfile/dataDisks", twice);
        let refused = lab.refused(&format!("PUT {VMS}/b"), wanted);
        assert_eq!(refused.1, "InvalidParameter");
    }
    lab.ok(&format!("PUT {NETWORK}/networkInterfaces/n"), nic(None));
    let one = json!({ "id": format!("{NETWORK}/networkInterfaces/n") });
    let twice = json!({ "networkInterfaces": [one, one] });
    let wanted = order_with("/properties/networkProfile", twice);
    assert_eq!(
        lab.refused(&format!("PUT {VMS}/b"), wanted).1,
        "InvalidParameter"
    );
}

#[test]
fn console_url_needs_no_token() {
    let mut lab = Lab::new();
    lab.running("a");
    let ask = format!("POST {VMS}/a/retrieveBootDiagnosticsData");
    assert_eq!(
        lab.refused(&ask, Value::Null),
        (409, "OperationNotAllowed".to_owned())
    );
    let on = json!({ "properties": { "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } } } });
    lab.ok(&format!("PATCH {VMS}/a"), on);
    lab.pass(0);
    lab.post("a", "restart");
    let urls = lab.ok(&ask, Value::Null);
    let path = |name: &str| urls[name].as_str().unwrap().replace("http://here", "");
    let console = lab
        .call(
            &format!("GET {}", path("serialConsoleLogBlobUri")),
            Value::Null,
        )
        .unwrap();
    assert_eq!(console.body.matches("booted").count(), 2);
    let screenshot = format!("GET {}", path("consoleScreenshotBlobUri"));
    assert_eq!(
        lab.refused(&screenshot, Value::Null),
        (404, "BlobNotFound".to_owned())
    );
}

#[test]
fn unsupported_member_is_refused_without_effect() {
    let mut lab = Lab::with(|knobs| {
        knobs.virtual_networks[0].subnets[0].cidr = "10.0.0.0/29".parse().unwrap();
    });
    let path = format!("{NETWORK}/networkInterfaces/n");
    let put = format!("PUT {path}");
    let address = |name: &str, value: Value| {
        let mut nic = nic(None);
        nic["properties"]["ipConfigurations"][0]["properties"][name] = value;
        nic
    };
    for wanted in [
        address("privateIPAllocationMethod", json!("Static")),
        address("privateIPAddressVersion", json!("IPv6")),
    ] {
        assert_eq!(lab.refused(&put, wanted), (400, "NotSupported".to_owned()));
    }
    let mut named = nic(None);
    named["properties"]["dnsSettings"] = json!({ "dnsServers": ["10.0.0.4"] });
    assert_eq!(lab.refused(&put, named).1, "NotSupported");
    let ip = format!("PUT {NETWORK}/publicIPAddresses/p");
    let sixth = json!({ "location": "eastus", "properties": { "publicIPAddressVersion": "IPv6" } });
    assert_eq!(lab.refused(&ip, sixth).1, "NotSupported");
    lab.ok(&ip, json!({ "location": "eastus" }));
    let fixed =
        json!({ "location": "eastus", "properties": { "publicIPAllocationMethod": "Static" } });
    assert_eq!(lab.refused(&ip, fixed).1, "NotSupported");
    let sku = json!({ "location": "eastus", "sku": { "name": "Standard" } });
    assert_eq!(lab.refused(&ip, sku).1, "PropertyChangeNotAllowed");
    // Two addresses with one public one, and more addresses than there are.
    let mut twice = nic(Some("p"));
    let one = twice["properties"]["ipConfigurations"][0].clone();
    twice["properties"]["ipConfigurations"] = json!([one, one]);
    assert_eq!(lab.refused(&put, twice).1, "InvalidParameter");
    let mut many = nic(None);
    let one = many["properties"]["ipConfigurations"][0].clone();
    many["properties"]["ipConfigurations"] = json!([one, one, one, one]);
    assert_eq!(lab.refused(&put, many).1, "SubnetIsFull");
    assert!(lab.oracle().nics.is_empty());
    for name in ["n", "m", "o"] {
        lab.ok(
            &format!("PUT {NETWORK}/networkInterfaces/{name}"),
            nic(None),
        );
    }
    lab.pass(0);
    assert_eq!(lab.refused(&put, nic(Some("p"))).1, "NotSupported");
}

#[test]
fn document_that_was_read_can_be_sent_back() {
    let mut lab = Lab::new();
    lab.running("a");
    let vm = lab.vm("a");
    let image = format!("{COMPUTE}/images/copy");
    let disk = json!({ "osState": "Generalized", "managedDisk": { "id": vm.disks[0] } });
    let wanted =
        json!({ "location": "eastus", "properties": { "storageProfile": { "osDisk": disk } } });
    lab.ok(&format!("PUT {image}"), wanted);
    lab.pass(100);
    let ip = lab.oracle().public_ips[0].id.clone();
    for path in [&vm.id, &vm.nics[0], &vm.disks[0], &ip, &image] {
        let shown = lab.get(path);
        let answer = lab.call(&format!("PUT {path}"), shown.clone());
        let answer = answer.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"));
        assert!(answer.status < 300);
        lab.pass(100);
        let mut again = lab.get(path);
        // Only the version of a virtual machine counts on.
        again["etag"] = shown["etag"].clone();
        let (before, after) = (without_nulls(shown), without_nulls(again));
        assert_eq!(before, after, "{path}");
    }
}
