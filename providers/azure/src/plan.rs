//! The request of a launch. Pure.
//!
//! Owns how an instance config and the launch config become one request. A value of the instance
//! config overrides that of the launch config, which overrides Azure's default.
//!
//! An image is one of:
//!
//! - `publisher:offer:sku:version`, a marketplace image; the version can be `latest`;
//! - `/subscriptions/...`, an image or a gallery version of this or another subscription;
//! - `/SharedGalleries/...` or `/CommunityGalleries/...`.

use std::num::NonZeroU32;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use fleetwright::{
    Fingerprint, InstanceConfig, InvalidValue, Market, NetworkId, Problem, PublicAddress, Zone,
};

use crate::{
    AzureLaunchConfig, BootDiagnostics, SystemIdentity, UserDataAs, address,
    machine::{MachineSpec, Source},
    tags,
};

/// The largest system disk in GiB. "Introduction to Azure managed disks", Microsoft.
const MAX_SYSTEM_DISK_GIB: i32 = 4095;

/// The request that all machines of one launch share.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The request, without the name.
    pub(crate) spec: MachineSpec,
    /// The zone, for the result and for errors.
    pub(crate) zone: Option<Zone>,
    /// The subnet as it was named, for errors about its addresses.
    pub(crate) network: NetworkId,
    /// The fingerprint of config and count.
    pub(crate) fingerprint: Fingerprint,
    /// The owner mark: the digest of the launch token.
    pub(crate) owner: Option<String>,
}

impl Plan {
    /// Creates the request for `count` machines of `config`.
    ///
    /// # Errors
    ///
    /// The first value that Azure could not accept.
    pub(crate) fn new(
        launch: &AzureLaunchConfig,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Self, InvalidValue> {
        let placement = &config.placement;
        let network = placement.network.clone();
        let network = network.unwrap_or_else(|| launch.subnet.clone());
        let subnet = address::subnet(launch, &network).ok_or_else(|| {
            let expected = "the resource id of a subnet, or network/subnet in the resource group";
            InvalidValue::new("placement.network", Problem::Malformed { expected })
        })?;
        let zone = placement.zone.clone().or_else(|| launch.zone.clone());
        let fingerprint = config.fingerprint(count);
        let token = config.launch_token.as_ref();
        let data = config.user_data.as_ref();
        let data = data.map(|data| BASE64_STANDARD.encode(data.as_bytes()));
        let (custom_data, user_data) = match launch.user_data {
            UserDataAs::CustomData => (data, None),
            UserDataAs::UserData => (None, data),
        };
        let spot = placement.market == Some(Market::Spot);
        let public = placement.public_address.unwrap_or(launch.public_address);
        Ok(Self {
            spec: MachineSpec {
                location: launch.location.clone(),
                zone: zone.as_ref().map(Zone::to_string),
                size: config.instance_type.to_string(),
                source: source(config.image.as_str())?,
                disk_gib: disk_gib(config.disk_size_gb)?,
                disk_type: launch.os_disk_type.clone(),
                system_disk: launch.system_disk,
                data_disks: launch.data_disks.clone(),
                boot_security: launch.boot_security,
                accelerated_networking: launch.accelerated_networking,
                admin_user: launch.admin_user.clone(),
                ssh_public_key: launch.ssh_public_key.clone(),
                custom_data,
                user_data,
                subnet,
                security_group: security_group(launch, config)?,
                public_address: public == PublicAddress::Assigned,
                spot: spot.then_some(launch.eviction),
                system_identity: launch.system_identity == SystemIdentity::Assigned,
                user_identities: launch.user_identities.iter().cloned().collect(),
                plan: launch.plan.clone(),
                console: launch.boot_diagnostics == BootDiagnostics::Kept,
                tags: tags::encode(
                    &launch.tags,
                    &config.tags,
                    token.map(|token| (token, fingerprint, count)),
                ),
            },
            zone,
            network,
            fingerprint,
            owner: token.map(tags::owner),
        })
    }
}

/// Parses the name of an image.
fn source(text: &str) -> Result<Source, InvalidValue> {
    let lowercase = address::lowercase(text);
    if lowercase.starts_with("/sharedgalleries/") {
        return Ok(Source::SharedGallery(text.to_owned()));
    }
    if lowercase.starts_with("/communitygalleries/") {
        return Ok(Source::CommunityGallery(text.to_owned()));
    }
    if lowercase.starts_with("/subscriptions/") {
        return Ok(Source::Resource(text.to_owned()));
    }
    let parts: Vec<_> = text.split(':').collect();
    match parts[..] {
        [publisher, offer, sku, version] if parts.iter().all(|part| !part.is_empty()) => {
            Ok(Source::Published {
                publisher: publisher.to_owned(),
                offer: offer.to_owned(),
                sku: sku.to_owned(),
                version: version.to_owned(),
            })
        }
        _ => {
            let expected = "publisher:offer:sku:version, or the resource id of an image";
            Err(InvalidValue::new("image", Problem::Malformed { expected }))
        }
    }
}

/// Returns the size of the system disk, which Azure limits.
fn disk_gib(wanted: Option<NonZeroU32>) -> Result<Option<i32>, InvalidValue> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let size = i32::try_from(wanted.get()).ok();
    let size = size.filter(|size| *size <= MAX_SYSTEM_DISK_GIB);
    let too_large = || {
        let instead = format!("a system disk of Azure has at most {MAX_SYSTEM_DISK_GIB} GiB");
        InvalidValue::new("disk_size_gb", Problem::NotOffered { instead })
    };
    size.ok_or_else(too_large).map(Some)
}

/// Returns the network security group. An interface has at most one.
fn security_group(
    launch: &AzureLaunchConfig,
    config: &InstanceConfig,
) -> Result<Option<String>, InvalidValue> {
    let field = "placement.security_groups";
    let mut wanted = config.placement.security_groups.iter();
    let (first, more) = (wanted.next(), wanted.next());
    if more.is_some() {
        let instead =
            "an Azure machine has at most one network security group: name one".to_owned();
        return Err(InvalidValue::new(field, Problem::NotOffered { instead }));
    }
    let Some(group) = first.or(launch.network_security_group.as_ref()) else {
        return Ok(None);
    };
    let path = address::security_group(launch, group).ok_or_else(|| {
        let expected =
            "the resource id of a network security group, or its name in the resource group";
        InvalidValue::new(field, Problem::Malformed { expected })
    });
    path.map(Some)
}

#[cfg(test)]
mod tests;
