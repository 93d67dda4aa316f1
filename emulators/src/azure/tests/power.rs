//! Start, stop, restart, deallocate.

use super::*;

fn power(lab: &Lab) -> (String, bool) {
    let vm = lab.vm("a");
    (vm.power_state.unwrap_or_default(), vm.allocated)
}

#[test]
fn power_off_keeps_the_allocation_and_deallocate_releases_it() {
    let mut lab = Lab::new();
    lab.running("a");
    lab.ok(
        &format!("POST {VMS}/a/powerOff?skipShutdown=false"),
        Value::Null,
    );
    assert_eq!(power(&lab), ("stopping".to_owned(), true));
    lab.pass(100);
    assert_eq!(power(&lab), ("stopped".to_owned(), true));
    lab.ok(&format!("POST {VMS}/a/deallocate"), Value::Null);
    assert_eq!(power(&lab), ("deallocating".to_owned(), true));
    lab.pass(100);
    assert_eq!(power(&lab), ("deallocated".to_owned(), false));
    lab.ok(&format!("POST {VMS}/a/start"), Value::Null);
    assert_eq!(power(&lab).0, "starting");
    lab.pass(100);
    assert_eq!(power(&lab), ("running".to_owned(), true));
    assert_eq!(lab.vm("a").boots, 2);
    lab.post("a", "restart");
    assert_eq!(lab.vm("a").boots, 3);
}

#[test]
fn call_in_the_target_state_changes_nothing() {
    let mut lab = Lab::new();
    lab.running("a");
    lab.post("a", "start");
    assert_eq!((power(&lab).0.as_str(), lab.vm("a").boots), ("running", 1));
    lab.post("a", "powerOff");
    lab.post("a", "powerOff");
    assert_eq!(power(&lab).0, "stopped");
    lab.post("a", "deallocate");
    lab.post("a", "deallocate");
    assert_eq!(power(&lab).0, "deallocated");
}

#[test]
fn restart_and_power_off_need_the_right_state() {
    let mut lab = Lab::new();
    lab.running("a");
    lab.post("a", "deallocate");
    let asleep = lab.refused(
        &format!("POST {VMS}/a/deallocate?hibernate=true"),
        Value::Null,
    );
    assert_eq!(asleep, (400, "NotSupported".to_owned()));
    let refused = (409, "OperationNotAllowed".to_owned());
    assert_eq!(
        lab.refused(&format!("POST {VMS}/a/restart"), Value::Null),
        refused
    );
    assert_eq!(
        lab.refused(&format!("POST {VMS}/a/powerOff"), Value::Null),
        refused
    );
    for what in ["start", "powerOff", "restart", "deallocate", "generalize"] {
        let missing = lab.refused(&format!("POST {VMS}/b/{what}"), Value::Null);
        assert_eq!(missing, (404, "ResourceNotFound".to_owned()));
    }
}

#[test]
fn deallocation_releases_a_dynamic_address_and_keeps_a_static_one() {
    let mut lab = Lab::new();
    lab.running("a");
    let public = format!("{NIC}/ipConfigurations/0/properties/publicIPAddressConfiguration");
    let fixed = json!({ "name": "p", "sku": { "name": "Standard" },
                        "properties": { "publicIPAllocationMethod": "Static" } });
    lab.put("b", order_with(&public, fixed));
    lab.pass(100);
    let (private, kept) = (lab.vm("a").private_ip, lab.vm("b").public_ip);
    for name in ["a", "b"] {
        lab.post(name, "powerOff");
    }
    assert!(lab.vm("a").public_ip.is_some());
    for name in ["a", "b"] {
        lab.post(name, "deallocate");
    }
    assert_eq!((lab.vm("a").public_ip, lab.vm("b").public_ip), (None, kept));
    lab.post("a", "start");
    assert!(lab.vm("a").public_ip.is_some());
    assert_eq!(lab.vm("a").private_ip, private);
    let both = json!({ "name": "p", "sku": { "name": "Standard" },
                       "properties": { "publicIPAllocationMethod": "Dynamic" } });
    let refused = lab.refused(&format!("PUT {VMS}/c"), order_with(&public, both));
    assert_eq!(refused.1, "PublicIPAndSkuAllocationMethodMismatch");
}

#[test]
fn later_operation_preempts_an_earlier_one() {
    let mut lab = Lab::new();
    lab.running("a");
    let started = lab
        .call(&format!("POST {VMS}/a/powerOff"), Value::Null)
        .unwrap();
    let deleted = lab.call(&format!("DELETE {VMS}/a"), Value::Null).unwrap();
    let status = lab.status(&started);
    assert_eq!(status["status"], "Failed");
    assert_eq!(status["error"]["code"], "OperationPreempted");
    let refused = lab.refused(&format!("POST {VMS}/a/start"), Value::Null);
    assert_eq!(refused, (409, "OperationNotAllowed".to_owned()));
    let refused = lab.refused(&format!("PUT {VMS}/a"), order());
    assert_eq!(refused.0, 409);
    lab.pass(100);
    assert_eq!(lab.status(&deleted)["status"], "Succeeded");
    assert!(lab.oracle().vms.is_empty());
}

#[test]
fn states_have_their_codes() {
    let mut lab = Lab::new();
    let codes = |lab: &mut Lab| -> Vec<String> {
        let view = lab.get(&format!("{VMS}/a/instanceView"));
        let statuses = view["statuses"].as_array().unwrap().iter();
        statuses
            .map(|status| status["code"].as_str().unwrap().to_owned())
            .collect()
    };
    lab.put("a", order());
    assert_eq!(codes(&mut lab), ["ProvisioningState/creating"]);
    lab.pass(100);
    assert_eq!(
        codes(&mut lab),
        ["ProvisioningState/succeeded", "PowerState/running"]
    );
    lab.ok(&format!("POST {VMS}/a/deallocate"), Value::Null);
    assert_eq!(
        codes(&mut lab),
        ["ProvisioningState/updating", "PowerState/deallocating"]
    );
    lab.pass(100);
    lab.post("a", "generalize");
    let expected = [
        "ProvisioningState/succeeded",
        "PowerState/deallocated",
        "OSState/generalized",
    ];
    assert_eq!(codes(&mut lab), expected);
    assert_eq!(
        lab.refused(&format!("POST {VMS}/a/start"), Value::Null).0,
        409
    );
    assert!(lab.get(&format!("{VMS}/a"))["properties"]["instanceView"].is_null());
}

#[test]
fn unknown_state_is_returned_and_not_stored() {
    let mut lab = Lab::new();
    lab.running("a");
    let context = CallContext {
        state: Some("dreaming".to_owned()),
        ..CallContext::default()
    };
    let mut shown = |path: &str| {
        let answer = lab
            .call_as(&format!("GET {path}"), Value::Null, &context)
            .unwrap();
        answer.body
    };
    assert!(shown(&format!("{VMS}/a?$expand=instanceView")).contains("PowerState/dreaming"));
    assert!(shown(&format!("{VMS}/a")).contains("\"provisioningState\":\"dreaming\""));
    assert!(
        lab.get(&format!("{VMS}/a/instanceView"))
            .to_string()
            .contains("PowerState/running")
    );
}
