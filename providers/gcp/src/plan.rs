//! The request of a launch. Pure.
//!
//! Owns how an instance config and the launch config become one request. It adds nothing that
//! neither requests, except that every disk is deleted with its instance, so that a launch leaks
//! nothing.
//!
//! Precedence: a value of the instance config overrides that of the launch config, which overrides
//! Compute Engine's default. Tags of the launch override labels of the launch config by key. The
//! security groups of the launch replace the network tags of the launch config as a whole.
//!
//! Metadata of every instance:
//!
//! | key | value |
//! | --- | --- |
//! | `fleetwright-config` | the fingerprint |
//! | `fleetwright-token` | the owner mark, a digest of the launch token |
//! | `fleetwright-image` | the image as the launch named it |
//! | `fleetwright-tags` | tags that are not valid labels |
//! | `user-data` or `startup-script` | the user data |

use std::{collections::BTreeMap, num::NonZeroU32};

use fleetwright::{
    Fingerprint, InstanceConfig, InvalidValue, LaunchToken, Market, NetworkId, Problem,
    PublicAddress, Zone,
};
use google_cloud_compute_v1::model::{
    AcceleratorConfig, AccessConfig, AttachedDisk, AttachedDiskInitializeParams,
    BulkInsertInstanceResource, BulkInsertInstanceResourcePerInstanceProperties, Instance,
    InstanceProperties, Metadata, NetworkInterface, Scheduling, ServiceAccount as NativeAccount,
    ShieldedInstanceConfig, Tags, access_config, attached_disk,
    scheduling::{InstanceTerminationAction, OnHostMaintenance, ProvisioningModel},
};

use crate::{
    GcpLaunchConfig,
    address::{self, last_part, region_of},
    config::{HostMaintenance, SpotEnd, check_network_tag},
    labels, metadata,
};

/// The request of a launch, without the name of the instance.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The zone of all instances of the launch.
    pub(crate) zone: Zone,
    /// The subnetwork or network, for errors about its addresses.
    pub(crate) network: Option<NetworkId>,
    /// The fingerprint of config and count.
    pub(crate) fingerprint: Fingerprint,
    /// The owner mark: the digest of the launch token.
    pub(crate) owner: Option<String>,
    /// The request body without a name.
    body: Instance,
}

