//! EC2 as the config file describes it.

use std::collections::BTreeSet;

use fleetwright::{InvalidValue, NetworkId, SecurityGroupId, Zone};
use fleetwright_ec2::{
    Ec2LaunchConfig, Ec2Options, Ec2Provisioner,
    aws_config::{self, BehaviorVersion, Region},
};

use crate::{
    config::{Ec2Section, Limits},
    failure::Failure,
    settings::LaunchSettings,
};

/// Opens the provisioner. Credentials are looked up when the first call needs them.
pub(super) async fn open(
    section: &Ec2Section,
    settings: &LaunchSettings,
    limits: &Limits,
) -> Result<Ec2Provisioner, Failure> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(region) = &section.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(profile) = &section.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(endpoint) = &section.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    let mut options = Ec2Options::default();
    // Nothing here asks for the account, and STS may not be reachable.
    options.report_account = false;
    if let Some(window) = Limits::duration(limits.consistency_window_seconds) {
        options.consistency_window = window;
        options.usual_lag = options.usual_lag.min(window);
    }
    if let Some(interval) = Limits::duration(limits.poll_interval_seconds) {
        options.poll_interval = interval;
    }
    if let Some(timeout) = Limits::duration(limits.call_timeout_seconds) {
        options.call_timeout = timeout;
    }
    let invalid = |invalid: InvalidValue| Failure::new(format!("ec2: {invalid}"));
    let launch = launch_config(section, settings).map_err(invalid)?;
    Ec2Provisioner::new(&loader.load().await, launch, options).map_err(invalid)
}

/// Returns the settings of launches.
pub(super) fn launch_config(
    section: &Ec2Section,
    settings: &LaunchSettings,
) -> Result<Ec2LaunchConfig, InvalidValue> {
    let mut launch = Ec2LaunchConfig::new();
    for (zone, subnet) in &section.subnets {
        let subnet = NetworkId::new(subnet)?;
        launch.subnets.insert(Zone::new(zone)?, subnet);
    }
    let subnet = section.default_subnet.as_deref();
    launch.default_subnet = subnet.map(NetworkId::new).transpose()?;
    let groups = section.security_groups.iter().map(SecurityGroupId::new);
    launch.security_groups = groups.collect::<Result<BTreeSet<_>, _>>()?;
    launch.key_pair.clone_from(&section.key_pair);
    let profile = settings.instance_profile.as_ref();
    launch.instance_profile = profile.or(section.instance_profile.as_ref()).cloned();
    launch.public_address = section.public_address.map(Into::into);
    launch
        .root_device
        .volume_type
        .clone_from(&section.root_volume_type);
    launch.root_device.encrypted = section.root_encrypted;
    if let Some(hops) = section.metadata_hop_limit {
        launch.metadata.hop_limit = hops;
    }
    launch.check()?;
    Ok(launch)
}
