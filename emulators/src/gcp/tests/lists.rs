//! Lists: pages, filters, orders, aggregated lists, unreachable zones.

use super::{Fixture, ZONE, body, names, reason};
use crate::cloud::{inject::CallContext, page::PageFault};
use serde_json::{Value, json};

fn body_in(name: &str, zone: &str) -> Value {
    let mut requested = body(name);
    requested["machineType"] = json!(format!("zones/{zone}/machineTypes/e2-small"));
    requested
}

fn fleet() -> Fixture {
    let mut fixture = Fixture::new();
    for number in 0..5 {
        let mut requested = body(&format!("vm-{number}"));
        requested["labels"] =
            json!({ "odd": (number % 2 == 1).to_string(), format!("n{number}"): "" });
        fixture.insert(&requested);
    }
    for zone in ["us-central1-b", "europe-west1-b"] {
        fixture.ok(
            &format!("POST zones/{zone}/instances"),
            &body_in("far", zone),
        );
    }
    fixture.advance(200);
    fixture.post(&format!("{ZONE}/instances/vm-4/stop"));
    fixture.advance(200);
    fixture
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn filtered(fixture: &mut Fixture, filter: &str) -> Vec<String> {
    let list = fixture.get(&format!("{ZONE}/instances?filter={}", encode(filter)));
    names(&list).into_iter().map(str::to_owned).collect()
}

#[test]
fn filters_select() {
    let mut fixture = fleet();
    let id = fixture.oracle_instance("vm-2").unwrap().id;
    for (filter, expected) in [
        ("name=vm-3", &["vm-3"][..]),
        ("labels.odd=true", &["vm-1", "vm-3"]),
        ("labels.odd=true AND labels.n3:*", &["vm-3"]),
        ("labels.n0:* OR labels.n4:*", &["vm-0", "vm-4"]),
        ("status=TERMINATED", &["vm-4"]),
        ("status!=TERMINATED", &["vm-0", "vm-1", "vm-2", "vm-3"]),
        ("(status=RUNNING) (-labels.odd=true)", &["vm-0", "vm-2"]),
        ("name eq vm-[12]", &["vm-1", "vm-2"]),
        ("machineType:e2-small name=vm-0", &["vm-0"]),
        ("disks.boot=true name=vm-1", &["vm-1"]),
        ("labels.odd=maybe", &[]),
        ("scheduling.preemptible=true", &[]),
    ] {
        assert_eq!(filtered(&mut fixture, filter), expected, "{filter}");
    }
    assert_eq!(filtered(&mut fixture, &format!("id={id}")), ["vm-2"]);
    let invalid = format!("GET {ZONE}/instances?filter={}", encode("nonsense=1"));
    assert_eq!(
        fixture.refusal(&invalid, &Value::Null),
        reason(400, "invalid")
    );
}

#[test]
fn pages_cover_a_list() {
    let mut fixture = fleet();
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let list = fixture.get(&format!("{ZONE}/instances?maxResults=2&pageToken={token}"));
        assert!(names(&list).len() <= 2);
        found.extend(names(&list).into_iter().map(str::to_owned));
        let Some(next) = list["nextPageToken"].as_str() else {
            break;
        };
        next.clone_into(&mut token);
    }
    assert_eq!(found, ["vm-0", "vm-1", "vm-2", "vm-3", "vm-4"]);
    // A token is bound to its list and its filter.
    for other in [
        format!("GET {ZONE}/instances?filter=name%3Dx&pageToken={token}"),
        format!("GET zones/us-central1-b/instances?pageToken={token}"),
        format!("GET aggregated/instances?pageToken={token}"),
        format!("GET {ZONE}/instances?pageToken=nonsense"),
        format!("GET {ZONE}/instances?maxResults=501"),
        format!("GET {ZONE}/instances?maxResults=-1"),
        format!("GET {ZONE}/instances?orderBy=status"),
    ] {
        assert_eq!(fixture.refusal(&other, &Value::Null).0, 400, "{other}");
    }
}

