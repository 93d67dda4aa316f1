//! What to launch.
//!
//! Owns the provider-neutral description of an instance, its builder and its fingerprint. Every
//! field's type is valid by construction; what depends on the cloud is checked by
//! [`InstanceConfig::check`], which each backend calls before it creates anything.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Capabilities, ImageId, InstanceType, InvalidValue, LaunchToken, Market, Placement, Problem,
    PublicAddress, Tags, UserData,
};

/// The namespace of config fingerprints. Frozen: stored fingerprints must stay comparable.
const NAMESPACE: Uuid = Uuid::from_u128(0x8d4c_7a0e_62f1_4b9a_a3c5_90d1_7be8_24f6);

/// How to launch an instance, in words that every backend understands.
///
/// ```
/// use fleetwright::InstanceConfig;
///
/// let config = InstanceConfig::builder("image-7", "small")
///     .tag("ManagedBy", "my-fleet")
///     .disk_size_gb(20)
///     .launch_token("runner-17/attempt-1")
///     .build()?;
/// assert_eq!(config.image.as_str(), "image-7");
///
/// let error = InstanceConfig::builder("image-7", "").build().unwrap_err();
/// assert_eq!(error.field(), "instance type");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstanceConfig {
    /// The machine image.
    pub image: ImageId,
    /// The size of machine.
    pub instance_type: InstanceType,
    /// What the instance runs at its first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// Tags, set in the very call that creates the instance.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The root disk's size; unset means the image's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_size_gb: Option<NonZeroU32>,
    /// The name of this intent; without one, a lost reply cannot be settled by a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_token: Option<LaunchToken>,
    /// Where it goes.
    #[serde(default)]
    pub placement: Placement,
    /// How many instances the batch has that this launch is one item of. Set by
    /// [`launch_instances`](crate::InstanceProvisioner::launch_instances) where it launches one by
    /// one, so that the token of a batch cannot be used for another count; leave it unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
}

impl InstanceConfig {
    /// The least that can be launched: an image and a type.
    pub fn new(image: ImageId, instance_type: InstanceType) -> Self {
        Self {
            image,
            instance_type,
            user_data: None,
            tags: Tags::new(),
            disk_size_gb: None,
            launch_token: None,
            placement: Placement::default(),
            batch: None,
        }
    }

    /// Begins a config from plain values; [`ConfigBuilder::build`] checks them.
    pub fn builder(image: impl AsRef<str>, instance_type: impl AsRef<str>) -> ConfigBuilder {
        let config = ImageId::new(image)
            .and_then(|image| Ok(Self::new(image, InstanceType::new(instance_type)?)));
        ConfigBuilder { config }
    }

    /// Checks this config against what a backend declares. The error names the field and the limit.
    pub fn check(&self, capabilities: &Capabilities) -> Result<(), InvalidValue> {
        capabilities.tags.check(&self.tags)?;
        if let Some(data) = &self.user_data {
            data.check(capabilities.max_user_data_bytes)?;
        }
        let offered = |field: &_| capabilities.placement.contains(field);
        match self
            .placement
            .fields_set()
            .into_iter()
            .find(|field| !offered(field))
        {
            Some(field) => {
                let instead = "leave it unset".to_owned();
                Err(InvalidValue::new(
                    field.path(),
                    Problem::NotOffered { instead },
                ))
            }
            None => Ok(()),
        }
    }

    /// What tells this config from another one, for a launch of `count` instances: everything but
    /// the token, whatever the order in which it was given. Stable across processes and versions.
    pub fn fingerprint(&self, count: NonZeroU32) -> Fingerprint {
        let mut text = Fields::default();
        text.put("image", self.image.as_str());
        text.put("instance_type", self.instance_type.as_str());
        if let Some(data) = &self.user_data {
            text.put_bytes("user_data", data.as_bytes());
        }
        for (key, value) in &self.tags {
            text.put("tag", key);
            text.put("value", value);
        }
        if let Some(size) = self.disk_size_gb {
            text.put("disk_size_gb", &size.to_string());
        }
        self.fingerprint_placement(&mut text);
        if let Some(size) = self.batch {
            text.put("batch", &size.to_string());
        }
        text.put("count", &count.to_string());
        Fingerprint(Uuid::new_v5(&NAMESPACE, &text.0))
    }

