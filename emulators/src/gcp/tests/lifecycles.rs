//! Random calls in random order: the counts stay consistent.

use std::collections::BTreeMap;

use super::{Fixture, ZONE, body};
use crate::gcp::Capacity;
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, bool, bool),
    Post(u8, &'static str),
    Delete(u8),
    ExternalAction(u8, &'static str),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0_u8..4;
    let verb = prop::sample::select(vec!["stop", "start", "reset", "suspend", "resume"]);
    let act = prop::sample::select(vec![
        "stop",
        "delete",
        "preempt",
        "repair",
        "guest_shutdown",
    ]);
    prop_oneof![
        3 => (name.clone(), any::<bool>(), any::<bool>()).prop_map(|(n, spot, keep)| Step::Insert(n, spot, keep)),
        4 => (name.clone(), verb).prop_map(|(n, verb)| Step::Post(n, verb)),
        1 => name.clone().prop_map(Step::Delete),
        1 => (name, act).prop_map(|(n, act)| Step::ExternalAction(n, act)),
        4 => (0_u16..300).prop_map(Step::Pass),
    ]
}

fn take(fixture: &mut Fixture, step: &Step) {
    // Many calls are refused; this test does not check which.
    match step {
        Step::Insert(number, spot, keep) => {
            let mut requested = body(&format!("vm-{number}"));
            requested["disks"][0]["autoDelete"] = json!(!keep);
            if *spot {
                requested["scheduling"] = json!({ "provisioningModel": "SPOT" });
            }
            let _ = fixture.call(&format!("POST {ZONE}/instances"), &requested);
        }
        Step::Post(number, verb) => {
            let _ = fixture.call(
                &format!("POST {ZONE}/instances/vm-{number}/{verb}"),
                &Value::Null,
            );
        }
        Step::Delete(number) => {
            let _ = fixture.call(
                &format!("DELETE {ZONE}/instances/vm-{number}"),
                &Value::Null,
            );
        }
        Step::ExternalAction(number, kind) => {
            let instance = format!("projects/p/{ZONE}/instances/vm-{number}");
            let act = json!({ "action": kind, "instance": instance });
            let _ = fixture.engine.perform(serde_json::from_value(act).unwrap());
        }
        Step::Pass(millis) => fixture.advance(u64::from(*millis)),
    }
}

fn check(fixture: &Fixture) -> Result<(), TestCaseError> {
    let oracle = fixture.oracle();
    let mut addresses = BTreeMap::new();
    let mut machines = 0;
    for instance in &oracle.instances {
        let runs = instance.status == "RUNNING";
        prop_assert_eq!(
            instance.nat_ip.is_some(),
            runs || instance.status == "REPAIRING" || instance.status == "SUSPENDING",
            "{:?}",
            instance
        );
        let is_off = matches!(instance.status.as_str(), "TERMINATED" | "SUSPENDED");
        prop_assert!(!(is_off && instance.holds_machine), "{:?}", instance);
        prop_assert!(
            !runs || (instance.holds_machine && instance.boots > 0),
            "{:?}",
            instance
        );
        machines += u64::from(instance.holds_machine);
        for address in [instance.internal_ip, instance.nat_ip]
            .into_iter()
            .flatten()
        {
            let before = addresses.insert(address, &instance.name);
            prop_assert!(before.is_none(), "{} twice", address);
        }
        for disk in &instance.disks {
            let disk = oracle.disks.iter().find(|known| known.name == *disk);
            prop_assert_eq!(
                disk.and_then(|disk| disk.attached_to.as_ref()),
                Some(&instance.name)
            );
        }
    }
    prop_assert_eq!(fixture.engine.machines_in_use(), machines);
    prop_assert!(machines <= 3);
    let attached = oracle
        .disks
        .iter()
        .filter(|disk| disk.attached_to.is_some())
        .count();
    prop_assert_eq!(
        attached,
        oracle
            .instances
            .iter()
            .map(|i| i.disks.len())
            .sum::<usize>()
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn usage_counts_stay_consistent(steps in proptest::collection::vec(step(), 1..60)) {
        let mut fixture = Fixture::with(|knobs| knobs.capacity = vec![Capacity::of(3)]);
        for step in &steps {
            take(&mut fixture, step);
            check(&fixture)?;
        }
        // In the end every step and every operation is finished.
        fixture.advance(10_000);
        check(&fixture)?;
        for operation in fixture.oracle().operations {
            prop_assert_eq!(operation.status, "DONE");
        }
        for instance in fixture.oracle().instances {
            prop_assert!(matches!(instance.status.as_str(), "RUNNING" | "TERMINATED" | "SUSPENDED"));
        }
    }
}
