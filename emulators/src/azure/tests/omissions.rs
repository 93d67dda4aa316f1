//! Reads that do not show what exists, and creations under the name of a deleted machine.

use super::*;
use crate::azure::knobs::SubscriptionLists;

const ALL: &str = "/subscriptions/s/providers/Microsoft.Compute/virtualMachines";

fn count(document: &Value) -> usize {
    document["value"].as_array().unwrap().len()
}

#[test]
fn lists_omit_old_machines_and_gets_show_them() {
    let mut fixture = Fixture::new();
    for number in 0..20 {
        fixture.put(&format!("vm{number}"), vm_body());
    }
    fixture.advance(3_600_000);
    fixture.engine.core.knobs.omissions.lists = 50;
    let status = format!("{ALL}?statusOnly=true");
    for path in [VMS, ALL, &status] {
        let shown = count(&fixture.get(path));
        assert!((1..20).contains(&shown), "{path} shows {shown}");
    }
    assert!(fixture.oracle().omitted > 0);
    for number in 0..20 {
        fixture.get(&format!("{VMS}/vm{number}"));
    }
    assert_eq!(
        count(&fixture.get(&format!("{NETWORK}/networkInterfaces"))),
        20
    );
    fixture.engine.core.knobs.omissions.lists = 255;
    assert_eq!(count(&fixture.get(VMS)), 0);
}

#[test]
fn gets_miss_old_resources_now_and_then() {
    let mut fixture = Fixture::new();
    fixture.put("a", vm_body());
    fixture.advance(3_600_000);
    let document = fixture.get(&format!("{VMS}/a"));
    let nic = &document["properties"]["networkProfile"]["networkInterfaces"][0]["id"];
    let nic = nic.as_str().unwrap().to_owned();
    let disk = document["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"].clone();
    fixture.engine.core.knobs.omissions.reads = 50;
    for path in [format!("{VMS}/a"), format!("{VMS}/a/instanceView"), nic] {
        let reads: Vec<_> = (0..50)
            .map(
                |_| match fixture.call(&format!("GET {path}"), Value::Null) {
                    Ok(_) => true,
                    Err(refusal) => {
                        assert_eq!((refusal.status, &*refusal.code), (404, "ResourceNotFound"));
                        false
                    }
                },
            )
            .collect();
        assert!(reads.contains(&true) && reads.contains(&false), "{path}");
    }
    for _ in 0..50 {
        fixture.get(disk.as_str().unwrap());
    }
    fixture.engine.core.knobs.omissions.reads = 0;
    fixture.get(&format!("{VMS}/a"));
    fixture.engine.core.knobs.omissions.reads = 100;
    fixture.engine.core.knobs.omissions.reads_in_a_row = Some(2);
    let shown = [(); 6].map(|()| fixture.call(&format!("GET {VMS}/a"), Value::Null).is_ok());
    assert_eq!(shown, [false, false, true, false, false, true]);
    // Calls that change something are not affected.
    fixture.post("a", "deallocate");
}

#[test]
fn creations_miss_their_group_now_and_then() {
    let mut fixture = Fixture::new();
    fixture.engine.core.knobs.omissions.groups = 100;
    fixture.engine.core.knobs.omissions.groups_in_a_row = Some(2);
    let put = format!("PUT {VMS}/a");
    for _ in 0..2 {
        let refused = fixture.refused(&put, vm_body());
        assert_eq!(refused, (404, "ResourceGroupNotFound".to_owned()));
    }
    assert_eq!(count(&fixture.get(VMS)), 0);
    fixture.put("a", vm_body());
    assert_eq!(count(&fixture.get(VMS)), 1);
}

#[test]
fn lists_of_a_subscription_need_rights_on_it() {
    let mut fixture = Fixture::new();
    fixture.put("a", vm_body());
    fixture.engine.core.knobs.subscription_lists = SubscriptionLists::Forbidden;
    let refused = fixture.refused(&format!("GET {ALL}?statusOnly=true"), Value::Null);
    assert_eq!(refused, (403, "AuthorizationFailed".to_owned()));
    assert_eq!(count(&fixture.get(VMS)), 1);
    fixture.engine.core.knobs.subscription_lists = SubscriptionLists::Empty;
    assert_eq!(count(&fixture.get(ALL)), 0);
    assert_eq!(count(&fixture.get(VMS)), 1);
}

#[test]
fn name_of_a_deleted_machine_is_not_found_for_a_while() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.timing.recreation = Duration::from_secs(10);
    });
    fixture.put("a", vm_body());
    fixture.advance(1000);
    fixture.delete("a");
    let put = format!("PUT {VMS}/a");
    let refused = fixture.refused(&put, vm_body());
    assert_eq!(refused, (404, "NotFound".to_owned()));
    fixture.put("b", vm_body());
    fixture.advance(10_000);
    fixture.put("a", vm_body());
}
