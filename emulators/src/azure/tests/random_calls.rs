//! Random calls on a few machines: the invariants hold after each step.

use proptest::prelude::*;

use super::*;
use crate::{azure::knobs::Capacity, cloud::fault::Failure};

#[derive(Clone, Debug)]
enum Step {
    Call(&'static str, u8),
    CallThatFails(&'static str, u8),
    Advance(u64),
}

const VERBS: [&str; 14] = [
    "PUT",
    "PATCH",
    "DELETE",
    "start",
    "powerOff",
    "deallocate",
    "restart",
    "generalize",
    "detach",
    "attach",
    "create disk",
    "delete disk",
    "create nic",
    "delete nic",
];

fn step() -> impl Strategy<Value = Step> {
    let verb = proptest::sample::select(VERBS.to_vec());
    let failing_operation = proptest::sample::select(VERBS.to_vec());
    prop_oneof![
        6 => (verb, 0..3_u8).prop_map(|(verb, vm)| Step::Call(verb, vm)),
        1 => (failing_operation, 0..3_u8).prop_map(|(verb, vm)| Step::CallThatFails(verb, vm)),
        3 => (0..150_u64).prop_map(Step::Advance),
    ]
}

/// Returns a call that may be valid. All machines share one disk and one interface.
fn call(verb: &str, vm: u8) -> (String, Value) {
    let path = format!("{VMS}/vm{vm}");
    let (disk, nic) = (
        format!("{COMPUTE}/disks/shared"),
        format!("{NETWORK}/networkInterfaces/shared"),
    );
    let disks =
        |disks: Value| json!({ "properties": { "storageProfile": { "dataDisks": disks } } });
    match verb {
        "PUT" => {
            let name = format!("d{vm}");
            let data =
                json!([{ "lun": 1, "createOption": "Empty", "diskSizeGB": 1, "name": name }]);
            let mut requested = vm_body_with("/properties/storageProfile/dataDisks", data);
            if vm == 2 {
                let network = json!({ "networkInterfaces": [{ "id": nic }] });
                requested["properties"]["networkProfile"] = network;
            }
            (format!("PUT {path}"), requested)
        }
        "PATCH" => {
            let tags = json!({ "tags": { "n": vm.to_string() } });
            (format!("PATCH {path}"), tags)
        }
        "DELETE" => (format!("DELETE {path}"), Value::Null),
        "detach" => (format!("PATCH {path}"), disks(json!([]))),
        "attach" => {
            let managed = json!({ "id": disk });
            let one = json!({ "lun": 2, "createOption": "Attach", "managedDisk": managed });
            (format!("PATCH {path}"), disks(json!([one])))
        }
        "create disk" => {
            let properties =
                json!({ "creationData": { "createOption": "Empty" }, "diskSizeGB": 1 });
            let requested = json!({ "location": "eastus", "properties": properties });
            (format!("PUT {disk}"), requested)
        }
        "delete disk" => (format!("DELETE {disk}"), Value::Null),
        "create nic" => {
            let address = json!({ "name": "ip", "properties": { "subnet": { "id": subnet() } } });
            let properties = json!({ "ipConfigurations": [address] });
            let requested = json!({ "location": "eastus", "properties": properties });
            (format!("PUT {nic}"), requested)
        }
        "delete nic" => (format!("DELETE {nic}"), Value::Null),
        verb => (format!("POST {path}/{verb}"), Value::Null),
    }
}

fn execute_step(fixture: &mut Fixture, verb: &str, vm: u8, context: &CallContext) {
    let (text, body) = call(verb, vm);
    // A refusal is fine; `call_as` checks the invariants.
    let _ = fixture.call_as(&text, body, context);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_is_always_consistent(steps in proptest::collection::vec(step(), 1..40)) {
        let mut fixture = Fixture::with(|knobs| {
            knobs.capacity = vec![Capacity::of(2)];
            knobs.timing.update = Duration::from_millis(20);
            knobs.lag.reads = Duration::from_millis(30);
        });
        let failing_operation = CallContext { planned_failures: vec![Failure::new("InternalError", "")], ..CallContext::default() };
        for step in steps {
            match step {
                Step::Call(verb, vm) => execute_step(&mut fixture, verb, vm, &CallContext::default()),
                Step::CallThatFails(verb, vm) => execute_step(&mut fixture, verb, vm, &failing_operation),
                Step::Advance(millis) => fixture.advance(millis),
            }
        }
        fixture.advance(1000);
        prop_assert_eq!(fixture.oracle().operations_in_progress, 0);
        for vm in 0..3 {
            fixture.delete(&format!("vm{vm}"));
        }
        fixture.advance(180_000);
        execute_step(&mut fixture, "delete nic", 0, &CallContext::default());
        fixture.advance(1000);
        let truth = fixture.oracle();
        prop_assert!(truth.vms.is_empty() && truth.nics.is_empty() && truth.public_ips.is_empty());
    }
}
