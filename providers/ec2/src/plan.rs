//! The launch request. Pure.
//!
//! Owns how an instance config and an [`Ec2LaunchConfig`] become one request. It sets nothing that neither of
//! them contains, apart from the tags that mark our instances and one-time spot requests.
//!
//! A value of the launch wins over a value of the launch config, which wins over EC2's default.

use std::num::NonZeroU32;

use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, HttpTokensState, IamInstanceProfileSpecification,
    InstanceInterruptionBehavior, InstanceMarketOptionsRequest, InstanceMetadataOptionsRequest,
    InstanceNetworkInterfaceSpecification, MarketType, Placement as NativePlacement,
    ShutdownBehavior, SpotInstanceType, SpotMarketOptions, TagSpecification, VolumeType,
};
use fleetwright::{InstanceConfig, Market, NetworkId, PublicAddress, Zone};

use crate::{
    Ec2LaunchConfig,
    config::{GuestShutdown, MetadataTokens, OnTermination},
    convert,
};

/// The parameters of one `RunInstances` call.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The image id.
    pub(crate) image: String,
    /// The instance type.
    pub(crate) instance_type: String,
    /// Minimum and maximum count.
    pub(crate) count: i32,
    /// The client token, which the sender sets if the launch has a launch token.
    pub(crate) client_token: Option<String>,
    /// User data in base64.
    pub(crate) user_data: Option<String>,
    /// The tags for each kind of resource that the launch creates.
    pub(crate) tags: Vec<TagSpecification>,
    /// The root disk, if it has settings, and the additional disks.
    pub(crate) block_devices: Vec<BlockDeviceMapping>,
    /// The name of the key pair.
    pub(crate) key_pair: Option<String>,
    /// The instance profile by name or ARN.
    pub(crate) instance_profile: Option<IamInstanceProfileSpecification>,
    /// The settings of the metadata service.
    pub(crate) metadata: InstanceMetadataOptionsRequest,
    /// What a shutdown from inside the instance does.
    pub(crate) shutdown: ShutdownBehavior,
    /// The spot request; `None` on demand.
    pub(crate) market: Option<InstanceMarketOptionsRequest>,
    /// The zone, if the launch names one.
    pub(crate) placement: Option<NativePlacement>,
    /// Subnet and groups, or a network card that has them. EC2 refuses a request with both.
    pub(crate) subnet: Option<String>,
    pub(crate) security_groups: Vec<String>,
    pub(crate) network_card: Option<InstanceNetworkInterfaceSpecification>,
}

/// Returns whether the launch needs the name of the image's root device: EC2 changes the root disk
/// only under that name, and adds a second disk under any other.
pub(crate) fn needs_root_device(launch: &Ec2LaunchConfig, config: &InstanceConfig) -> bool {
    let configured = config.disk_size_gb.is_some() || launch.root_device.has_settings();
    configured && launch.root_device.name.is_none()
}

impl Plan {
    /// Creates the request for `count` instances. `root_device` is the name of the image's root device, if
    /// [`needs_root_device`].
    pub(crate) fn new(
        launch: &Ec2LaunchConfig,
        config: &InstanceConfig,
        count: NonZeroU32,
        root_device: Option<&str>,
    ) -> Self {
        let market = config.placement.market;
        let mut plan = Self {
            image: config.image.to_string(),
            instance_type: config.instance_type.to_string(),
            count: i32::try_from(count.get()).unwrap_or(i32::MAX),
            client_token: None,
            user_data: config.user_data.as_ref().map(convert::user_data),
            tags: convert::tag_specifications(&config.tags, config.fingerprint(count), market),
            block_devices: block_devices(launch, config, root_device),
            key_pair: launch.key_pair.clone(),
            instance_profile: launch.instance_profile.as_deref().map(profile),
            metadata: metadata(launch),
            shutdown: match launch.guest_shutdown {
                GuestShutdown::Stop => ShutdownBehavior::Stop,
                GuestShutdown::Terminate => ShutdownBehavior::Terminate,
            },
            market: (market == Some(Market::Spot)).then(spot),
            placement: None,
            subnet: None,
            security_groups: Vec::new(),
            network_card: None,
        };
        plan.place(launch, config);
        plan
    }

