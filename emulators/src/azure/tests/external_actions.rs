//! External actions.

use super::*;
use crate::azure::engine::external_action::ExternalAction;

fn perform(fixture: &mut Fixture, action: Value) -> Result<Vec<String>, Refusal> {
    let action: ExternalAction = serde_json::from_value(action).unwrap();
    fixture.engine.catch_up();
    let result = fixture.engine.perform(action);
    fixture.engine.check_invariants();
    result
}

#[test]
fn external_actor_creates_machines_and_disks() {
    let mut fixture = Fixture::new();
    let ids = perform(
        &mut fixture,
        json!({ "action": "create_external", "count": 3, "tags": { "a": "b" },
                                    "subscription": "s", "resource_group": "other" }),
    );
    let ids = ids.unwrap();
    assert_eq!(ids.len(), 3);
    fixture.advance(100);
    let truth = fixture.oracle();
    assert!(
        truth
            .vms
            .iter()
            .all(|vm| vm.external && vm.tags["a"] == "b")
    );
    assert_eq!(truth.vms[0].power_state.as_deref(), Some("running"));
    let disk = format!("{COMPUTE}/disks/theirs");
    perform(
        &mut fixture,
        json!({ "action": "create_external_disk", "id": disk, "gib": 8 }),
    )
    .unwrap();
    assert_eq!(fixture.get(&disk)["properties"]["diskState"], "Unattached");
    let bad = perform(
        &mut fixture,
        json!({ "action": "create_external", "count": 1, "size": "Huge" }),
    );
    assert_eq!(bad.unwrap_err().code, "InvalidParameter");
}

#[test]
fn external_actor_stops_deletes_tags_and_fails_machines() {
    let mut fixture = Fixture::with(|knobs| knobs.lag.writes = Duration::from_secs(3600));
    fixture.running("a");
    let id = format!("{VMS}/a");
    perform(
        &mut fixture,
        json!({ "action": "guest_shutdown", "id": id }),
    )
    .unwrap();
    assert_eq!(fixture.vm("a").power_state.as_deref(), Some("stopped"));
    assert!(fixture.vm("a").allocated);
    assert!(
        perform(
            &mut fixture,
            json!({ "action": "guest_shutdown", "id": id })
        )
        .is_err()
    );
    perform(
        &mut fixture,
        json!({ "action": "set_tags", "id": id, "tags": { "x": "y" } }),
    )
    .unwrap();
    assert_eq!(fixture.vm("a").tags["x"], "y");
    perform(
        &mut fixture,
        json!({ "action": "fail", "id": id, "code": "Broken", "message": "m" }),
    )
    .unwrap();
    assert_eq!(fixture.vm("a").failure.as_deref(), Some("Broken"));
    perform(&mut fixture, json!({ "action": "deallocate", "id": id })).unwrap();
    fixture.advance(100);
    assert!(!fixture.vm("a").allocated);
    perform(&mut fixture, json!({ "action": "delete", "id": id })).unwrap();
    fixture.advance(100);
    assert!(fixture.oracle().vms.is_empty());
    assert_eq!(
        perform(&mut fixture, json!({ "action": "delete", "id": id }))
            .unwrap_err()
            .status,
        404
    );
}

#[test]
fn spot_machine_is_evicted_by_its_policy() {
    let mut fixture = Fixture::new();
    let mut requested = vm_body_with("/properties/priority", json!("Spot"));
    fixture.put("a", requested.clone());
    requested["properties"]["evictionPolicy"] = json!("Delete");
    fixture.put("b", requested);
    fixture.put("c", vm_body());
    fixture.advance(100);
    let evict = |fixture: &mut Fixture, name: &str| {
        perform(
            fixture,
            json!({ "action": "evict", "id": format!("{VMS}/{name}") }),
        )
    };
    evict(&mut fixture, "a").unwrap();
    fixture
        .call(&format!("POST {VMS}/b/simulateEviction"), Value::Null)
        .unwrap();
    assert_eq!(
        evict(&mut fixture, "c").unwrap_err().code,
        "OperationNotAllowed"
    );
    fixture.advance(100);
    assert_eq!(fixture.vm("a").power_state.as_deref(), Some("deallocated"));
    assert_eq!(fixture.oracle().vms.len(), 2);
    assert_eq!(fixture.oracle().nics.len(), 2);
}