    fn fingerprint_placement(&self, text: &mut Fields) {
        let Placement {
            zone,
            network,
            security_groups,
            public_address,
            market,
        } = &self.placement;
        if let Some(zone) = zone {
            text.put("zone", zone.as_str());
        }
        if let Some(network) = network {
            text.put("network", network.as_str());
        }
        for group in security_groups {
            text.put("security_group", group.as_str());
        }
        if let Some(public_address) = public_address {
            // Written out, because a stored fingerprint must outlive a renamed variant.
            text.put(
                "public_address",
                match public_address {
                    PublicAddress::Assigned => "Assigned",
                    PublicAddress::Absent => "Absent",
                },
            );
        }
        if let Some(market) = market {
            text.put(
                "market",
                match market {
                    Market::OnDemand => "OnDemand",
                    Market::Spot => "Spot",
                },
            );
        }
    }
}

/// Names and values, each with its length, so that no two lists of fields give the same bytes.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn put(&mut self, name: &str, value: &str) {
        self.put_bytes(name, value.as_bytes());
    }

    fn put_bytes(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), value] {
            self.0.extend_from_slice(&(part.len() as u64).to_be_bytes());
            self.0.extend_from_slice(part);
        }
    }
}

/// A digest of everything a launch asks for but its token. Equal configs have equal fingerprints.
///
/// A backend keeps it with the instance under a reserved tag, so that "same token, other config" is
/// told on every cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Uuid);

impl Fingerprint {
    /// The digest as a UUID, to be stored.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// A digest that was stored.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

/// Builds an [`InstanceConfig`] from plain values, and answers the first one that is wrong.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConfigBuilder {
    config: Result<InstanceConfig, InvalidValue>,
}

impl ConfigBuilder {
    /// Sets what the instance runs at its first boot.
    pub fn user_data(self, bytes: impl AsRef<[u8]>) -> Self {
        self.set(|config| {
            config.user_data = Some(UserData::new(bytes)?);
            Ok(())
        })
    }

    /// Sets one tag.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|config| config.tags.insert(key, value).map(drop))
    }

    /// Sets all tags of `tags`.
    pub fn tags(self, tags: &Tags) -> Self {
        self.set(|config| {
            tags.iter()
                .try_for_each(|(key, value)| config.tags.insert(key, value).map(drop))
        })
    }

    /// Sets the root disk's size.
    pub fn disk_size_gb(self, size: u32) -> Self {
        self.set(|config| {
            let size = NonZeroU32::new(size);
            config.disk_size_gb = Some(size.ok_or(InvalidValue::new("disk size", Problem::Zero))?);
            Ok(())
        })
    }

    /// Names the launch.
    pub fn launch_token(self, token: impl AsRef<str>) -> Self {
        self.set(|config| {
            config.launch_token = Some(LaunchToken::new(token)?);
            Ok(())
        })
    }

    /// Says where the instance goes.
    pub fn placement(self, placement: Placement) -> Self {
        self.set(|config| {
            config.placement = placement;
            Ok(())
        })
    }

    /// The config, or the first value that was wrong.
    pub fn build(self) -> Result<InstanceConfig, InvalidValue> {
        self.config
    }

    fn set(self, change: impl FnOnce(&mut InstanceConfig) -> Result<(), InvalidValue>) -> Self {
        let config = self
            .config
            .and_then(|mut config| change(&mut config).map(|()| config));
        Self { config }
    }
}

#[cfg(test)]
mod tests;
