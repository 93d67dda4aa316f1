//! Resource groups, all resources of a subscription, and tags.

use super::*;

const GROUPS: &str = "/subscriptions/s/resourceGroups";

#[test]
fn resource_group_is_deleted_with_everything_in_it() {
    let mut fixture = Fixture::new();
    let created = fixture
        .call(
            &format!("PUT {GROUPS}/mine"),
            json!({ "location": "East US" }),
        )
        .unwrap();
    assert_eq!(created.status, 201);
    let again = fixture.call(
        &format!("PUT {GROUPS}/mine"),
        json!({ "location": "eastus", "tags": { "a": "b" } }),
    );
    assert_eq!(again.unwrap().status, 200);
    let moved = fixture.refused(
        &format!("PUT {GROUPS}/mine"),
        json!({ "location": "westus" }),
    );
    assert_eq!(moved.1, "InvalidResourceGroupLocation");
    let vm = format!("{GROUPS}/mine/providers/Microsoft.Compute/virtualMachines/vm");
    fixture.ok(&format!("PUT {vm}"), vm_body());
    fixture.advance(100);
    let key = format!("{GROUPS}/mine/providers/Microsoft.Compute/sshPublicKeys/key");
    fixture.ok(&format!("PUT {key}"), json!({ "location": "eastus" }));
    assert_eq!(
        fixture.get(&format!("{GROUPS}/mine/resources"))["value"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    let deleted = fixture
        .call(&format!("DELETE {GROUPS}/mine"), Value::Null)
        .unwrap();
    assert_eq!(deleted.status, 202);
    fixture.advance(0);
    assert_eq!(fixture.follow(&deleted, "location").unwrap().status, 200);
    let oracle = fixture.oracle();
    assert!(oracle.vms.is_empty() && oracle.nics.is_empty() && oracle.disks.is_empty());
    for text in [
        format!("GET {GROUPS}/mine"),
        format!("HEAD {GROUPS}/mine"),
        format!("DELETE {GROUPS}/mine"),
        format!("GET {vm}"),
        format!("GET {key}"),
    ] {
        assert_eq!(
            fixture.refused(&text, Value::Null).1,
            "ResourceGroupNotFound",
            "{text}"
        );
    }
}

#[test]
fn group_of_the_catalog_is_deleted_in_one_subscription() {
    let mut fixture = Fixture::new();
    fixture.ok(&format!("DELETE {GROUPS}/rg"), Value::Null);
    assert_eq!(
        fixture.refused(&format!("GET {GROUPS}/rg"), Value::Null).0,
        404
    );
    assert_eq!(
        fixture.get("/subscriptions/t/resourceGroups/rg")["name"],
        "rg"
    );
    assert_eq!(fixture.get(GROUPS)["value"].as_array().unwrap().len(), 1);
    fixture.ok(&format!("PUT {GROUPS}/rg"), json!({ "location": "westus" }));
    assert_eq!(fixture.get(&format!("{GROUPS}/rg"))["location"], "westus");
    assert_eq!(
        fixture.get(&format!("{NETWORK}/virtualNetworks"))["value"],
        json!([])
    );
}

#[test]
fn resources_are_listed_by_filter() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let count = |fixture: &mut Fixture, filter: &str| {
        let path = format!("/subscriptions/s/resources?$filter={filter}");
        fixture.get(&path)["value"].as_array().unwrap().len()
    };
    assert_eq!(
        count(
            &mut fixture,
            "resourceType eq 'microsoft.compute/virtualmachines'"
        ),
        1
    );
    assert_eq!(
        count(&mut fixture, "tagName eq 'Owner' and tagValue eq 'me'"),
        1
    );
    assert_eq!(count(&mut fixture, "resourceGroup eq 'other'"), 0);
    let bad = fixture.refused(
        "GET /subscriptions/s/resources?$filter=colour eq 'red'",
        Value::Null,
    );
    assert_eq!(bad.1, "InvalidFilterInQueryString");
    let names = fixture.get("/subscriptions/s/tagNames");
    assert_eq!(names["value"][0]["values"][0]["tagValue"], "me");
}

#[test]
fn tags_are_read_merged_and_removed() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let tags = |id: &str| format!("{id}/providers/Microsoft.Resources/tags/default");
    let vm = format!("{VMS}/a");
    let body = |operation: &str, tags: Value| json!({ "operation": operation, "properties": { "tags": tags } });
    fixture.ok(
        &format!("PATCH {}", tags(&vm)),
        body("Merge", json!({ "b": "c" })),
    );
    assert_eq!(fixture.get(&vm)["tags"], json!({ "Owner": "me", "b": "c" }));
    fixture.ok(
        &format!("PATCH {}", tags(&vm)),
        body("Delete", json!({ "Owner": "me" })),
    );
    assert_eq!(
        fixture.get(&tags(&vm))["properties"]["tags"],
        json!({ "b": "c" })
    );
    fixture.ok(
        &format!("PUT {}", tags(&vm)),
        json!({ "properties": { "tags": { "x": "y" } } }),
    );
    assert_eq!(fixture.vm("a").tags.len(), 1);
    fixture.ok(&format!("DELETE {}", tags(&vm)), Value::Null);
    assert!(fixture.vm("a").tags.is_empty());
    let group = tags(&format!("{GROUPS}/rg"));
    fixture.ok(
        &format!("PUT {group}"),
        json!({ "properties": { "tags": { "x": "y" } } }),
    );
    assert_eq!(
        fixture.get(&format!("{GROUPS}/rg"))["tags"],
        json!({ "x": "y" })
    );
    let missing = fixture.refused(
        &format!("GET {}", tags(&format!("{VMS}/none"))),
        Value::Null,
    );
    assert_eq!(missing.1, "ResourceNotFound");
    let odd = format!("{GROUPS}/rg/providers/Contoso.Dogs/dogs/rex");
    assert_eq!(
        fixture
            .refused(&format!("GET {}", tags(&odd)), Value::Null)
            .1,
        "NotEmulated"
    );
    let wrong = fixture.refused(&format!("PATCH {}", tags(&vm)), body("Paint", json!({})));
    assert_eq!(wrong.1, "InvalidParameter");
}