impl Plan {
    /// Creates the request for `count` instances of `config`.
    ///
    /// # Errors
    ///
    /// The first value that Compute Engine could not accept.
    pub(crate) fn new(
        launch: &GcpLaunchConfig,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Self, InvalidValue> {
        let zone = zone(launch, config)?;
        let fingerprint = config.fingerprint(count);
        let owner = config.launch_token.as_ref().map(owner);
        let tags = labels::encode(&config.tags);
        let labels = all_labels(launch, config, tags.labels);
        let (card, network) = network_card(launch, config, &zone);
        let mut body = Instance::new()
            .set_machine_type(format!(
                "zones/{zone}/machineTypes/{}",
                config.instance_type
            ))
            .set_disks(disks(launch, config, &zone, &labels))
            .set_labels(labels)
            .set_metadata(items(
                launch,
                config,
                fingerprint,
                owner.as_deref(),
                tags.originals,
            )?)
            .set_network_interfaces([card])
            .set_tags(Tags::new().set_items(network_tags(launch, config)?));
        body.scheduling = scheduling(launch, config);
        body.service_accounts = service_accounts(launch);
        body.shielded_instance_config = shielded(launch);
        body.guest_accelerators = accelerators(launch, &zone);
        Ok(Self {
            zone,
            network,
            fingerprint,
            owner,
            body,
        })
    }

    /// Returns the request for the instance with this name.
    pub(crate) fn named(&self, name: &str) -> Instance {
        self.body.clone().set_name(name)
    }

    /// Returns the request for instances with these names, of which as many are created as possible.
    ///
    /// It takes types by their bare names (API reference, `InstanceProperties`: "This field only accepts a machine
    /// type name"), and an insert takes paths.
    pub(crate) fn bulk(&self, names: &[String]) -> BulkInsertInstanceResource {
        let mut body = self.body.clone();
        let bare = |path: &mut Option<String>| {
            if let Some(path) = path {
                *path = last_part(path).to_owned();
            }
        };
        bare(&mut body.machine_type);
        let params = body.disks.iter_mut();
        for params in params.filter_map(|disk| disk.initialize_params.as_mut()) {
            bare(&mut params.disk_type);
        }
        for accelerator in &mut body.guest_accelerators {
            bare(&mut accelerator.accelerator_type);
        }
        let mut properties = InstanceProperties::new();
        properties.machine_type = body.machine_type;
        properties.labels = body.labels;
        properties.metadata = body.metadata;
        properties.disks = body.disks;
        properties.network_interfaces = body.network_interfaces;
        properties.tags = body.tags;
        properties.scheduling = body.scheduling;
        properties.service_accounts = body.service_accounts;
        properties.shielded_instance_config = body.shielded_instance_config;
        properties.guest_accelerators = body.guest_accelerators;
        let named = |name: &String| {
            let nothing = BulkInsertInstanceResourcePerInstanceProperties::new();
            (name.clone(), nothing)
        };
        BulkInsertInstanceResource::new()
            .set_count(i64::try_from(names.len()).unwrap_or(i64::MAX))
            .set_min_count(1)
            .set_per_instance_properties(names.iter().map(named))
            .set_instance_properties(properties)
    }
}

/// Returns the owner mark of a token. It does not reveal the token.
pub(crate) fn owner(token: &LaunchToken) -> String {
    token.derive("gcp-owner").to_string()
}

/// Returns the path of an image. A name without a path is an image of the project.
pub(crate) fn image_path(project: &str, image: &str) -> String {
    if image.contains('/') {
        image.to_owned()
    } else {
        format!("projects/{project}/global/images/{image}")
    }
}

/// Returns the zone of a launch, which must be one of the configured zones.
fn zone(launch: &GcpLaunchConfig, config: &InstanceConfig) -> Result<Zone, InvalidValue> {
    let zone = config.placement.zone.as_ref().or(launch.zones.first());
    let configured = zone.filter(|zone| launch.zones.contains(zone));
    configured.cloned().ok_or_else(|| {
        let zones: Vec<_> = launch.zones.iter().map(ToString::to_string).collect();
        let instead = format!("use one of the configured zones: {}", zones.join(", "));
        InvalidValue::new("placement.zone", Problem::NotOffered { instead })
    })
}

/// Returns the labels of the launch config, and those of the tags of the launch.
fn all_labels(
    launch: &GcpLaunchConfig,
    config: &InstanceConfig,
    of_tags: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut labels = launch.labels.clone();
    // A tag of the launch overrides a label, also if it is stored under a placeholder.
    labels.retain(|key, _| config.tags.get(key).is_none());
    labels.extend(of_tags);
    labels
}

/// Returns the metadata: marks, image, the tags that are not labels, user data and that of the launch config.
fn items(
    launch: &GcpLaunchConfig,
    config: &InstanceConfig,
    fingerprint: Fingerprint,
    owner: Option<&str>,
    originals: Option<String>,
) -> Result<Metadata, InvalidValue> {
    let mark = fingerprint.as_uuid().to_string();
    let mut items = vec![
        metadata::item(metadata::CONFIG, &mark),
        metadata::item(metadata::IMAGE, config.image.as_str()),
    ];
    items.extend(owner.map(|owner| metadata::item(metadata::OWNER, owner)));
    items.extend(originals.map(|text| metadata::item(metadata::TAGS, &text)));
    if let Some(data) = &config.user_data {
        items.extend(metadata::user_data(data, launch.user_data)?);
    }
    items.extend(
        launch
            .metadata
            .iter()
            .map(|(key, value)| metadata::item(key, value)),
    );
    Ok(Metadata::new().set_items(items))
}

/// Returns the boot disk and the local SSDs. All are deleted with the instance.
/// The boot disk has the labels of the instance, so that it can be found by tag.
fn disks(
    launch: &GcpLaunchConfig,
    config: &InstanceConfig,
    zone: &Zone,
    labels: &BTreeMap<String, String>,
) -> Vec<AttachedDisk> {
    let disk_type = |name: &str| format!("zones/{zone}/diskTypes/{name}");
    let boot = AttachedDiskInitializeParams::new()
        .set_source_image(image_path(&launch.project, config.image.as_str()))
        .set_or_clear_disk_size_gb(config.disk_size_gb.map(|size| i64::from(size.get())))
        .set_or_clear_disk_type(launch.disk_type.as_deref().map(disk_type))
        .set_labels(labels.clone());
    let boot = AttachedDisk::new()
        .set_boot(true)
        .set_auto_delete(true)
        .set_initialize_params(boot);
    let ssd = || {
        let fresh = AttachedDiskInitializeParams::new().set_disk_type(disk_type("local-ssd"));
        AttachedDisk::new()
            .set_type(attached_disk::Type::Scratch)
            .set_interface(attached_disk::Interface::Nvme)
            .set_auto_delete(true)
            .set_initialize_params(fresh)
    };
    let ssds = (0..launch.local_ssds).map(|_| ssd());
    std::iter::once(boot).chain(ssds).collect()
}

/// Returns the network interface, and the subnetwork or network that its address comes from.
///
/// A path with `/networks/` is a network, anything else a subnetwork; names without a path are
/// completed with the region of the zone.
fn network_card(
    launch: &GcpLaunchConfig,
    config: &InstanceConfig,
    zone: &Zone,
) -> (NetworkInterface, Option<NetworkId>) {
    let requested = config
        .placement
        .network
        .as_ref()
        .map(|network| network.as_str());
    let subnetwork = requested.or(launch.subnetwork.as_deref());
    let is_network = |path: &str| path.contains("/networks/");
    let (network, subnetwork) = match subnetwork {
        Some(path) if is_network(path) => (Some(path), None),
        Some(path) => (None, Some(path)),
        None => (launch.network.as_deref(), None),
    };
    let subnetwork = subnetwork.map(|name| {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("regions/{}/subnetworks/{name}", region_of(zone))
        }
    });
    let network = network.map(|name| {
        if name.contains('/') {
            name.to_owned()
        } else {
            format!("global/networks/{name}")
        }
    });
    let counted = subnetwork.as_ref().or(network.as_ref());
    let counted = counted.and_then(|path| NetworkId::new(path).ok());
    // Without both, the request must name the default network.
    let default =
        (network.is_none() && subnetwork.is_none()).then(|| "global/networks/default".to_owned());
    let outside = config
        .placement
        .public_address
        .unwrap_or(launch.public_address);
    let outside = (outside == PublicAddress::Assigned).then(|| {
        AccessConfig::new()
            .set_name("External NAT")
            .set_type(access_config::Type::OneToOneNat)
    });
    let card = NetworkInterface::new()
        .set_or_clear_network(network.or(default))
        .set_or_clear_subnetwork(subnetwork)
        .set_access_configs(outside);
    (card, counted)
}

