//! The requests that launch configs become.

use super::*;
use crate::{ExtraVolume, RootDevice};

fn config() -> InstanceConfig {
    InstanceConfig::builder("ami-1", "m7i.large")
        .launch_token("t-1")
        .tag("a", "b")
        .build()
        .unwrap()
}

fn plan(launch: &Ec2LaunchConfig, config: &InstanceConfig) -> Plan {
    Plan::new(launch, config, NonZeroU32::MIN, Some("/dev/sda1"))
}

#[test]
fn plain_launch_sets_only_what_was_configured() {
    let launch = Ec2LaunchConfig::new();
    let plan = plan(&launch, &config());
    assert!(plan.block_devices.is_empty() && plan.security_groups.is_empty());
    assert!(plan.subnet.is_none() && plan.network_card.is_none() && plan.placement.is_none());
    assert!(plan.market.is_none() && plan.user_data.is_none() && plan.key_pair.is_none());
    assert_eq!(
        plan.metadata.http_tokens(),
        Some(&HttpTokensState::Required)
    );
    assert_eq!(plan.shutdown, ShutdownBehavior::Stop);
    let kinds: Vec<_> = plan
        .tags
        .iter()
        .filter_map(|one| one.resource_type())
        .map(|kind| kind.as_str().to_owned())
        .collect();
    assert_eq!(kinds, ["instance", "volume", "network-interface"]);
}

#[test]
fn zone_selects_its_subnet_and_is_always_sent() {
    let mut launch = Ec2LaunchConfig::new();
    launch
        .subnets
        .insert("us-east-1b".parse().unwrap(), "subnet-b".parse().unwrap());
    launch.default_subnet = Some("subnet-0".parse().unwrap());
    let mut config = config();
    assert_eq!(plan(&launch, &config).subnet.as_deref(), Some("subnet-0"));
    config.placement.zone = Some("us-east-1b".parse().unwrap());
    let zone = |plan: &Plan| {
        let placement = plan.placement.as_ref();
        let zone = placement.and_then(|placement| placement.availability_zone());
        zone.map(ToOwned::to_owned)
    };
    let in_subnet = plan(&launch, &config);
    assert_eq!(
        (in_subnet.subnet.as_deref(), zone(&in_subnet).as_deref()),
        (Some("subnet-b"), Some("us-east-1b"))
    );
    config.placement.zone = Some("us-east-1c".parse().unwrap());
    let without_subnet = plan(&launch, &config);
    assert_eq!(without_subnet.subnet, None);
    assert_eq!(zone(&without_subnet).as_deref(), Some("us-east-1c"));
    config.placement.network = Some("subnet-x".parse().unwrap());
    let both = plan(&launch, &config);
    assert_eq!(both.subnet.as_deref(), Some("subnet-x"));
    assert_eq!(zone(&both).as_deref(), Some("us-east-1c"));
}

#[test]
fn public_address_is_requested_on_a_card_that_is_deleted_with_the_instance() {
    let mut launch = Ec2LaunchConfig::new();
    launch.security_groups.insert("sg-1".parse().unwrap());
    launch.default_subnet = Some("subnet-0".parse().unwrap());
    let mut config = config();
    config.placement.public_address = Some(PublicAddress::Absent);
    let plan = plan(&launch, &config);
    assert!(plan.subnet.is_none() && plan.security_groups.is_empty());
    let card = plan.network_card.unwrap();
    assert_eq!(card.associate_public_ip_address(), Some(false));
    assert_eq!(
        (card.subnet_id(), card.groups()),
        (Some("subnet-0"), &["sg-1".to_owned()][..])
    );
    assert_eq!(card.delete_on_termination(), Some(true));
}

#[test]
fn disks_are_deleted_with_the_instance_unless_configured_otherwise() {
    let mut launch = Ec2LaunchConfig::new();
    launch.extra_volumes = vec![
        ExtraVolume::new("/dev/sdf", 9),
        ExtraVolume::new("/dev/sdg", 8),
    ];
    launch.extra_volumes[1].on_termination = OnTermination::Keep;
    let mut config = config();
    config.disk_size_gb = std::num::NonZeroU32::new(40);
    assert!(needs_root_device(&launch, &config));
    let plan = plan(&launch, &config);
    let disks: Vec<_> = plan
        .block_devices
        .iter()
        .map(|one| {
            let disk = one.ebs().unwrap();
            (
                one.device_name().unwrap(),
                disk.volume_size(),
                disk.delete_on_termination(),
            )
        })
        .collect();
    assert_eq!(
        disks,
        [
            ("/dev/sda1", Some(40), Some(true)),
            ("/dev/sdf", Some(9), Some(true)),
            ("/dev/sdg", Some(8), Some(false)),
        ]
    );
    launch.root_device = RootDevice {
        name: Some("/dev/xvda".to_owned()),
        ..RootDevice::default()
    };
    assert!(!needs_root_device(&launch, &config));
}

#[test]
fn spot_request_is_one_time_and_tagged() {
    let mut config = config();
    config.placement.market = Some(Market::Spot);
    let plan = plan(&Ec2LaunchConfig::new(), &config);
    let options = plan.market.unwrap();
    let spot = options.spot_options().unwrap();
    assert_eq!(spot.spot_instance_type(), Some(&SpotInstanceType::OneTime));
    assert_eq!(plan.tags.len(), 4);
}