#[test]
fn page_faults_apply() {
    let mut fixture = fleet();
    let with_page_fault = |page_fault| CallContext {
        page_fault,
        ..CallContext::default()
    };
    let first = fixture.get(&format!("{ZONE}/instances?maxResults=2"));
    let token = first["nextPageToken"].as_str().unwrap().to_owned();
    let second = format!("GET {ZONE}/instances?maxResults=2&pageToken={token}");
    let empty = fixture
        .call_with_context(&second, &Value::Null, &with_page_fault(PageFault::Empty))
        .unwrap();
    assert_eq!(names(&empty), [""; 0]);
    let fresh = empty["nextPageToken"].as_str().unwrap();
    assert_ne!(fresh, token);
    let rest = fixture.get(&format!("{ZONE}/instances?maxResults=2&pageToken={fresh}"));
    assert_eq!(names(&rest), ["vm-2", "vm-3"]);
    let repeated = fixture
        .call_with_context(&second, &Value::Null, &with_page_fault(PageFault::Repeated))
        .unwrap();
    assert_eq!(repeated["nextPageToken"], token);
    assert_eq!(names(&repeated), ["vm-2", "vm-3"]);
}

#[test]
fn lists_are_sorted_by_name_or_newest_first() {
    let mut fixture = Fixture::new();
    for name in ["b", "c", "a"] {
        fixture.insert(&body(name));
    }
    assert_eq!(
        names(&fixture.get(&format!("{ZONE}/instances"))),
        ["b", "c", "a"]
    );
    let by_name = format!("{ZONE}/instances?orderBy=name&maxResults=2");
    let list = fixture.get(&by_name);
    assert_eq!(names(&list), ["a", "b"]);
    let token = list["nextPageToken"].as_str().unwrap();
    assert_eq!(
        names(&fixture.get(&format!("{by_name}&pageToken={token}"))),
        ["c"]
    );
    let newest = fixture.get(&format!(
        "{ZONE}/instances?orderBy=creationTimestamp%20desc"
    ));
    assert_eq!(names(&newest), ["a", "c", "b"]);
    assert_eq!(
        names(&fixture.get(&format!("{ZONE}/disks?orderBy=name"))),
        ["a", "b", "c"]
    );
}