    /// Sets zone, subnet, security groups and public address. A launch that says whether it wants a
    /// public address must describe its network card, and the card then has subnet and groups.
    fn place(&mut self, launch: &Ec2LaunchConfig, config: &InstanceConfig) {
        let requested = &config.placement;
        let subnet = subnet(launch, config).map(ToString::to_string);
        let groups = if requested.security_groups.is_empty() {
            &launch.security_groups
        } else {
            &requested.security_groups
        };
        let groups: Vec<_> = groups.iter().map(ToString::to_string).collect();
        // Also with a subnet: EC2 then refuses the launch if the subnet is in another zone.
        self.placement = requested.zone.as_ref().map(|zone| {
            NativePlacement::builder()
                .availability_zone(zone.as_str())
                .build()
        });
        match requested.public_address.or(launch.public_address) {
            None => (self.subnet, self.security_groups) = (subnet, groups),
            Some(public) => {
                let card = InstanceNetworkInterfaceSpecification::builder()
                    .device_index(0)
                    .set_subnet_id(subnet)
                    .set_groups((!groups.is_empty()).then_some(groups))
                    .associate_public_ip_address(public == PublicAddress::Assigned)
                    .delete_on_termination(true);
                self.network_card = Some(card.build());
            }
        }
    }
}

/// Returns the subnet of a launch: the requested one, that of the requested zone, or the default one.
pub(crate) fn subnet<'a>(
    launch: &'a Ec2LaunchConfig,
    config: &'a InstanceConfig,
) -> Option<&'a NetworkId> {
    let requested = &config.placement;
    match (&requested.network, &requested.zone) {
        (Some(network), _) => Some(network),
        (None, Some(zone)) => launch.subnets.get(zone),
        (None, None) => launch.default_subnet.as_ref(),
    }
}

/// Returns the zone of a launch, if the settings decide it: that of its subnet, or the requested one.
pub(crate) fn zone<'a>(
    launch: &'a Ec2LaunchConfig,
    config: &'a InstanceConfig,
) -> Option<&'a Zone> {
    let subnet = subnet(launch, config);
    let of_subnet = launch.subnets.iter().find(|(_, one)| Some(*one) == subnet);
    of_subnet.map_or(config.placement.zone.as_ref(), |(zone, _)| Some(zone))
}

/// Returns the root disk, if the launch or the launch config has settings for it, and the additional
/// disks. Every disk says whether it is deleted with its instance.
fn block_devices(
    launch: &Ec2LaunchConfig,
    config: &InstanceConfig,
    root_device: Option<&str>,
) -> Vec<BlockDeviceMapping> {
    let mut devices = Vec::new();
    let root = &launch.root_device;
    if config.disk_size_gb.is_some() || root.has_settings() {
        let name = root.name.as_deref().or(root_device).unwrap_or("/dev/xvda");
        let size = config.disk_size_gb.map(std::num::NonZeroU32::get);
        devices.push(device(
            name,
            size,
            root.volume_type.as_deref(),
            root.encrypted,
            OnTermination::Delete,
        ));
    }
    for volume in &launch.extra_volumes {
        devices.push(device(
            &volume.device,
            Some(volume.size_gb),
            volume.volume_type.as_deref(),
            volume.encrypted,
            volume.on_termination,
        ));
    }
    devices
}

/// Creates the description of one disk.
fn device(
    name: &str,
    size_gb: Option<u32>,
    volume_type: Option<&str>,
    encrypted: Option<bool>,
    on_termination: OnTermination,
) -> BlockDeviceMapping {
    let disk = EbsBlockDevice::builder()
        .set_volume_size(size_gb.map(|size| i32::try_from(size).unwrap_or(i32::MAX)))
        .set_volume_type(volume_type.map(VolumeType::from))
        .set_encrypted(encrypted)
        .delete_on_termination(on_termination == OnTermination::Delete);
    BlockDeviceMapping::builder()
        .device_name(name)
        .ebs(disk.build())
        .build()
}

/// Creates the reference to an instance profile, which EC2 takes by name or by ARN.
fn profile(name: &str) -> IamInstanceProfileSpecification {
    let builder = IamInstanceProfileSpecification::builder();
    if name.starts_with("arn:") {
        builder.arn(name).build()
    } else {
        builder.name(name).build()
    }
}

/// Creates the settings of the metadata service.
fn metadata(launch: &Ec2LaunchConfig) -> InstanceMetadataOptionsRequest {
    let tokens = match launch.metadata.tokens {
        MetadataTokens::Required => HttpTokensState::Required,
        MetadataTokens::Optional => HttpTokensState::Optional,
    };
    InstanceMetadataOptionsRequest::builder()
        .http_tokens(tokens)
        .http_put_response_hop_limit(launch.metadata.hop_limit.into())
        .build()
}

/// A one-time request: a persistent one would launch a replacement for each terminated instance.
fn spot() -> InstanceMarketOptionsRequest {
    let options = SpotMarketOptions::builder()
        .spot_instance_type(SpotInstanceType::OneTime)
        .instance_interruption_behavior(InstanceInterruptionBehavior::Terminate);
    InstanceMarketOptionsRequest::builder()
        .market_type(MarketType::Spot)
        .spot_options(options.build())
        .build()
}

#[cfg(test)]
mod tests;
