//! The requests that launch configs become.

use super::*;
use fleetwright::{InstanceConfig, SecurityGroupId, UserData};

fn launch() -> AzureLaunchConfig {
    let subnet = NetworkId::new("vnet/default").unwrap();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ";
    AzureLaunchConfig::new(
        "00000000-0000-0000-0000-00000000000a",
        "rg",
        "eastus",
        subnet,
        key,
    )
}

fn config() -> InstanceConfig {
    InstanceConfig::builder("Canonical:jammy:gen2:latest", "Standard_B1s")
        .build()
        .unwrap()
}

fn planned(launch: &AzureLaunchConfig, config: &InstanceConfig) -> Result<Plan, InvalidValue> {
    Plan::new(launch, config, NonZeroU32::MIN)
}

#[test]
fn minimal_launch_requests_the_configured_values() {
    let plan = planned(&launch(), &config()).unwrap();
    let spec = plan.spec;
    assert_eq!((spec.size.as_str(), spec.zone), ("Standard_B1s", None));
    assert!(
        spec.subnet
            .ends_with("/virtualNetworks/vnet/subnets/default")
    );
    assert!(spec.public_address && spec.console && spec.spot.is_none());
    assert_eq!((spec.custom_data, spec.user_data), (None, None));
    assert!(spec.tags.is_empty() && plan.owner.is_none());
}

#[test]
fn instance_config_overrides_launch_config() {
    let mut launch = launch();
    launch.zone = Some(Zone::new("1").unwrap());
    launch.network_security_group = Some(SecurityGroupId::new("ours").unwrap());
    launch.user_data = UserDataAs::UserData;
    let mut config = config();
    config.user_data = Some(UserData::new(*b"\xff#!").unwrap());
    config.disk_size_gb = NonZeroU32::new(64);
    config.launch_token = Some("t-1".parse().unwrap());
    config.placement.zone = Some(Zone::new("2").unwrap());
    config.placement.public_address = Some(PublicAddress::Absent);
    config.placement.market = Some(Market::Spot);
    config.placement.security_groups = [SecurityGroupId::new("theirs").unwrap()].into();
    let plan = planned(&launch, &config).unwrap();
    assert!(!format!("{plan:?}").contains("/yMh"), "{plan:?}");
    let spec = plan.spec;
    assert_eq!(spec.zone.as_deref(), Some("2"));
    assert!(spec.security_group.unwrap().ends_with("/theirs"));
    assert_eq!(spec.user_data.as_deref(), Some("/yMh"));
    assert_eq!(spec.custom_data, None);
    assert_eq!(spec.spot, Some(crate::Eviction::Deleted));
    assert_eq!((spec.disk_gib, spec.public_address), (Some(64), false));
    assert_eq!(spec.tags.len(), 2, "the owner mark and the config mark");
    assert!(plan.owner.is_some());
}

#[test]
fn images_are_accepted_by_name_and_resource_id() {
    let published = source("a:b:c:1.2.3").unwrap();
    assert!(matches!(published, Source::Published { version, .. } if version == "1.2.3"));
    let id = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/images/x";
    assert_eq!(source(id).unwrap(), Source::Resource(id.to_owned()));
    let shared = "/CommunityGalleries/x/images/y";
    assert_eq!(
        source(shared).unwrap(),
        Source::CommunityGallery(shared.to_owned())
    );
    for odd in ["a", "a:b:c", "a:b:c:", "a:b:c:d:e", "/images/x"] {
        assert_eq!(source(odd).unwrap_err().field(), "image", "{odd}");
    }
}

#[test]
fn unsupported_values_are_refused_by_field() {
    let mut config = config();
    config.placement.security_groups = ["a", "b"]
        .map(|name| SecurityGroupId::new(name).unwrap())
        .into();
    let field =
        |config: &InstanceConfig| planned(&launch(), config).unwrap_err().field().to_owned();
    assert_eq!(field(&config), "placement.security_groups");
    config.placement.security_groups.clear();
    config.placement.network = Some(NetworkId::new("only-a-network").unwrap());
    assert_eq!(field(&config), "placement.network");
    config.placement.network = None;
    for gib in [4096, u32::MAX] {
        config.disk_size_gb = NonZeroU32::new(gib);
        assert_eq!(field(&config), "disk_size_gb");
    }
    config.disk_size_gb = NonZeroU32::new(4095);
    assert!(planned(&launch(), &config).is_ok());
}
