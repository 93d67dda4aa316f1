//! The fallback layer on EC2: a refusal skips what it is about, and nothing else.

use fleetwright_contract_tests::Harness as _;
use fleetwright_ec2::{
    Ec2LaunchConfig,
    fleetwright::{
        InstanceInfo, InstanceProvisioner as _, Market, Result,
        layer::{Alternative, Fallback, FallbackPolicy, Layered},
    },
};
use fleetwright_emulators::ec2::{Capacity, Subnet};

use crate::emulated::Ec2Harness;

fn in_zone(zone: &str) -> Alternative {
    Alternative::new(zone).zone(zone).unwrap()
}

fn of_type(name: &str) -> Alternative {
    Alternative::new(name).instance_type(name).unwrap()
}

/// Launches with these alternatives. Returns the result, and how many launches were sent.
async fn launch(
    harness: &Ec2Harness,
    launch: Ec2LaunchConfig,
    alternatives: impl IntoIterator<Item = Alternative>,
) -> (Result<InstanceInfo>, u64) {
    let fallback = Fallback::new(FallbackPolicy::new(alternatives));
    let ec2 = Layered::new(harness.open_with(launch).await, fallback);
    let launched = ec2.launch_instance(&harness.config()).await;
    (launched, harness.call_count("RunInstances"))
}

#[tokio::test]
async fn missing_capacity_in_a_default_subnet_leaves_other_zones() {
    let harness = Ec2Harness::with_knobs(|knobs| {
        let mut none = Capacity::of(0);
        none.zone = Some("us-east-1a".to_owned());
        knobs.capacity = vec![none];
    });
    let mut config = Ec2LaunchConfig::new();
    config.default_subnet = Some("subnet-00000000000000001".parse().unwrap());
    let alternatives = [
        Alternative::new("requested"),
        in_zone("us-east-1a"),
        in_zone("us-east-1b"),
    ];
    let (launched, sent) = launch(&harness, config, alternatives).await;
    let zone = launched.unwrap().placement.zone;
    assert_eq!((zone.unwrap().as_str(), sent), ("us-east-1b", 2));
}

#[tokio::test]
async fn full_subnet_of_a_zone_is_tried_once() {
    let harness = Ec2Harness::with_knobs(|knobs| {
        let cidr = "10.9.0.0/30".parse().unwrap();
        knobs
            .subnets
            .push(Subnet::new("subnet-full", "us-east-1b", cidr));
    });
    let mut config = Ec2LaunchConfig::new();
    let (zone, subnet) = (
        "us-east-1b".parse().unwrap(),
        "subnet-full".parse().unwrap(),
    );
    config.subnets.insert(zone, subnet);
    let in_zone_b = |name: &str| of_type(name).zone("us-east-1b").unwrap();
    let mut alternatives: Vec<_> = ["t3.micro", "t3.small", "m5.large"].map(in_zone_b).into();
    alternatives.push(in_zone("us-east-1c"));
    let (launched, sent) = launch(&harness, config, alternatives).await;
    let zone = launched.unwrap().placement.zone;
    assert_eq!((zone.unwrap().as_str(), sent), ("us-east-1c", 2));
}

#[tokio::test]
async fn vcpu_quota_leaves_the_spot_market() {
    let harness = Ec2Harness::with_knobs(|knobs| knobs.vcpu_quota = Some(0));
    let alternatives = [
        Alternative::new("requested"),
        of_type("m5.large"),
        in_zone("us-east-1b"),
        Alternative::new("spot").market(Market::Spot),
    ];
    let (launched, sent) = launch(&harness, Ec2LaunchConfig::new(), alternatives).await;
    let market = launched.unwrap().placement.market;
    assert_eq!((market, sent), (Some(Market::Spot), 2));
}