/// Returns the network tags, which firewall rules select instances by.
fn network_tags(
    launch: &GcpLaunchConfig,
    config: &InstanceConfig,
) -> Result<Vec<String>, InvalidValue> {
    let requested = &config.placement.security_groups;
    for tag in requested {
        check_network_tag("placement.security_groups", tag)?;
    }
    let tags = if requested.is_empty() {
        &launch.network_tags
    } else {
        requested
    };
    Ok(tags.iter().map(ToString::to_string).collect())
}

/// Returns the scheduling if it differs from Compute Engine's default. Spot instances and those
/// with accelerators cannot move to another host, and spot instances are not restarted
/// automatically.
fn scheduling(launch: &GcpLaunchConfig, config: &InstanceConfig) -> Option<Scheduling> {
    let spot = config.placement.market == Some(Market::Spot);
    let cannot_move = spot || !launch.accelerators.is_empty();
    let chosen = launch.host_maintenance.map(|choice| match choice {
        HostMaintenance::Migrates => OnHostMaintenance::Migrate,
        HostMaintenance::Stops => OnHostMaintenance::Terminate,
    });
    let maintenance = if cannot_move {
        Some(OnHostMaintenance::Terminate)
    } else {
        chosen
    };
    if !spot && maintenance.is_none() {
        return None;
    }
    let scheduling = Scheduling::new().set_or_clear_on_host_maintenance(maintenance);
    if !spot {
        return Some(scheduling);
    }
    let end = match launch.spot_end {
        SpotEnd::Deleted => InstanceTerminationAction::Delete,
        SpotEnd::Stopped => InstanceTerminationAction::Stop,
    };
    let scheduling = scheduling.set_provisioning_model(ProvisioningModel::Spot);
    Some(
        scheduling
            .set_instance_termination_action(end)
            .set_automatic_restart(false),
    )
}

/// Returns the service account as a list of at most one.
fn service_accounts(launch: &GcpLaunchConfig) -> Vec<NativeAccount> {
    let account = launch.service_account.as_ref();
    let native = account.map(|account| {
        let scopes = account.scopes.iter().cloned();
        NativeAccount::new()
            .set_email(&account.email)
            .set_scopes(scopes)
    });
    native.into_iter().collect()
}

/// Returns the shielded options if any is set.
fn shielded(launch: &GcpLaunchConfig) -> Option<ShieldedInstanceConfig> {
    let options = &launch.shielded;
    let settings = [
        options.secure_boot,
        options.vtpm,
        options.integrity_monitoring,
    ];
    settings.iter().any(Option::is_some).then(|| {
        ShieldedInstanceConfig::new()
            .set_or_clear_enable_secure_boot(options.secure_boot)
            .set_or_clear_enable_vtpm(options.vtpm)
            .set_or_clear_enable_integrity_monitoring(options.integrity_monitoring)
    })
}

/// Returns the accelerators with their types as paths of the zone.
fn accelerators(launch: &GcpLaunchConfig, zone: &Zone) -> Vec<AcceleratorConfig> {
    let native = |(kind, count): (&String, &u32)| {
        let path = format!("zones/{zone}/acceleratorTypes/{}", address::last_part(kind));
        AcceleratorConfig::new()
            .set_accelerator_type(path)
            .set_accelerator_count(i32::try_from(*count).unwrap_or(i32::MAX))
    };
    launch.accelerators.iter().map(native).collect()
}

#[cfg(test)]
mod tests;
