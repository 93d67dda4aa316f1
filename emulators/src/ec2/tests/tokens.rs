//! Client tokens, as EC2 documents them.

use super::{LAUNCH, Lab, all};
use crate::cloud::CloudEngine as _;
use crate::ec2::knobs::Capacity;
use std::time::Duration;

fn with_token(token: &str, more: &str) -> String {
    format!("{LAUNCH}&MinCount=1&MaxCount=1&ClientToken={token}{more}")
}

#[test]
fn the_same_token_and_parameters_give_the_same_instance_as_it_is_now() {
    let mut lab = Lab::new();
    let first = lab.ok(&with_token("t", ""));
    lab.pass(100);
    let second = lab.ok(&with_token("t", ""));
    assert_eq!(all(&first, "instanceId"), all(&second, "instanceId"));
    assert_eq!(all(&first, "reservationId"), all(&second, "reservationId"));
    assert_eq!(all(&second, "name"), ["running"]);
    assert_eq!(lab.engine.instances.len(), 1);
    // Tokens are case-sensitive, and no token is no token.
    lab.ok(&with_token("T", ""));
    lab.ok(&with_token("", ""));
    assert_eq!(lab.engine.instances.len(), 3);
}

#[test]
fn other_parameters_are_a_mismatch() {
    let mut lab = Lab::new();
    lab.ok(&with_token("t", ""));
    for more in [
        "&UserData=eA%3D%3D",
        "&EbsOptimized=false",
        "&SecurityGroupId.1=sg-00000000000000001",
    ] {
        assert_eq!(
            lab.code(&with_token("t", more)),
            "IdempotentParameterMismatch",
            "{more}"
        );
    }
    assert_eq!(lab.engine.instances.len(), 1);
}

#[test]
fn token_is_zonal_if_a_zone_or_subnet_is_named() {
    let mut lab = Lab::new();
    let zone =
        |zone: &str| with_token("t", &format!("&Placement.AvailabilityZone=us-east-1{zone}"));
    lab.ok(&zone("a"));
    lab.ok(&zone("b"));
    lab.ok(&with_token("t", ""));
    assert_eq!(lab.engine.instances.len(), 3);
    lab.ok(&zone("a"));
    lab.ok(&with_token("t", ""));
    assert_eq!(lab.engine.instances.len(), 3);
    // A subnet of the same zone is another parameter of the same token.
    let subnet = with_token("t", "&SubnetId=subnet-00000000000000001");
    assert_eq!(lab.code(&subnet), "IdempotentParameterMismatch");
    lab.ok(&with_token("u", "&SubnetId=subnet-00000000000000001"));
    lab.ok(&with_token("u", "&SubnetId=subnet-00000000000000002"));
    assert_eq!(lab.engine.instances.len(), 5);
}

#[test]
fn spent_token_launches_nothing_until_it_expires() {
    let mut lab = Lab::with(|knobs| knobs.timing.token_retention = Duration::from_secs(7200));
    let id = lab.running("&ClientToken=t");
    lab.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    // While it shuts down, the token still stands for it.
    assert_eq!(
        all(&lab.ok(&with_token("t", "")), "name"),
        ["shutting-down"]
    );
    lab.pass(100);
    assert_eq!(
        lab.code(&with_token("t", "")),
        "IdempotentInstanceTerminated"
    );
    lab.pass(3600 * 1000);
    assert_eq!(lab.state(&id), "gone");
    assert_eq!(
        lab.code(&with_token("t", "")),
        "IdempotentInstanceTerminated"
    );
    lab.pass(3600 * 1000);
    assert_ne!(all(&lab.ok(&with_token("t", "")), "instanceId"), [id]);
}

#[test]
fn token_of_a_batch_is_valid_while_one_instance_lives() {
    let mut lab = Lab::new();
    let ids = lab.launch(2, "&ClientToken=t");
    lab.ok(&format!("TerminateInstances&InstanceId.1={}", ids[0]));
    lab.pass(100);
    let again = lab.launch(2, "&ClientToken=t");
    assert_eq!(again, ids);
    lab.ok(&format!("TerminateInstances&InstanceId.1={}", ids[1]));
    lab.pass(100);
    let call = format!("{LAUNCH}&MinCount=2&MaxCount=2&ClientToken=t");
    assert_eq!(lab.code(&call), "IdempotentInstanceTerminated");
}

#[test]
fn failed_launch_frees_its_token() {
    let mut lab = Lab::with(|knobs| {
        knobs.capacity = vec![Capacity {
            instance_type: None,
            zone: None,
            market: None,
            machines: 0,
        }];
    });
    assert_eq!(
        lab.code(&with_token("t", "")),
        "InsufficientInstanceCapacity"
    );
    lab.engine.core.knobs.capacity.clear();
    lab.ok(&with_token("t", "&EbsOptimized=true"));
    assert_eq!(lab.engine.instances.len(), 1);
}

#[test]
fn dry_run_does_not_use_the_token() {
    let mut lab = Lab::new();
    assert_eq!(
        lab.code(&with_token("t", "&DryRun=true")),
        "DryRunOperation"
    );
    lab.ok(&with_token("t", ""));
    assert_eq!(
        lab.code(&with_token("t", "&DryRun=true")),
        "DryRunOperation"
    );
    assert_eq!(lab.engine.instances.len(), 1);
}

#[test]
fn token_is_honoured_after_its_image_is_deleted() {
    let mut lab = Lab::new();
    let first = lab.ok(&with_token("t", ""));
    let mut knobs = lab.engine.core.knobs.clone();
    knobs.images.clear();
    knobs.key_pairs.clear();
    lab.engine.set_knobs(knobs);
    let again = lab.ok(&with_token("t", ""));
    assert_eq!(all(&again, "instanceId"), all(&first, "instanceId"));
    assert_eq!(lab.code(&with_token("u", "")), "InvalidAMIID.NotFound");
}
