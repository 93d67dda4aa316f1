//! Client tokens, as EC2 documents them.

use super::{Fixture, LAUNCH, all};
use crate::cloud::{Cloud as _, CloudEngine as _, fault::InjectedError};
use crate::ec2::{Action, Ec2, knobs::Capacity, wire::params::Params};
use std::time::Duration;

fn with_token(token: &str, more: &str) -> String {
    format!("{LAUNCH}&MinCount=1&MaxCount=1&ClientToken={token}{more}")
}

#[test]
fn same_token_and_parameters_return_the_current_state_of_the_instance() {
    let mut fixture = Fixture::new();
    let first = fixture.ok(&with_token("t", ""));
    fixture.advance(100);
    let second = fixture.ok(&with_token("t", ""));
    assert_eq!(all(&first, "instanceId"), all(&second, "instanceId"));
    assert_eq!(all(&first, "reservationId"), all(&second, "reservationId"));
    assert_eq!(all(&second, "name"), ["running"]);
    assert_eq!(fixture.engine.instances.len(), 1);
    // Tokens are case-sensitive, and an empty token is the same as none.
    fixture.ok(&with_token("T", ""));
    fixture.ok(&with_token("", ""));
    assert_eq!(fixture.engine.instances.len(), 3);
}

#[test]
fn other_parameters_are_a_mismatch() {
    let mut fixture = Fixture::new();
    fixture.ok(&with_token("t", ""));
    for more in [
        "&UserData=eA%3D%3D",
        "&EbsOptimized=false",
        "&SecurityGroupId.1=sg-00000000000000001",
    ] {
        assert_eq!(
            fixture.refusal_code(&with_token("t", more)),
            "IdempotentParameterMismatch",
            "{more}"
        );
    }
    assert_eq!(fixture.engine.instances.len(), 1);
}

#[test]
fn token_is_zonal_if_a_zone_or_subnet_is_named() {
    let mut fixture = Fixture::new();
    let zone =
        |zone: &str| with_token("t", &format!("&Placement.AvailabilityZone=us-east-1{zone}"));
    fixture.ok(&zone("a"));
    fixture.ok(&zone("b"));
    fixture.ok(&with_token("t", ""));
    assert_eq!(fixture.engine.instances.len(), 3);
    fixture.ok(&zone("a"));
    fixture.ok(&with_token("t", ""));
    assert_eq!(fixture.engine.instances.len(), 3);
    // A subnet of the same zone is another parameter of the same token.
    let subnet = with_token("t", "&SubnetId=subnet-00000000000000001");
    assert_eq!(fixture.refusal_code(&subnet), "IdempotentParameterMismatch");
    fixture.ok(&with_token("u", "&SubnetId=subnet-00000000000000001"));
    fixture.ok(&with_token("u", "&SubnetId=subnet-00000000000000002"));
    assert_eq!(fixture.engine.instances.len(), 5);
}

#[test]
fn spent_token_launches_nothing_until_it_expires() {
    let mut fixture =
        Fixture::with(|knobs| knobs.timing.token_retention = Duration::from_secs(7200));
    let id = fixture.launch_running("&ClientToken=t");
    fixture.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    // While the instance shuts down, the token is not spent.
    assert_eq!(
        all(&fixture.ok(&with_token("t", "")), "name"),
        ["shutting-down"]
    );
    fixture.advance(100);
    assert_eq!(
        fixture.refusal_code(&with_token("t", "")),
        "IdempotentInstanceTerminated"
    );
    fixture.advance(3600 * 1000);
    assert_eq!(fixture.state(&id), "gone");
    assert_eq!(
        fixture.refusal_code(&with_token("t", "")),
        "IdempotentInstanceTerminated"
    );
    fixture.advance(3600 * 1000);
    assert_ne!(all(&fixture.ok(&with_token("t", "")), "instanceId"), [id]);
}

#[test]
fn token_of_a_batch_is_valid_while_one_instance_lives() {
    let mut fixture = Fixture::new();
    let ids = fixture.launch(2, "&ClientToken=t");
    fixture.ok(&format!("TerminateInstances&InstanceId.1={}", ids[0]));
    fixture.advance(100);
    let again = fixture.launch(2, "&ClientToken=t");
    assert_eq!(again, ids);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={}", ids[1]));
    fixture.advance(100);
    let call = format!("{LAUNCH}&MinCount=2&MaxCount=2&ClientToken=t");
    assert_eq!(fixture.refusal_code(&call), "IdempotentInstanceTerminated");
}

