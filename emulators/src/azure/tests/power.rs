//! Start, stop, restart, deallocate.

use super::*;

fn power(fixture: &Fixture) -> (String, bool) {
    let vm = fixture.vm("a");
    (vm.power_state.unwrap_or_default(), vm.allocated)
}

#[test]
fn power_off_keeps_the_allocation_and_deallocate_releases_it() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.ok(
        &format!("POST {VMS}/a/powerOff?skipShutdown=false"),
        Value::Null,
    );
    assert_eq!(power(&fixture), ("stopping".to_owned(), true));
    fixture.advance(100);
    assert_eq!(power(&fixture), ("stopped".to_owned(), true));
    fixture.ok(&format!("POST {VMS}/a/deallocate"), Value::Null);
    assert_eq!(power(&fixture), ("deallocating".to_owned(), true));
    fixture.advance(100);
    assert_eq!(power(&fixture), ("deallocated".to_owned(), false));
    fixture.ok(&format!("POST {VMS}/a/start"), Value::Null);
    assert_eq!(power(&fixture).0, "starting");
    fixture.advance(100);
    assert_eq!(power(&fixture), ("running".to_owned(), true));
    assert_eq!(fixture.vm("a").boots, 2);
    fixture.post("a", "restart");
    assert_eq!(fixture.vm("a").boots, 3);
}

#[test]
fn call_in_the_target_state_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.post("a", "start");
    assert_eq!(
        (power(&fixture).0.as_str(), fixture.vm("a").boots),
        ("running", 1)
    );
    fixture.post("a", "powerOff");
    fixture.post("a", "powerOff");
    assert_eq!(power(&fixture).0, "stopped");
    fixture.post("a", "deallocate");
    fixture.post("a", "deallocate");
    assert_eq!(power(&fixture).0, "deallocated");
}

#[test]
fn restart_and_power_off_need_the_right_state() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    fixture.post("a", "deallocate");
    let hibernation = fixture.refused(
        &format!("POST {VMS}/a/deallocate?hibernate=true"),
        Value::Null,
    );
    assert_eq!(hibernation, (400, "NotSupported".to_owned()));
    let refused = (409, "OperationNotAllowed".to_owned());
    assert_eq!(
        fixture.refused(&format!("POST {VMS}/a/restart"), Value::Null),
        refused
    );
    assert_eq!(
        fixture.refused(&format!("POST {VMS}/a/powerOff"), Value::Null),
        refused
    );
    for what in ["start", "powerOff", "restart", "deallocate", "generalize"] {
        let missing = fixture.refused(&format!("POST {VMS}/b/{what}"), Value::Null);
        assert_eq!(missing, (404, "ResourceNotFound".to_owned()));
    }
}

#[test]
fn deallocation_releases_a_dynamic_address_and_keeps_a_static_one() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let public = format!("{NIC}/ipConfigurations/0/properties/publicIPAddressConfiguration");
    let is_static = json!({ "name": "p", "sku": { "name": "Standard" },
                        "properties": { "publicIPAllocationMethod": "Static" } });
    fixture.put("b", vm_body_with(&public, is_static));
    fixture.advance(100);
    let (private, kept) = (fixture.vm("a").private_ip, fixture.vm("b").public_ip);
    for name in ["a", "b"] {
        fixture.post(name, "powerOff");
    }
    assert!(fixture.vm("a").public_ip.is_some());
    for name in ["a", "b"] {
        fixture.post(name, "deallocate");
    }
    assert_eq!(
        (fixture.vm("a").public_ip, fixture.vm("b").public_ip),
        (None, kept)
    );
    fixture.post("a", "start");
    assert!(fixture.vm("a").public_ip.is_some());
    assert_eq!(fixture.vm("a").private_ip, private);
    let both = json!({ "name": "p", "sku": { "name": "Standard" },
                       "properties": { "publicIPAllocationMethod": "Dynamic" } });
    let refused = fixture.refused(&format!("PUT {VMS}/c"), vm_body_with(&public, both));
    assert_eq!(refused.1, "PublicIPAndSkuAllocationMethodMismatch");
}

#[test]
fn later_operation_preempts_an_earlier_one() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let started = fixture
        .call(&format!("POST {VMS}/a/powerOff"), Value::Null)
        .unwrap();
    let deleted = fixture
        .call(&format!("DELETE {VMS}/a"), Value::Null)
        .unwrap();
    let status = fixture.status(&started);
    assert_eq!(status["status"], "Failed");
    assert_eq!(status["error"]["code"], "OperationPreempted");
    let refused = fixture.refused(&format!("POST {VMS}/a/start"), Value::Null);
    assert_eq!(refused, (409, "OperationNotAllowed".to_owned()));
    let refused = fixture.refused(&format!("PUT {VMS}/a"), vm_body());
    assert_eq!(refused.0, 409);
    fixture.advance(100);
    assert_eq!(fixture.status(&deleted)["status"], "Succeeded");
    assert!(fixture.oracle().vms.is_empty());
}

#[test]
fn states_have_their_codes() {
    let mut fixture = Fixture::new();
    let codes = |fixture: &mut Fixture| -> Vec<String> {
        let view = fixture.get(&format!("{VMS}/a/instanceView"));
        let statuses = view["statuses"].as_array().unwrap().iter();
        statuses
            .map(|status| status["code"].as_str().unwrap().to_owned())
            .collect()
    };
    fixture.put("a", vm_body());
    assert_eq!(codes(&mut fixture), ["ProvisioningState/creating"]);
    fixture.advance(100);
    assert_eq!(
        codes(&mut fixture),
        ["ProvisioningState/succeeded", "PowerState/running"]
    );
    fixture.ok(&format!("POST {VMS}/a/deallocate"), Value::Null);
    assert_eq!(
        codes(&mut fixture),
        ["ProvisioningState/updating", "PowerState/deallocating"]
    );
    fixture.advance(100);
    fixture.post("a", "generalize");
    let expected = [
        "ProvisioningState/succeeded",
        "PowerState/deallocated",
        "OSState/generalized",
    ];
    assert_eq!(codes(&mut fixture), expected);
    assert_eq!(
        fixture
            .refused(&format!("POST {VMS}/a/start"), Value::Null)
            .0,
        409
    );
    assert!(fixture.get(&format!("{VMS}/a"))["properties"]["instanceView"].is_null());
}

#[test]
fn unknown_state_is_returned_and_not_stored() {
    let mut fixture = Fixture::new();
    fixture.running("a");
    let context = CallContext {
        state: Some("dreaming".to_owned()),
        ..CallContext::default()
    };
    let mut document = |path: &str| {
        let response = fixture
            .call_as(&format!("GET {path}"), Value::Null, &context)
            .unwrap();
        response.body
    };
    assert!(document(&format!("{VMS}/a?$expand=instanceView")).contains("PowerState/dreaming"));
    assert!(document(&format!("{VMS}/a")).contains("\"provisioningState\":\"dreaming\""));
    assert!(
        fixture
            .get(&format!("{VMS}/a/instanceView"))
            .to_string()
            .contains("PowerState/running")
    );
}
