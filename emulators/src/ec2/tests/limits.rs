//! Capacity, quota, addresses and late failures.

use super::{Fixture, LAUNCH, all};
use crate::ec2::knobs::{Capacity, LateFailure, Market};

fn capacity(instance_type: Option<&str>, zone: Option<&str>, machines: u64) -> Capacity {
    Capacity {
        instance_type: instance_type.map(str::to_owned),
        zone: zone.map(str::to_owned),
        market: None,
        machines,
    }
}

fn launch(min: u32, max: u32, more: &str) -> String {
    format!("{LAUNCH}&MinCount={min}&MaxCount={max}{more}")
}

#[test]
fn capacity_is_by_type_and_zone_and_returns_500() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.capacity = vec![
            capacity(Some("m5.large"), Some("us-east-1a"), 1),
            capacity(None, Some("us-east-1b"), 0),
        ];
    });
    let zone_a = "&Placement.AvailabilityZone=us-east-1a";
    fixture.ok(&launch(1, 1, zone_a));
    let refusal = fixture.call(&launch(1, 1, zone_a)).unwrap_err();
    assert_eq!(
        (refusal.status, &*refusal.code),
        (500, "InsufficientInstanceCapacity")
    );
    // Another type in that zone, and another zone, have machines.
    fixture.ok("RunInstances&ImageId=ami-00000000000000001&InstanceType=t3.micro&MinCount=1&MaxCount=1&Placement.AvailabilityZone=us-east-1a");
    let response = fixture.ok(&launch(1, 1, ""));
    assert_eq!(all(&response, "availabilityZone"), ["us-east-1c"]);
}

#[test]
fn partial_launch_respects_min_count() {
    let mut fixture = Fixture::with(|knobs| knobs.capacity = vec![capacity(None, None, 3)]);
    assert_eq!(
        fixture.refusal_code(&launch(4, 9, "")),
        "InsufficientInstanceCapacity"
    );
    let response = fixture.ok(&launch(2, 9, ""));
    assert_eq!(all(&response, "instanceId").len(), 3);
    assert_eq!(all(&response, "amiLaunchIndex"), ["0", "1", "2"]);
}

#[test]
fn stopped_instance_releases_its_machine() {
    let mut fixture = Fixture::with(|knobs| knobs.capacity = vec![capacity(None, None, 1)]);
    let id = fixture.launch_running("");
    fixture.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, "")),
        "InsufficientInstanceCapacity"
    );
    fixture.advance(100);
    let other = fixture.launch_running("");
    assert_eq!(
        fixture.refusal_code(&format!("StartInstances&InstanceId.1={id}")),
        "InsufficientInstanceCapacity"
    );
    assert_eq!(fixture.state(&id), "stopped");
    fixture.ok(&format!("TerminateInstances&InstanceId.1={other}"));
    fixture.advance(100);
    fixture.ok(&format!("StartInstances&InstanceId.1={id}"));
}

#[test]
fn batch_starts_completely_or_not_at_all() {
    let mut fixture = Fixture::with(|knobs| knobs.capacity = vec![capacity(None, None, 2)]);
    let ids = fixture.launch(2, "");
    fixture.advance(100);
    let both = super::id_parameters(&ids);
    fixture.ok(&format!("StopInstances{both}"));
    fixture.advance(100);
    fixture.engine.core.knobs.capacity[0].machines = 1;
    let start = format!("StartInstances{both}");
    assert_eq!(fixture.refusal_code(&start), "InsufficientInstanceCapacity");
    assert_eq!(
        (fixture.state(&ids[0]), fixture.state(&ids[1])),
        ("stopped", "stopped")
    );
    fixture.engine.check_invariants();
    fixture.engine.core.knobs.capacity[0].machines = 2;
    assert_eq!(
        fixture.refusal_code(&format!("{start}&DryRun=true")),
        "DryRunOperation"
    );
    fixture.engine.check_invariants();
    fixture.ok(&start);
}

#[test]
fn quotas_have_codes_of_their_own() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.vcpu_quota = Some(5);
        knobs.spot_vcpu_quota = Some(1);
        knobs.capacity = vec![capacity(None, None, 0)];
    });
    // The quota is checked before capacity.
    let refusal = fixture.call(&launch(3, 3, "")).unwrap_err();
    assert_eq!((refusal.status, &*refusal.code), (400, "VcpuLimitExceeded"));
    let spot = "&InstanceMarketOptions.MarketType=spot";
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, spot)),
        "MaxSpotInstanceCountExceeded"
    );
    fixture.engine.core.knobs.capacity.clear();
    assert_eq!(all(&fixture.ok(&launch(1, 9, "")), "instanceId").len(), 2);
    assert_eq!(fixture.refusal_code(&launch(1, 1, "")), "VcpuLimitExceeded");
    fixture.engine.core.knobs.instance_quota = Some(2);
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, "")),
        "InstanceLimitExceeded"
    );
}

#[test]
fn quota_can_be_used_up_to_the_last_vcpu() {
    let mut fixture = Fixture::with(|knobs| knobs.vcpu_quota = Some(20));
    fixture.ok(&launch(2, 2, "").replace("m5.large", "m5.xlarge"));
    fixture.ok(&launch(6, 6, ""));
    assert_eq!(fixture.refusal_code(&launch(1, 1, "")), "VcpuLimitExceeded");
    let mut fixture = Fixture::with(|knobs| knobs.instance_quota = Some(3));
    fixture.ok(&launch(3, 3, ""));
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, "")),
        "InstanceLimitExceeded"
    );
}