/// A region without any machine.
fn without_capacity() -> Fixture {
    Fixture::with(|knobs| {
        knobs.capacity = vec![Capacity {
            instance_type: None,
            zone: None,
            market: None,
            machines: 0,
        }];
        knobs.timing.token_retention = Duration::from_secs(7200);
    })
}

#[test]
fn refused_launch_binds_its_token_to_its_parameters() {
    let mut fixture = without_capacity();
    let refused = "InsufficientInstanceCapacity";
    let (same, other) = (with_token("t", ""), with_token("t", "&EbsOptimized=true"));
    assert_eq!(fixture.refusal_code(&same), refused);
    // The refusal of other parameters does not depend on the capacity.
    assert_eq!(fixture.refusal_code(&other), "IdempotentParameterMismatch");
    assert_eq!(fixture.refusal_code(&same), refused);
    fixture.engine.core.knobs.capacity.clear();
    assert_eq!(fixture.refusal_code(&other), "IdempotentParameterMismatch");
    let id = all(&fixture.ok(&same), "instanceId");
    // The end of the refusal's time does not forget the launch.
    fixture.advance(7200 * 1000);
    assert_eq!(all(&fixture.ok(&same), "instanceId"), id);
    fixture.engine.check_invariants();
}

#[test]
fn refused_launch_is_forgotten_with_the_retention_or_by_the_knob() {
    let other = with_token("t", "&EbsOptimized=true");
    let mut fixture = without_capacity();
    fixture.refusal_code(&with_token("t", ""));
    fixture.engine.core.knobs.capacity.clear();
    fixture.advance(7200 * 1000);
    fixture.ok(&other);
    let mut fixture = without_capacity();
    fixture.engine.core.knobs.failed_launch_keeps_token = false;
    fixture.refusal_code(&with_token("t", ""));
    fixture.engine.core.knobs.capacity.clear();
    fixture.ok(&other);
}

#[test]
fn injected_lack_of_capacity_binds_the_token_like_a_real_one() {
    let mut fixture = Fixture::new();
    let query = |call: &str| call.split_once('&').unwrap().1.to_owned();
    let refuse = |fixture: &mut Fixture, call: &str| {
        let params = Params::parse(&query(call), b"").unwrap();
        let call = (Action::RunInstances, params);
        Ec2::record_refusal(&call, &mut fixture.engine, InjectedError::Capacity);
    };
    let (first, other) = (with_token("t", ""), with_token("t", "&EbsOptimized=true"));
    refuse(&mut fixture, &first);
    assert_eq!(fixture.refusal_code(&other), "IdempotentParameterMismatch");
    let id = all(&fixture.ok(&first), "instanceId");
    // A token that has launched keeps its launch.
    refuse(&mut fixture, &first);
    refuse(&mut fixture, &other);
    assert_eq!(all(&fixture.ok(&first), "instanceId"), id);
    fixture.engine.check_invariants();
}

#[test]
fn invalid_launch_frees_its_token() {
    let mut fixture = Fixture::new();
    let unknown = with_token("t", "").replace("ami-00000000000000001", "ami-0fffffffffffffff0");
    assert_eq!(fixture.refusal_code(&unknown), "InvalidAMIID.NotFound");
    fixture.ok(&with_token("t", ""));
}

#[test]
fn dry_run_does_not_use_the_token() {
    let mut fixture = Fixture::new();
    assert_eq!(
        fixture.refusal_code(&with_token("t", "&DryRun=true")),
        "DryRunOperation"
    );
    fixture.ok(&with_token("t", ""));
    assert_eq!(
        fixture.refusal_code(&with_token("t", "&DryRun=true")),
        "DryRunOperation"
    );
    assert_eq!(fixture.engine.instances.len(), 1);
}

#[test]
fn token_is_honoured_after_its_image_is_deleted() {
    let mut fixture = Fixture::new();
    let first = fixture.ok(&with_token("t", ""));
    let mut knobs = fixture.engine.core.knobs.clone();
    knobs.images.clear();
    knobs.key_pairs.clear();
    fixture.engine.set_knobs(knobs);
    let again = fixture.ok(&with_token("t", ""));
    assert_eq!(all(&again, "instanceId"), all(&first, "instanceId"));
    assert_eq!(
        fixture.refusal_code(&with_token("u", "")),
        "InvalidAMIID.NotFound"
    );
}
