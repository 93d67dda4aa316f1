//! The description of an instance to launch.
//!
//! Owns the provider-neutral config, its builder and its fingerprint. Every field's type is valid by
//! construction. [`InstanceConfig::check`] checks what depends on the cloud; each backend calls it
//! before it creates anything.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Capabilities, ImageId, InstanceType, InvalidValue, LaunchToken, Market, Placement, Problem,
    PublicAddress, Tags, UserData,
};

/// The UUID namespace of config fingerprints. Frozen: stored fingerprints must stay comparable.
const NAMESPACE: Uuid = Uuid::from_u128(0x8d4c_7a0e_62f1_4b9a_a3c5_90d1_7be8_24f6);

/// The description of an instance to launch, the same for every backend.
///
/// Create it with [`builder`](Self::builder) from plain values, or with [`new`](Self::new) from
/// checked ones. What only one cloud has (profiles, key pairs) belongs to that provider's options.
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
    /// The machine image. Required.
    pub image: ImageId,
    /// The instance type. Required.
    pub instance_type: InstanceType,
    /// Start-up data for the first boot. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// The tags. They are set in the call that creates the instance. Default: none.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The size of the root disk in GB. Default: the size of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_size_gb: Option<NonZeroU32>,
    /// The launch token. Without one, a launch whose response was lost cannot be replayed or looked
    /// up. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_token: Option<LaunchToken>,
    /// Zone, network, security groups, public address and market. Default: those of the provider.
    #[serde(default)]
    pub placement: Placement,
    /// The size of the batch that this launch is an item of.
    /// [`launch_instances`](crate::InstanceProvisioner::launch_instances) sets it when it launches
    /// items one by one, so that the token of a batch cannot be used for another count. Callers leave
    /// it unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
}

impl InstanceConfig {
    /// Creates a config with an image and an instance type, and no other field set.
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

    /// Starts a builder that takes plain values. [`ConfigBuilder::build`] returns the first validation
    /// error.
    pub fn builder(image: impl AsRef<str>, instance_type: impl AsRef<str>) -> ConfigBuilder {
        let config = ImageId::new(image)
            .and_then(|image| Ok(Self::new(image, InstanceType::new(instance_type)?)));
        ConfigBuilder { config }
    }

    /// Checks this config against the capabilities of a backend.
    ///
    /// # Errors
    /// [`InvalidValue`] with the field and the limit, if the tags or the user data exceed the limits
    /// or a placement field is not supported.
    pub fn check(&self, capabilities: &Capabilities) -> Result<(), InvalidValue> {
        capabilities.tags.check(&self.tags)?;
        if let Some(data) = &self.user_data {
            data.check(capabilities.max_user_data_bytes)?;
        }
        let supported = |field: &_| capabilities.placement.contains(field);
        match self
            .placement
            .fields_set()
            .into_iter()
            .find(|field| !supported(field))
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

    /// Returns a digest of this config, without its token, for a launch of `count` instances.
    ///
    /// It does not depend on the order in which fields were set, and is stable across processes and
    /// versions. Backends compare it to detect a token that is used with another config.
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
            // Literals, because a stored fingerprint must outlive a renamed variant.
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

/// Names and values, each prefixed with its length, so that different fields give different bytes.
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

/// A digest of a launch without its token. Equal configs have equal fingerprints.
///
/// A backend stores it with the instance under a reserved tag, to detect a token that is used with
/// another config.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright::{Fingerprint, InstanceConfig};
///
/// let config = |image| InstanceConfig::builder(image, "small").build().unwrap();
/// let one = NonZeroU32::MIN;
/// let stored = config("image-1").fingerprint(one).as_uuid();
/// assert_eq!(config("image-1").fingerprint(one), Fingerprint::from_uuid(stored));
/// assert_ne!(config("image-2").fingerprint(one), Fingerprint::from_uuid(stored));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Uuid);

impl Fingerprint {
    /// Returns the digest as a UUID, to store it.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Restores a digest that was stored.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

/// Builds an [`InstanceConfig`] from plain values.
///
/// Setters never fail. [`build`](Self::build) returns the first validation error.
///
/// ```
/// use fleetwright::{InstanceConfig, Market, Placement, Tags};
///
/// let mut placement = Placement::default();
/// placement.market = Some(Market::Spot);
/// let config = InstanceConfig::builder("image-7", "small")
///     .tags(&Tags::new().with("fleet", "blue")?)
///     .tag("slot", "1")
///     .user_data("#!/bin/sh\nexec runner\n")
///     .disk_size_gb(20)
///     .placement(placement)
///     .launch_token("blue/slot-1")
///     .build()?;
/// assert_eq!(config.tags.len(), 2);
///
/// let error = InstanceConfig::builder("image-7", "small").disk_size_gb(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "disk size: is zero; give at least 1 or leave the field out");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConfigBuilder {
    config: Result<InstanceConfig, InvalidValue>,
}

impl ConfigBuilder {
    /// Sets the start-up data for the first boot. At least one byte.
    pub fn user_data(self, bytes: impl AsRef<[u8]>) -> Self {
        self.set(|config| {
            config.user_data = Some(UserData::new(bytes)?);
            Ok(())
        })
    }

    /// Sets one tag. A later value of the same key replaces an earlier one.
    pub fn tag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|config| config.tags.insert(key, value).map(drop))
    }

    /// Sets all tags of `tags`, in addition to those that were set before.
    pub fn tags(self, tags: &Tags) -> Self {
        self.set(|config| {
            tags.iter()
                .try_for_each(|(key, value)| config.tags.insert(key, value).map(drop))
        })
    }

    /// Sets the size of the root disk in GB. At least 1.
    pub fn disk_size_gb(self, size: u32) -> Self {
        self.set(|config| {
            let size = NonZeroU32::new(size);
            config.disk_size_gb = Some(size.ok_or(InvalidValue::new("disk size", Problem::Zero))?);
            Ok(())
        })
    }

    /// Sets the launch token: 1 to 128 visible ASCII characters.
    pub fn launch_token(self, token: impl AsRef<str>) -> Self {
        self.set(|config| {
            config.launch_token = Some(LaunchToken::new(token)?);
            Ok(())
        })
    }

    /// Sets zone, network, security groups, public address and market.
    pub fn placement(self, placement: Placement) -> Self {
        self.set(|config| {
            config.placement = placement;
            Ok(())
        })
    }

    /// Returns the config.
    ///
    /// # Errors
    /// The first validation error of a value that was set.
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
