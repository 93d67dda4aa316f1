//! What was read can be sent back: a `PUT` of the document of a `GET` is accepted and changes
//! nothing, for every kind of resource. Members that Azure's models have are never unknown.

use super::*;
use crate::azure::wire::{
    body::{DiskBody, IpBody, NicBody},
    id::Kind,
    members::Known,
    schema,
};

const SUBSCRIPTION: &str = "/subscriptions/s";

/// Returns the path and a valid document of a resource of each kind, in the order of creation.
fn resources() -> Vec<(String, Value)> {
    let place = |kind: Kind| {
        format!(
            "{SUBSCRIPTION}/resourceGroups/rg/providers/{}/mine",
            kind.name()
        )
    };
    let rule = json!({
        "name": "ssh",
        "properties": {
            "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 100,
            "sourcePortRange": "*", "destinationPortRange": "22", "sourceAddressPrefix": "*",
            "destinationAddressPrefix": "*",
        },
    });
    let group = place(Kind::SecurityGroup);
    let subnet = json!({
        "name": "one",
        "properties": { "addressPrefix": "10.5.0.0/24", "networkSecurityGroup": { "id": group } },
    });
    let address = json!({
        "name": "ip",
        "properties": {
            "subnet": { "id": format!("{}/subnets/one", place(Kind::VirtualNetwork)) },
            "publicIPAddress": { "id": place(Kind::PublicIp) },
        },
    });
    Kind::ALL
        .into_iter()
        .map(|kind| {
            let body = match kind {
                Kind::ResourceGroup => json!({ "location": "eastus" }),
                Kind::SecurityGroup => json!({ "location": "eastus", "properties": { "securityRules": [rule] } }),
                Kind::VirtualNetwork => json!({
                    "location": "eastus",
                    "properties": { "addressSpace": { "addressPrefixes": ["10.5.0.0/16"] }, "subnets": [subnet] },
                }),
                Kind::SshKey => json!({ "location": "eastus", "properties": { "publicKey": "ssh-rsa AAAA" } }),
                Kind::PublicIp => json!({ "location": "eastus", "sku": { "name": "Standard" } }),
                Kind::Nic => json!({
                    "location": "eastus",
                    "properties": { "ipConfigurations": [address], "networkSecurityGroup": { "id": group } },
                }),
                Kind::Disk => json!({
                    "location": "eastus",
                    "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 },
                }),
                Kind::Snapshot => json!({
                    "location": "eastus",
                    "properties": {
                        "creationData": { "createOption": "Copy", "sourceResourceId": place(Kind::Disk) },
                    },
                }),
                Kind::Image => json!({
                    "location": "eastus",
                    "properties": {
                        "storageProfile": {
                            "osDisk": { "osType": "Linux", "osState": "Generalized", "managedDisk": { "id": place(Kind::Disk) } },
                        },
                    },
                }),
                Kind::VirtualMachine => vm_body(),
            };
            let path = if kind == Kind::ResourceGroup {
                format!("{SUBSCRIPTION}/resourceGroups/mine")
            } else {
                place(kind)
            };
            (rank(kind), path, body)
        })
        .fold(Vec::new(), |mut sorted: Vec<(u8, String, Value)>, it| {
            sorted.push(it);
            sorted.sort_by_key(|(rank, ..)| *rank);
            sorted
        })
        .into_iter()
        .map(|(_, path, body)| (path, body))
        .collect()
}

/// Resources come behind those that they refer to.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::ResourceGroup | Kind::SecurityGroup | Kind::SshKey | Kind::PublicIp | Kind::Disk => 0,
        Kind::VirtualNetwork | Kind::Snapshot | Kind::Image => 1,
        Kind::Nic => 2,
        Kind::VirtualMachine => 3,
    }
}

#[test]
fn every_resource_that_was_read_can_be_sent_back() {
    let mut fixture = Fixture::new();
    for (path, body) in resources() {
        let mut tagged = body;
        tagged["tags"] = json!({ "a": "b" });
        fixture.ok(&format!("PUT {path}"), tagged);
        fixture.advance(100);
        let read = fixture.get(&path);
        let response = fixture.call(&format!("PUT {path}"), read.clone());
        let response = response.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}\n{read:#}"));
        assert!(
            [200, 202].contains(&response.status),
            "{path}: {}",
            response.status
        );
        fixture.advance(100);
        let mut again = fixture.get(&path);
        // Only a machine's version counts every change.
        if again["etag"]
            .as_str()
            .is_some_and(|etag| !etag.starts_with("W/"))
        {
            again["etag"] = read["etag"].clone();
        }
        assert_eq!(again, read, "{path}");
    }
}

