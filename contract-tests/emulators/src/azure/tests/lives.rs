//! Lives of a few machines, whatever is done to them: the invariants hold after each step.

use proptest::prelude::*;

use super::*;
use crate::{azure::knobs::Capacity, cloud::fault::Failure};

#[derive(Clone, Debug)]
enum Step {
    Call(&'static str, u8),
    Doomed(&'static str, u8),
    Pass(u64),
}

const VERBS: [&str; 9] = [
    "PUT",
    "PATCH",
    "DELETE",
    "start",
    "powerOff",
    "deallocate",
    "restart",
    "generalize",
    "detach",
];

fn step() -> impl Strategy<Value = Step> {
    let verb = proptest::sample::select(VERBS.to_vec());
    let doomed = proptest::sample::select(VERBS.to_vec());
    prop_oneof![
        6 => (verb, 0..3_u8).prop_map(|(verb, vm)| Step::Call(verb, vm)),
        1 => (doomed, 0..3_u8).prop_map(|(verb, vm)| Step::Doomed(verb, vm)),
        3 => (0..150_u64).prop_map(Step::Pass),
    ]
}

fn carry_out(lab: &mut Lab, verb: &str, vm: u8, served: &Served) {
    let path = format!("{VMS}/vm{vm}");
    let disks =
        json!([{ "lun": 1, "createOption": "Empty", "diskSizeGB": 1, "name": format!("d{vm}") }]);
    let (text, body) = match verb {
        "PUT" => (
            format!("PUT {path}"),
            order_with("/properties/storageProfile/dataDisks", disks),
        ),
        "PATCH" => (
            format!("PATCH {path}"),
            json!({ "tags": { "n": vm.to_string() } }),
        ),
        "DELETE" => (format!("DELETE {path}"), Value::Null),
        "detach" => (
            format!("PATCH {path}"),
            json!({ "properties": { "storageProfile": { "dataDisks": [] } } }),
        ),
        verb => (format!("POST {path}/{verb}"), Value::Null),
    };
    // Whether it is refused does not matter; that nothing contradicts itself does.
    let _ = lab.call_as(&text, body, served);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_nothing_contradicts_itself(steps in proptest::collection::vec(step(), 1..40)) {
        let mut lab = Lab::with(|knobs| {
            knobs.capacity = vec![Capacity::of(2)];
            knobs.timing.update = Duration::from_millis(20);
            knobs.lag.reads = Duration::from_millis(30);
        });
        let doomed = Served { doom: vec![Failure::new("InternalError", "")], ..Served::default() };
        for step in steps {
            match step {
                Step::Call(verb, vm) => carry_out(&mut lab, verb, vm, &Served::default()),
                Step::Doomed(verb, vm) => carry_out(&mut lab, verb, vm, &doomed),
                Step::Pass(millis) => lab.pass(millis),
            }
        }
        lab.pass(1000);
        prop_assert_eq!(lab.oracle().operations_in_progress, 0);
        for vm in 0..3 {
            lab.delete(&format!("vm{vm}"));
        }
        let truth = lab.oracle();
        prop_assert!(truth.vms.is_empty() && truth.nics.is_empty() && truth.public_ips.is_empty());
        prop_assert!(truth.vms.iter().all(|vm| !vm.allocated));
    }
}
