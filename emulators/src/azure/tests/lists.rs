//! Lists: pages, links and scopes.

use super::*;
use crate::cloud::page::PageFault;

fn names(document: &Value) -> Vec<String> {
    let items = document["value"].as_array().unwrap().iter();
    items
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns all names of a list, and the number of its pages.
fn list_all_pages(fixture: &mut Fixture, path: &str) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut next) = (Vec::new(), 0, Some(path.to_owned()));
    while let Some(path) = next {
        let page = fixture.get(&path);
        all.extend(names(&page));
        pages += 1;
        let link = page["nextLink"].as_str();
        next = link.map(|link| link.strip_prefix("http://here").unwrap().to_owned());
        assert!(pages < 100);
    }
    (all, pages)
}

fn fixture_with(count: usize) -> Fixture {
    let mut fixture =
        Fixture::with(|knobs| knobs.page_size = std::num::NonZeroU32::new(2).unwrap());
    for number in 0..count {
        fixture.put(&format!("vm{number}"), vm_body());
    }
    fixture.advance(100);
    fixture
}

#[test]
fn pages_cover_a_list_and_scopes_are_kept_apart() {
    let mut fixture = fixture_with(5);
    let other = VMS.replace("/rg/", "/other/");
    fixture.ok(&format!("PUT {other}/far"), vm_body());
    fixture.ok(&format!("PUT {}/else", VMS.replace("/s/", "/t/")), {
        let text = vm_body()
            .to_string()
            .replace("/subscriptions/s/", "/subscriptions/t/");
        serde_json::from_str(&text).unwrap()
    });
    let (all, pages) = list_all_pages(&mut fixture, VMS);
    assert_eq!(
        (all, pages),
        ((0..5).map(|n| format!("vm{n}")).collect(), 3)
    );
    let everything = "/subscriptions/s/providers/Microsoft.Compute/virtualMachines";
    assert_eq!(list_all_pages(&mut fixture, everything).0.len(), 6);
    let east = "/subscriptions/s/providers/Microsoft.Compute/locations/eastus/virtualMachines";
    assert_eq!(list_all_pages(&mut fixture, east).0.len(), 6);
    let west = east.replace("eastus", "westus");
    assert_eq!(list_all_pages(&mut fixture, &west).0.len(), 0);
    assert_eq!(
        list_all_pages(&mut fixture, &format!("{NETWORK}/networkInterfaces"))
            .0
            .len(),
        5
    );
    assert_eq!(
        list_all_pages(
            &mut fixture,
            "/subscriptions/s/providers/Microsoft.Network/publicIPAddresses"
        )
        .0
        .len(),
        6
    );
    assert_eq!(
        list_all_pages(
            &mut fixture,
            "/subscriptions/s/providers/Microsoft.Compute/disks"
        )
        .0
        .len(),
        6
    );
    let none = VMS.replace("/rg/", "/none/");
    assert_eq!(
        fixture.refused(&format!("GET {none}"), Value::Null).1,
        "ResourceGroupNotFound"
    );
}

#[test]
fn status_only_list_has_names_and_states_only() {
    let mut fixture = fixture_with(3);
    fixture.post("vm1", "deallocate");
    let members = |document: &Value| -> Vec<String> {
        document.as_object().unwrap().keys().cloned().collect()
    };
    let path = "/subscriptions/s/providers/Microsoft.Compute/virtualMachines?statusOnly=true";
    assert_eq!(list_all_pages(&mut fixture, path).1, 2);
    let page = fixture.get(path);
    let names = ["id", "location", "name", "properties", "type"];
    assert_eq!(members(&page["value"][1]), names);
    let one = &page["value"][1]["properties"];
    let names = [
        "hardwareProfile",
        "instanceView",
        "provisioningState",
        "vmId",
    ];
    assert_eq!(members(one), names);
    assert_eq!(one["hardwareProfile"], serde_json::json!({}));
    assert_eq!(members(&one["instanceView"]), ["statuses"]);
    assert_eq!(
        one["instanceView"]["statuses"][1]["code"],
        "PowerState/deallocated"
    );
    let plain = fixture.get("/subscriptions/s/providers/Microsoft.Compute/virtualMachines");
    assert!(plain["value"][0]["properties"]["instanceView"].is_null());
}

#[test]
fn page_faults_apply() {
    let mut fixture = fixture_with(3);
    let mut page_fault = |page_fault, path: &str| {
        let context = CallContext {
            page_fault,
            ..CallContext::default()
        };
        let response = fixture
            .call_as(&format!("GET {path}"), Value::Null, &context)
            .unwrap();
        let page: Value = serde_json::from_str(&response.body).unwrap();
        let link = page["nextLink"]
            .as_str()
            .map(|it| it.replace("http://here", ""));
        (names(&page).len(), link)
    };
    let (count, empty) = page_fault(PageFault::Empty, VMS);
    assert_eq!(count, 0);
    let (count, next) = page_fault(PageFault::None, &empty.clone().unwrap());
    assert_eq!(count, 2);
    assert_ne!(next, empty);
    let (count, again) = page_fault(PageFault::Repeated, &next.clone().unwrap());
    assert_eq!((count, again), (1, next));
}

#[test]
fn page_link_is_bound_to_its_list_and_origin() {
    let mut fixture = fixture_with(3);
    let link = fixture.get(VMS)["nextLink"].as_str().unwrap().to_owned();
    let token = link.split("skiptoken=").nth(1).unwrap();
    let other = format!("GET {NETWORK}/networkInterfaces?$skiptoken={token}");
    assert_eq!(
        fixture.refused(&other, Value::Null),
        (400, "InvalidSkipToken".to_owned())
    );
    let filtered = fixture.refused(&format!("GET {VMS}?$filter=tag"), Value::Null);
    assert_eq!(filtered, (400, "InvalidFilterInQueryString".to_owned()));
    fixture.engine.core.knobs.link_origin = Some("https://elsewhere.example".to_owned());
    let link = fixture.get(VMS)["nextLink"].as_str().unwrap().to_owned();
    assert!(link.starts_with("https://elsewhere.example/"));
}
