//! The catalog.

use super::*;

#[test]
fn catalog_can_be_listed() {
    let mut fixture = Fixture::with(|knobs| knobs.sizes[1].restricted = true);
    let compute = "/subscriptions/s/providers/Microsoft.Compute";
    let count = |document: &Value| document["value"].as_array().unwrap().len();
    assert_eq!(
        fixture.get("/subscriptions/s/resourceGroups/RG")["location"],
        "eastus"
    );
    assert_eq!(
        fixture
            .refused("GET /subscriptions/s/resourceGroups/none", Value::Null)
            .1,
        "ResourceGroupNotFound"
    );
    let exists = fixture.call("HEAD /subscriptions/s/resourceGroups/rg", Value::Null);
    assert_eq!(exists.unwrap().status, 204);
    assert_eq!(count(&fixture.get("/subscriptions/s/resourceGroups")), 2);
    assert_eq!(count(&fixture.get("/subscriptions/s/locations")), 2);
    assert_eq!(fixture.get(compute)["namespace"], "Microsoft.Compute");
    assert_eq!(
        fixture
            .refused("GET /subscriptions/s/providers/Contoso", Value::Null)
            .0,
        404
    );
    let sizes = fixture.get(&format!("{compute}/locations/eastus/vmSizes"));
    assert_eq!(count(&sizes), 6);
    assert_eq!(
        fixture
            .refused(
                &format!("GET {compute}/locations/moon/vmSizes"),
                Value::Null
            )
            .0,
        400
    );
    let skus = fixture.get(&format!("{compute}/skus?$filter=location eq 'eastus'"));
    assert_eq!(count(&skus), 7);
    assert_eq!(
        skus["value"][1]["restrictions"][0]["reasonCode"],
        "NotAvailableForSubscription"
    );
    assert_eq!(count(&fixture.get(&format!("{compute}/skus"))), 14);
    assert_eq!(
        fixture
            .refused(&format!("GET {compute}/skus?$filter=colour"), Value::Null)
            .0,
        400
    );
    assert_eq!(
        count(&fixture.get("/subscriptions/s/providers/Microsoft.Network/virtualNetworks")),
        1
    );
    assert_eq!(
        count(&fixture.get(&format!("{NETWORK}/virtualNetworks"))),
        1
    );
    assert_eq!(
        fixture.get(&subnet())["properties"]["addressPrefix"],
        "10.0.0.0/16"
    );
    assert_eq!(
        count(&fixture.get(&format!("{NETWORK}/virtualNetworks/vnet/subnets"))),
        1
    );
    assert_eq!(
        fixture
            .refused(&format!("GET {NETWORK}/virtualNetworks/none"), Value::Null)
            .1,
        "ResourceNotFound"
    );
    assert_eq!(
        fixture
            .refused(
                &format!("GET {NETWORK}/virtualNetworks/vnet/subnets/none"),
                Value::Null
            )
            .1,
        "NotFound"
    );
    assert_eq!(
        count(&fixture.get(&format!("{NETWORK}/networkSecurityGroups"))),
        1
    );
    assert_eq!(
        fixture.get(&format!("{NETWORK}/networkSecurityGroups/nsg"))["name"],
        "nsg"
    );
    assert_eq!(
        fixture
            .refused(
                &format!("GET {NETWORK}/networkSecurityGroups/none"),
                Value::Null
            )
            .0,
        404
    );
}

#[test]
fn quota_usage_is_reported() {
    let mut fixture = Fixture::with(|knobs| knobs.vcpu_quota = Some(10));
    fixture.running("a");
    fixture.put("b", vm_body_with("/properties/priority", json!("Spot")));
    let usages =
        fixture.get("/subscriptions/s/providers/Microsoft.Compute/locations/eastus/usages");
    let usage_and_limit = |name: &str| {
        let all = usages["value"].as_array().unwrap().iter();
        let mut found = all.filter(|usage| usage["name"]["value"] == name);
        let usage = found.next().unwrap();
        (
            usage["currentValue"].as_u64().unwrap(),
            usage["limit"].as_u64().unwrap(),
        )
    };
    assert_eq!(usage_and_limit("cores"), (1, 10));
    assert_eq!(usage_and_limit("lowPriorityCores").0, 1);
    assert_eq!(usage_and_limit("standardBSFamily").0, 1);
    assert_eq!(usage_and_limit("virtualMachines").0, 2);
}
