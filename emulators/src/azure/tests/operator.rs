//! External actions.

use super::*;
use crate::azure::engine::operator::ExternalAction;

fn act(lab: &mut Lab, act: Value) -> Result<Vec<String>, Refusal> {
    let act: ExternalAction = serde_json::from_value(act).unwrap();
    lab.engine.catch_up();
    let done = lab.engine.perform(act);
    lab.engine.check_invariants();
    done
}

#[test]
fn external_actor_creates_machines_and_disks() {
    let mut lab = Lab::new();
    let ids = act(
        &mut lab,
        json!({ "action": "create_external", "count": 3, "tags": { "a": "b" },
                                    "subscription": "s", "resource_group": "other" }),
    );
    let ids = ids.unwrap();
    assert_eq!(ids.len(), 3);
    lab.pass(100);
    let truth = lab.oracle();
    assert!(
        truth
            .vms
            .iter()
            .all(|vm| vm.external && vm.tags["a"] == "b")
    );
    assert_eq!(truth.vms[0].power_state.as_deref(), Some("running"));
    let disk = format!("{COMPUTE}/disks/theirs");
    act(
        &mut lab,
        json!({ "action": "create_external_disk", "id": disk, "gib": 8 }),
    )
    .unwrap();
    assert_eq!(lab.get(&disk)["properties"]["diskState"], "Unattached");
    let bad = act(
        &mut lab,
        json!({ "action": "create_external", "count": 1, "size": "Huge" }),
    );
    assert_eq!(bad.unwrap_err().code, "InvalidParameter");
}

#[test]
fn external_actor_stops_deletes_tags_and_fails_machines() {
    let mut lab = Lab::with(|knobs| knobs.lag.writes = Duration::from_secs(3600));
    lab.running("a");
    let id = format!("{VMS}/a");
    act(&mut lab, json!({ "action": "guest_shutdown", "id": id })).unwrap();
    assert_eq!(lab.vm("a").power_state.as_deref(), Some("stopped"));
    assert!(lab.vm("a").allocated);
    assert!(act(&mut lab, json!({ "action": "guest_shutdown", "id": id })).is_err());
    act(
        &mut lab,
        json!({ "action": "set_tags", "id": id, "tags": { "x": "y" } }),
    )
    .unwrap();
    assert_eq!(lab.vm("a").tags["x"], "y");
    act(
        &mut lab,
        json!({ "action": "fail", "id": id, "code": "Broken", "message": "m" }),
    )
    .unwrap();
    assert_eq!(lab.vm("a").failure.as_deref(), Some("Broken"));
    act(&mut lab, json!({ "action": "deallocate", "id": id })).unwrap();
    lab.pass(100);
    assert!(!lab.vm("a").allocated);
    act(&mut lab, json!({ "action": "delete", "id": id })).unwrap();
    lab.pass(100);
    assert!(lab.oracle().vms.is_empty());
    assert_eq!(
        act(&mut lab, json!({ "action": "delete", "id": id }))
            .unwrap_err()
            .status,
        404
    );
}

#[test]
fn spot_machine_is_evicted_by_its_policy() {
    let mut lab = Lab::new();
    let mut wanted = order_with("/properties/priority", json!("Spot"));
    lab.put("a", wanted.clone());
    wanted["properties"]["evictionPolicy"] = json!("Delete");
    lab.put("b", wanted);
    lab.put("c", order());
    lab.pass(100);
    let evict = |lab: &mut Lab, name: &str| {
        act(
            lab,
            json!({ "action": "evict", "id": format!("{VMS}/{name}") }),
        )
    };
    evict(&mut lab, "a").unwrap();
    lab.call(&format!("POST {VMS}/b/simulateEviction"), Value::Null)
        .unwrap();
    assert_eq!(
        evict(&mut lab, "c").unwrap_err().code,
        "OperationNotAllowed"
    );
    lab.pass(100);
    assert_eq!(lab.vm("a").power_state.as_deref(), Some("deallocated"));
    assert_eq!(lab.oracle().vms.len(), 2);
    assert_eq!(lab.oracle().nics.len(), 2);
}
