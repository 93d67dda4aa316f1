//! Virtual networks, subnets, network security groups and their rules.

use super::*;

fn network(prefix: &str, subnets: &[(&str, &str)]) -> Value {
    let subnets = subnets.iter();
    let subnets: Vec<_> = subnets
        .map(|(name, range)| json!({ "name": name, "properties": { "addressPrefix": range } }))
        .collect();
    json!({
        "location": "eastus",
        "properties": { "addressSpace": { "addressPrefixes": [prefix] }, "subnets": subnets },
    })
}

fn rule(priority: i64, direction: &str) -> Value {
    json!({ "properties": {
        "protocol": "tcp", "access": "Allow", "direction": direction, "priority": priority,
        "sourcePortRange": "*", "destinationPortRange": "22", "sourceAddressPrefix": "*",
        "destinationAddressPrefix": "*",
    } })
}

fn nic(subnet: &str) -> Value {
    let address = json!({ "name": "ip", "properties": { "subnet": { "id": subnet } } });
    json!({ "location": "eastus", "properties": { "ipConfigurations": [address] } })
}

#[test]
fn network_is_created_used_and_deleted() {
    let mut fixture = Fixture::new();
    let path = format!("{NETWORK}/virtualNetworks/mine");
    let created = fixture.call(
        &format!("PUT {path}"),
        network("10.1.0.0/16", &[("a", "10.1.0.0/24")]),
    );
    let created = created.unwrap();
    assert_eq!(created.status, 201);
    assert_eq!(fixture.status(&created)["status"], "Succeeded");
    let second = json!({ "properties": { "addressPrefixes": ["10.1.1.0/24"] } });
    fixture.ok(&format!("PUT {path}/subnets/b"), second);
    let subnets = fixture.get(&format!("{path}/subnets"));
    assert_eq!(
        subnets["value"][1]["properties"]["addressPrefix"],
        "10.1.1.0/24"
    );
    let nic_path = format!("{NETWORK}/networkInterfaces/n");
    fixture.ok(
        &format!("PUT {nic_path}"),
        nic(&format!("{path}/subnets/b")),
    );
    let address = fixture.get(&nic_path);
    let address = &address["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    assert_eq!(address, "10.1.1.4");
    for text in [format!("DELETE {path}"), format!("DELETE {path}/subnets/b")] {
        assert_eq!(
            fixture.refused(&text, Value::Null).1,
            "InUseSubnetCannotBeDeleted",
            "{text}"
        );
    }
    let without = network("10.1.0.0/16", &[("a", "10.1.0.0/24")]);
    assert_eq!(
        fixture.refused(&format!("PUT {path}"), without).1,
        "InUseSubnetCannotBeDeleted"
    );
    let moved = json!({ "properties": { "addressPrefix": "10.1.2.0/24" } });
    let refused = fixture.refused(&format!("PUT {path}/subnets/b"), moved.clone());
    assert_eq!(refused.1, "InUsePrefixCannotBeDeleted");
    fixture.ok(&format!("DELETE {nic_path}"), Value::Null);
    fixture.advance(0);
    fixture.ok(&format!("PUT {path}/subnets/b"), moved);
    fixture.ok(
        &format!("PUT {nic_path}"),
        nic(&format!("{path}/subnets/b")),
    );
    let address = fixture.get(&nic_path);
    let address = &address["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    assert_eq!(address, "10.1.2.4");
    fixture.ok(&format!("DELETE {nic_path}"), Value::Null);
    fixture.advance(0);
    let deleted = fixture
        .call(&format!("DELETE {path}"), Value::Null)
        .unwrap();
    assert_eq!(deleted.status, 202);
    fixture.advance(0);
    assert_eq!(fixture.follow(&deleted, "location").unwrap().status, 204);
    assert_eq!(
        fixture.refused(&format!("GET {path}"), Value::Null).1,
        "ResourceNotFound"
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
fn address_ranges_are_checked() {
    let mut fixture = Fixture::new();
    let put = format!("PUT {NETWORK}/virtualNetworks/mine");
    for (body, code) in [
        (network("10.1.0.0", &[]), "InvalidAddressPrefixFormat"),
        (network("fd00::/64", &[]), "NotSupported"),
        (
            network("10.1.0.0/16", &[("a", "10.2.0.0/24")]),
            "NetcfgSubnetRangeOutsideVnet",
        ),
        (
            network("10.1.0.0/16", &[("a", "10.1.0.0/24"), ("b", "10.1.0.0/25")]),
            "NetcfgSubnetRangesOverlap",
        ),
        (
            json!({ "location": "eastus", "properties": {} }),
            "InvalidParameter",
        ),
        (json!({ "properties": {} }), "LocationRequired"),
        (
            json!({ "location": "eastus", "colour": "red" }),
            "BadRequest",
        ),
    ] {
        assert_eq!(fixture.refused(&put, body).1, code);
    }
    assert_eq!(fixture.refused(&put, json!([])).1, "InvalidRequestContent");
}

#[test]
fn networks_of_the_catalog_can_be_replaced_and_deleted_in_a_subscription() {
    let mut fixture = Fixture::new();
    let path = format!("{NETWORK}/virtualNetworks/vnet");
    let replaced = fixture.call(
        &format!("PUT {path}"),
        network("10.0.0.0/16", &[("new", "10.0.1.0/24")]),
    );
    assert_eq!(replaced.unwrap().status, 200);
    assert_eq!(
        fixture.get(&path)["properties"]["subnets"][0]["name"],
        "new"
    );
    let other = path.replace("/s/", "/t/");
    assert_eq!(
        fixture.get(&other)["properties"]["subnets"][0]["name"],
        "default"
    );
    fixture.ok(&format!("DELETE {path}"), Value::Null);
    assert_eq!(fixture.refused(&format!("GET {path}"), Value::Null).0, 404);
    let all = "/subscriptions/s/providers/Microsoft.Network/virtualNetworks";
    assert_eq!(fixture.get(all)["value"], json!([]));
    let used = fixture.refused(
        &format!("PUT {NETWORK}/networkInterfaces/n"),
        nic(&subnet()),
    );
    assert_eq!(used.1, "InvalidResourceReference");
    assert_eq!(fixture.get(&other)["name"], "vnet");
}

#[test]
fn security_group_has_rules() {
    let mut fixture = Fixture::new();
    let path = format!("{NETWORK}/networkSecurityGroups/mine");
    fixture.ok(
        &format!("PUT {path}"),
        json!({ "location": "eastus", "tags": { "a": "b" } }),
    );
    fixture.ok(
        &format!("PUT {path}/securityRules/ssh"),
        rule(100, "Inbound"),
    );
    fixture.ok(
        &format!("PUT {path}/securityRules/out"),
        rule(100, "Outbound"),
    );
    let clash = fixture.refused(
        &format!("PUT {path}/securityRules/web"),
        rule(100, "Inbound"),
    );
    assert_eq!(clash.1, "SecurityRuleConflict");
    let high = fixture.refused(
        &format!("PUT {path}/securityRules/web"),
        rule(5000, "Inbound"),
    );
    assert_eq!(high.1, "SecurityRuleInvalidPriority");
    let empty = fixture.refused(&format!("PUT {path}/securityRules/web"), json!({}));
    assert_eq!(empty.1, "InvalidParameter");
    let group = fixture.get(&path);
    assert_eq!(
        group["properties"]["securityRules"][0]["properties"]["protocol"],
        "Tcp"
    );
    assert_eq!(
        group["properties"]["defaultSecurityRules"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let defaults = fixture.get(&format!("{path}/defaultSecurityRules"));
    assert_eq!(defaults["value"].as_array().unwrap().len(), 6);
    assert_eq!(
        fixture.get(&format!("{path}/securityRules/SSH"))["name"],
        "ssh"
    );
    fixture.ok(&format!("DELETE {path}/securityRules/ssh"), Value::Null);
    assert_eq!(
        fixture
            .refused(&format!("GET {path}/securityRules/ssh"), Value::Null)
            .1,
        "NotFound"
    );
    assert_eq!(
        fixture.get(&format!("{path}/securityRules"))["value"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let again = fixture
        .call(&format!("DELETE {path}/securityRules/ssh"), Value::Null)
        .unwrap();
    assert_eq!(again.status, 204);

    let mut used = nic(&subnet());
    used["properties"]["networkSecurityGroup"] = json!({ "id": path });
    fixture.ok(&format!("PUT {NETWORK}/networkInterfaces/n"), used);
    let refused = fixture.refused(&format!("DELETE {path}"), Value::Null);
    assert_eq!(refused.1, "InUseNetworkSecurityGroupCannotBeDeleted");
    let patched = fixture.ok(&format!("PATCH {path}"), json!({ "tags": { "c": "d" } }));
    assert_eq!(patched["tags"], json!({ "c": "d" }));
    assert_eq!(
        fixture
            .refused(&format!("PATCH {path}"), json!({ "location": "westus" }))
            .1,
        "BadRequest"
    );
    let all = "/subscriptions/s/providers/Microsoft.Network/networkSecurityGroups";
    assert_eq!(fixture.get(all)["value"].as_array().unwrap().len(), 2);
}

#[test]
fn planned_failure_changes_nothing() {
    let mut fixture = Fixture::new();
    let path = format!("{NETWORK}/virtualNetworks/mine");
    let context = CallContext {
        planned_failures: vec![crate::cloud::fault::Failure::new("Broken", "text")],
        ..CallContext::default()
    };
    let response = fixture
        .call_as(
            &format!("PUT {path}"),
            network("10.1.0.0/16", &[]),
            &context,
        )
        .unwrap();
    fixture.advance(0);
    assert_eq!(fixture.status(&response)["error"]["code"], "Broken");
    assert_eq!(fixture.refused(&format!("GET {path}"), Value::Null).0, 404);
    let network = format!("{NETWORK}/virtualNetworks/vnet");
    let response = fixture
        .call_as(&format!("DELETE {network}"), Value::Null, &context)
        .unwrap();
    fixture.advance(0);
    assert_eq!(fixture.status(&response)["error"]["code"], "Broken");
    assert_eq!(fixture.get(&network)["name"], "vnet");
}