#[test]
fn parts_of_documents_and_whole_references_can_be_sent_back() {
    let mut fixture = Fixture::new();
    for (path, body) in resources() {
        fixture.ok(&format!("PUT {path}"), body);
        fixture.advance(100);
    }
    for part in [
        "virtualNetworks/mine/subnets/one",
        "networkSecurityGroups/mine/securityRules/ssh",
    ] {
        let path = format!("{NETWORK}/{part}");
        let read = fixture.get(&path);
        fixture.ok(&format!("PUT {path}"), read.clone());
        assert_eq!(fixture.get(&path), read);
    }
    // A reference may be the whole document, as the models say.
    let path = format!("{NETWORK}/networkInterfaces/mine");
    let mut nic = fixture.get(&path);
    let properties = &mut nic["properties"];
    properties["networkSecurityGroup"] =
        fixture.get(&format!("{NETWORK}/networkSecurityGroups/mine"));
    let address = &mut properties["ipConfigurations"][0]["properties"];
    address["subnet"] = fixture.get(&format!("{NETWORK}/virtualNetworks/mine/subnets/one"));
    address["publicIPAddress"] = fixture.get(&format!("{NETWORK}/publicIPAddresses/mine"));
    fixture.ok(&format!("PUT {path}"), nic.clone());
    nic["properties"]["ipConfigurations"][0]["properties"]["subnet"]["colour"] = json!("red");
    assert_eq!(fixture.refused(&format!("PUT {path}"), nic).1, "BadRequest");
}

#[test]
fn known_members_are_accepted_at_their_default_and_refused_by_name_otherwise() {
    // An address, a valid body, and the members of its model.
    type Table = (String, fn() -> Value, &'static [schema::Member]);
    let tables: [Table; 4] = [
        (
            format!("{VMS}/vm"),
            vm_body,
            <crate::azure::wire::vm_body::VmBody as Known>::MEMBERS,
        ),
        (
            format!("{NETWORK}/publicIPAddresses/ip"),
            || json!({ "location": "eastus" }),
            <IpBody as Known>::MEMBERS,
        ),
        (
            format!("{NETWORK}/networkInterfaces/nic"),
            || {
                let address =
                    json!({ "name": "ip", "properties": { "subnet": { "id": subnet() } } });
                json!({ "location": "eastus", "properties": { "ipConfigurations": [address] } })
            },
            <NicBody as Known>::MEMBERS,
        ),
        (
            format!("{COMPUTE}/disks/disk"),
            || {
                let data = json!({ "createOption": "Empty" });
                json!({ "location": "eastus", "properties": { "creationData": data, "diskSizeGB": 1 } })
            },
            <DiskBody as Known>::MEMBERS,
        ),
    ];
    for (path, body, members) in tables {
        let pointers = schema::not_emulated(members);
        assert!(pointers.len() > 5, "{path}");
        for pointer in pointers {
            let put = |value: Value| {
                let mut document = body();
                set(&mut document, &pointer, value);
                document
            };
            let mut fixture = Fixture::new();
            for default in [json!({}), json!([]), json!(false), json!(null)] {
                let refusal = fixture.call(&format!("PUT {path}"), put(default)).err();
                // A data disk without a number is refused for another reason.
                let code = refusal.map(|refusal| refusal.code.into_owned());
                let accepted = matches!(code.as_deref(), None | Some("InvalidParameter"));
                assert!(accepted, "{path} {pointer}: {code:?}");
            }
            let mut fixture = Fixture::new();
            let refusal = fixture
                .call(&format!("PUT {path}"), put(json!({ "id": "x" })))
                .unwrap_err();
            assert_eq!(&*refusal.code, "NotSupported", "{path} {pointer}");
            let name = pointer.rsplit('/').next().unwrap();
            assert!(
                refusal.message.contains(name),
                "{pointer}: {}",
                refusal.message
            );
        }
    }
}

/// Sets a member by its pointer, and creates the objects and lists that it is in.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut place = document;
    for part in pointer.trim_start_matches('/').split('/') {
        if part == "0" {
            if !place.is_array() {
                *place = json!([{}]);
            }
            place = &mut place[0];
        } else {
            place = &mut place[part];
        }
    }
    *place = value;
}