#[test]
fn only_machines_of_the_same_kind_count() {
    let mut fixture = Fixture::with(|knobs| {
        let mut rule = capacity(Some("m5.large"), Some("us-east-1a"), 2);
        rule.market = Some(Market::OnDemand);
        knobs.capacity = vec![rule];
    });
    let zone = |name: &str| format!("&Placement.AvailabilityZone=us-east-1{name}");
    let spot = format!("&InstanceMarketOptions.MarketType=spot{}", zone("a"));
    for _ in 0..3 {
        fixture.ok(&launch(1, 1, &zone("a")).replace("m5.large", "t3.micro"));
        fixture.ok(&launch(1, 1, &zone("b")));
        fixture.ok(&launch(1, 1, &spot));
    }
    fixture.ok(&launch(2, 2, &zone("a")));
    let one_more = launch(1, 1, &zone("a"));
    assert_eq!(
        fixture.refusal_code(&one_more),
        "InsufficientInstanceCapacity"
    );
}

#[test]
fn capacity_is_separate_for_each_market() {
    let mut fixture = Fixture::with(|knobs| {
        let mut spot = capacity(None, None, 0);
        spot.market = Some(Market::Spot);
        knobs.capacity = vec![spot];
    });
    let spot = "&InstanceMarketOptions.MarketType=spot";
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, spot)),
        "InsufficientInstanceCapacity"
    );
    fixture.ok(&launch(1, 1, ""));
}

#[test]
fn type_can_be_limited_to_some_zones() {
    let mut fixture = Fixture::with(|knobs| {
        for spec in &mut knobs.types {
            spec.zones = vec!["us-east-1b".to_owned()];
        }
    });
    let refusal = fixture
        .call(&launch(1, 1, "&Placement.AvailabilityZone=us-east-1a"))
        .unwrap_err();
    assert_eq!((refusal.status, &*refusal.code), (400, "Unsupported"));
    assert_eq!(
        all(&fixture.ok(&launch(1, 1, "")), "availabilityZone"),
        ["us-east-1b"]
    );
}

#[test]
fn subnet_runs_out_of_addresses() {
    let mut fixture = Fixture::with(|knobs| knobs.subnets[0].cidr = "10.0.0.0/29".parse().unwrap());
    let subnet = "&SubnetId=subnet-00000000000000001";
    let response = fixture.ok("DescribeSubnets&SubnetId.1=subnet-00000000000000001");
    assert_eq!(all(&response, "availableIpAddressCount"), ["3"]);
    let ids = fixture.launch(3, subnet);
    assert_eq!(
        fixture.refusal_code(&launch(1, 1, subnet)),
        "InsufficientFreeAddressesInSubnet"
    );
    let response = fixture.ok("DescribeSubnets&SubnetId.1=subnet-00000000000000001");
    assert_eq!(all(&response, "availableIpAddressCount"), ["0"]);
    fixture.ok(&format!("TerminateInstances&InstanceId.1={}", ids[0]));
    fixture.advance(100);
    fixture.ok(&launch(1, 1, subnet));
}

#[test]
fn some_launches_fail_late_and_leave_nothing() {
    let mut fixture = Fixture::with(|knobs| {
        knobs.late_failures = vec![LateFailure {
            instance_type: Some("m5.large".to_owned()),
            zone: None,
            code: "Server.InternalError".to_owned(),
            message: "Internal error on launch".to_owned(),
        }];
    });
    let id = fixture.launch(1, "&ClientToken=t").remove(0);
    assert_eq!(fixture.state(&id), "pending");
    fixture.advance(100);
    let response = fixture.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    assert_eq!(all(&response, "name"), ["terminated"]);
    assert_eq!(
        all(&response, "message"),
        ["Server.InternalError: Internal error on launch"]
    );
    assert!(fixture.engine.volumes.is_empty() && fixture.engine.nics.is_empty());
    let again = format!("{LAUNCH}&MinCount=1&MaxCount=1&ClientToken=t");
    assert_eq!(fixture.refusal_code(&again), "IdempotentInstanceTerminated");
}

#[test]
fn only_the_named_kind_fails_late() {
    let mut fixture = Fixture::with(|knobs| {
        let mut rule = LateFailure::new("Server.InternalError", "no");
        rule.instance_type = Some("m5.large".to_owned());
        rule.zone = Some("us-east-1b".to_owned());
        knobs.late_failures = vec![rule];
    });
    let zone = |name: &str| format!("&Placement.AvailabilityZone=us-east-1{name}");
    let in_zone_a = fixture.launch_running(&zone("a"));
    let in_zone_b = fixture.launch_running(&zone("b"));
    let other = fixture.ok(&launch(1, 1, &zone("b")).replace("m5.large", "t3.micro"));
    fixture.advance(100);
    let other = &all(&other, "instanceId")[0];
    let states = (
        fixture.state(&in_zone_a),
        fixture.state(&in_zone_b),
        fixture.state(other),
    );
    assert_eq!(states, ("running", "terminated", "running"));
}

#[test]
fn volume_quota_fails_late() {
    let mut fixture = Fixture::with(|knobs| knobs.volume_quota = Some(1));
    let ids = fixture.launch(2, "");
    fixture.advance(100);
    assert_eq!(
        (fixture.state(&ids[0]), fixture.state(&ids[1])),
        ("running", "terminated")
    );
    let response = fixture.ok("DescribeInstances&Filter.1.Name=state-reason-code&Filter.1.Value.1=Client.VolumeLimitExceeded");
    assert_eq!(all(&response, "instanceId"), [ids[1].as_str()]);
}
