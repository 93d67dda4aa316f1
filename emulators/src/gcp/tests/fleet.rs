//! Fifty thousand instances: the cost of a call is the number of records that it reads.

use super::{Fixture, ZONE, names};
use crate::gcp::{ExternalAction, catalog::Subnetwork};
use serde_json::Value;

const FLEET: u32 = 50_000;
const BATCH: u32 = 1_000;

fn fleet() -> Fixture {
    let mut fixture = Fixture::with(|knobs| {
        knobs.subnetworks = vec![Subnetwork::new(
            "us-central1",
            "10.0.0.0/12".parse().unwrap(),
        )];
    });
    for number in 0..FLEET / BATCH {
        let act = ExternalAction::LaunchExternal {
            project: "p".to_owned(),
            zone: Some(["us-central1-a", "us-central1-b"][number as usize % 2].to_owned()),
            name: Some(format!("vm-{number}")),
            machine_type: None,
            count: BATCH,
            labels: [("batch".to_owned(), number.to_string())].into(),
            metadata: [].into(),
        };
        assert_eq!(fixture.engine.perform(act).unwrap().len(), BATCH as usize);
    }
    fixture.advance(200);
    fixture
}

/// Returns the response of a call, and how many records it read.
fn cost(fixture: &mut Fixture, request: &str) -> (Value, u64) {
    let before = fixture.engine.core.records_read;
    let response = fixture.ok(request, &Value::Null);
    (response, fixture.engine.core.records_read - before)
}

#[test]
fn cost_of_a_call_does_not_grow_with_the_fleet() {
    let mut fixture = fleet();
    for (request, records_read) in [
        (format!("GET {ZONE}/instances/vm-0-0"), 1),
        (format!("GET {ZONE}/instances"), 500),
        (format!("GET {ZONE}/instances?maxResults=5"), 5),
        ("GET aggregated/instances".to_owned(), 500),
        (
            "GET aggregated/instances?filter=name%3Dvm-7-7".to_owned(),
            1,
        ),
        (
            "GET aggregated/instances?maxResults=500&filter=labels.batch%3D17%20status%3DRUNNING"
                .to_owned(),
            500,
        ),
        (format!("GET {ZONE}/instances?filter=labels.none%3A%2A"), 0),
        (format!("GET {ZONE}/disks?maxResults=5"), 5),
        (format!("GET {ZONE}/operations?maxResults=5"), 5),
        (format!("POST {ZONE}/instances/vm-0-0/stop"), 1),
        (
            "GET aggregated/instances?filter=status%3DSTOPPING".to_owned(),
            1,
        ),
    ] {
        assert_eq!(cost(&mut fixture, &request).1, records_read, "{request}");
    }
    let named = fixture.get("zones/us-central1-b/instances/vm-3-3");
    let id = named["id"].as_str().unwrap();
    let by_id = format!("GET aggregated/instances?filter=id%3D{id}");
    assert_eq!(cost(&mut fixture, &by_id).1, 1);
    let about = format!("GET zones/us-central1-b/operations?filter=targetId%3D{id}");
    assert_eq!(cost(&mut fixture, &about).1, 1);
    let first = fixture.get("zones/us-central1-b/instances/vm-1-1")["id"].clone();
    let either = format!(
        "(targetId%3D{id})%20OR%20(targetId%3D{})",
        first.as_str().unwrap()
    );
    let about = format!("GET aggregated/operations?filter={either}");
    assert_eq!(cost(&mut fixture, &about).1, 2);
    // A page in the middle reads only its items.
    let list = fixture.get(&format!("{ZONE}/instances?maxResults=500"));
    let token = list["nextPageToken"].as_str().unwrap();
    let next = format!("GET {ZONE}/instances?maxResults=7&pageToken={token}");
    let (page, records_read) = cost(&mut fixture, &next);
    assert_eq!((names(&page).len(), records_read), (7, 7));
}