#[test]
fn aggregated_list_names_every_zone() {
    let mut fixture = fleet();
    let all = fixture.get("aggregated/instances?maxResults=6");
    let zones = all["items"].as_object().unwrap();
    assert_eq!(zones.len(), 6);
    assert_eq!(zones[ZONE]["instances"].as_array().unwrap().len(), 5);
    assert_eq!(zones["zones/us-central1-b"]["instances"][0]["name"], "far");
    for empty in ["zones/europe-west1-b", "zones/europe-west1-c"] {
        assert_eq!(zones[empty]["warning"]["code"], "NO_RESULTS_ON_PAGE");
        assert_eq!(zones[empty]["warning"]["data"][0]["value"], empty);
    }
    let token = all["nextPageToken"].as_str().unwrap();
    let rest = fixture.get(&format!(
        "aggregated/instances?maxResults=6&pageToken={token}"
    ));
    assert_eq!(
        rest["items"]["zones/europe-west1-b"]["instances"][0]["name"],
        "far"
    );
    assert_eq!(rest["items"][ZONE]["warning"]["code"], "NO_RESULTS_ON_PAGE");
    for collection in ["disks", "diskTypes", "machineTypes"] {
        let all = fixture.get(&format!("aggregated/{collection}"));
        assert!(
            !all["items"][ZONE][collection]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    for collection in ["subnetworks", "addresses"] {
        let all = fixture.get(&format!("aggregated/{collection}"));
        assert!(
            all["items"]["regions/us-central1"].is_object(),
            "{collection}"
        );
    }
}

#[test]
fn unreachable_zone_fails_a_list_or_is_named() {
    let mut fixture = fleet();
    fixture
        .engine
        .core
        .knobs
        .unreachable_zones
        .insert("us-central1-b".to_owned());
    for request in [
        "GET aggregated/instances",
        "GET aggregated/disks",
        "GET aggregated/machineTypes",
        "GET aggregated/operations",
        "GET zones/us-central1-b/instances",
        "GET zones/us-central1-b/instances?returnPartialSuccess=true",
        "GET zones/us-central1-b/instances/far",
    ] {
        assert_eq!(
            fixture.refusal(request, &Value::Null),
            reason(503, "backendError"),
            "{request}"
        );
    }
    let part = fixture.get("aggregated/instances?returnPartialSuccess=true");
    assert_eq!(
        part["unreachables"],
        json!(["projects/p/zones/us-central1-b"])
    );
    let silent = &part["items"]["zones/us-central1-b"];
    assert_eq!(silent["warning"]["code"], "UNREACHABLE");
    assert_eq!(
        part["items"][ZONE]["instances"].as_array().unwrap().len(),
        5
    );
    fixture.engine.core.knobs.partial_by_default = true;
    assert_eq!(fixture.get("aggregated/instances"), part);
    assert_eq!(fixture.get("zones/us-central1-b")["status"], "DOWN");
}

#[test]
fn catalog_can_be_listed_and_read() {
    let mut fixture = Fixture::new();
    for (list, one) in [
        ("zones", "us-central1-a"),
        ("regions", "us-central1"),
        ("zones/us-central1-a/machineTypes", "e2-small"),
        ("zones/us-central1-a/diskTypes", "pd-ssd"),
        ("global/networks", "default"),
        ("regions/us-central1/subnetworks", "default"),
    ] {
        assert!(names(&fixture.get(list)).contains(&one), "{list}");
        assert_eq!(fixture.get(&format!("{list}/{one}"))["name"], one);
        let none = format!("GET {list}/none-a");
        assert_eq!(
            fixture.refusal(&none, &Value::Null),
            reason(404, "notFound"),
            "{list}"
        );
        let filter = fixture.get(&format!("{list}?filter=name%3D{one}"));
        assert_eq!(names(&filter), [one]);
    }
    assert_eq!(fixture.get("")["name"], "p");
    assert_eq!(
        names(&fixture.get("regions/us-central1/addresses")),
        [""; 0]
    );
}

#[test]
fn unknown_state_is_returned_and_not_filtered_by() {
    let mut fixture = fleet();
    let context = CallContext {
        state: Some("PONDERING".to_owned()),
        ..CallContext::default()
    };
    let request = format!("GET {ZONE}/instances?filter=status%3DRUNNING");
    let list = fixture
        .call_with_context(&request, &Value::Null, &context)
        .unwrap();
    assert_eq!(names(&list).len(), 4);
    assert_eq!(list["items"][0]["status"], "PONDERING");
    let get = format!("GET {ZONE}/instances/vm-0");
    let one = fixture
        .call_with_context(&get, &Value::Null, &context)
        .unwrap();
    assert_eq!(one["status"], "PONDERING");
}

#[test]
fn list_with_a_filter_is_charged_for_what_it_compares() {
    let mut fixture = Fixture::with(|knobs| knobs.filtered_list_quota = 4);
    for name in ["a", "b", "c"] {
        fixture.insert_running(name);
    }
    let filtered = format!("GET {ZONE}/operations?filter=targetId%3D7");
    let none = serde_json::Value::Null;
    // It returns nothing, and costs three operations each time.
    fixture.ok(&filtered, &none);
    fixture.ok(&filtered, &none);
    assert_eq!(
        fixture.refusal(&filtered, &none),
        reason(403, "rateLimitExceeded")
    );
    // All lists with a filter share the quota; others do not use it.
    let instances = format!("GET {ZONE}/instances?filter=name%3Da");
    assert_eq!(
        fixture.refusal(&instances, &none),
        reason(403, "rateLimitExceeded")
    );
    fixture.get(&format!("{ZONE}/operations"));
    fixture.get(&format!("{ZONE}/instances"));
    fixture.ok(
        "GET /projects/q/aggregated/operations?filter=targetId%3D7",
        &none,
    );
    // It is full again at the next full minute, not a minute later.
    let second = fixture.engine.calendar(fixture.engine.now()).timestamp() % 60;
    fixture.advance(u64::try_from(60 - second).unwrap() * 1000);
    fixture.ok(&filtered, &none);
}
