//! The alternatives of a launch.
//!
//! Owns what an alternative changes, and the configs that follow from a policy. It decides nothing about
//! errors.

use std::time::Duration;

use crate::{
    ImageId, InstanceConfig, InstanceType, InvalidValue, Market, NetworkId, Result, Tags, Zone,
};

/// What to launch instead. Fields that are not set keep the value of the config.
///
/// ```
/// use fleetwright::{Market, layer::Alternative};
///
/// let alternative = Alternative::new("spot-b").zone("zone-b")?.market(Market::Spot);
/// assert_eq!(alternative.name(), "spot-b");
///
/// // Another architecture needs its own image.
/// let arm = Alternative::new("arm64").instance_type("m7g.large")?.image("image-arm64")?;
/// assert_eq!(arm.name(), "arm64");
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    name: String,
    image: Option<ImageId>,
    instance_type: Option<InstanceType>,
    zone: Option<Zone>,
    network: Option<NetworkId>,
    market: Option<Market>,
}

impl Alternative {
    /// Creates an alternative that changes nothing. The name appears in events and, if the policy
    /// [says so](FallbackPolicy::record_in_tag), in a tag.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            image: None,
            instance_type: None,
            zone: None,
            network: None,
            market: None,
        }
    }

    /// Sets the image, for example that of another architecture.
    pub fn image(mut self, id: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.image = Some(ImageId::new(id)?);
        Ok(self)
    }

    /// Sets the instance type. A type of another architecture needs an [image](Self::image) of that
    /// architecture.
    pub fn instance_type(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.instance_type = Some(InstanceType::new(name)?);
        Ok(self)
    }

    /// Sets the zone.
    pub fn zone(mut self, name: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.zone = Some(Zone::new(name)?);
        Ok(self)
    }

    /// Sets the network or subnet.
    pub fn network(mut self, id: impl AsRef<str>) -> Result<Self, InvalidValue> {
        self.network = Some(NetworkId::new(id)?);
        Ok(self)
    }

    /// Sets the market.
    #[must_use]
    pub const fn market(mut self, market: Market) -> Self {
        self.market = Some(market);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, config: &InstanceConfig) -> InstanceConfig {
        let mut config = config.clone();
        if let Some(image) = &self.image {
            config.image = image.clone();
        }
        if let Some(instance_type) = &self.instance_type {
            config.instance_type = instance_type.clone();
        }
        if let Some(zone) = &self.zone {
            config.placement.zone = Some(zone.clone());
        }
        if let Some(network) = &self.network {
            config.placement.network = Some(network.clone());
        }
        if self.market.is_some() {
            config.placement.market = self.market;
        }
        config
    }
}

/// The alternatives of a launch, and how long a shortage is remembered.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Market, layer::{Alternative, FallbackPolicy}};
///
/// let policy = FallbackPolicy::new([
///     Alternative::new("as requested"),
///     Alternative::new("zone-b").zone("zone-b")?,
///     Alternative::new("spot").market(Market::Spot),
/// ])
/// .remember_for(Duration::from_secs(60))
/// .record_in_tag("offering")?;
/// # Ok::<(), fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct FallbackPolicy {
    alternatives: Vec<Alternative>,
    pub(super) remember: Duration,
    pub(super) follow: Option<Duration>,
    tag: Option<String>,
}

impl FallbackPolicy {
    /// Tries `alternatives` in this order. A shortage is remembered for 3 minutes.
    ///
    /// Only the alternatives are tried: start with one that changes nothing to try the config itself
    /// first. Without any alternative, the config is launched as it is.
    pub fn new(alternatives: impl IntoIterator<Item = Alternative>) -> Self {
        Self {
            alternatives: alternatives.into_iter().collect(),
            remember: Duration::from_secs(180),
            follow: None,
            tag: None,
        }
    }

    /// Sets how long an offering without capacity or quota is skipped. Zero never skips one.
    #[must_use]
    pub const fn remember_for(mut self, time: Duration) -> Self {
        self.remember = time;
        self
    }

    /// Sets how long a launch is followed for a late failure, after the backend returned it as pending.
    /// The consistency window is added, because reads show the failure late. Zero returns it at once, and
    /// a later failure ends the launch. Default: as long as the backend
    /// [declares](crate::Capabilities::late_failures).
    #[must_use]
    pub const fn follow_for(mut self, time: Duration) -> Self {
        self.follow = Some(time);
        self
    }

    /// Tags each instance with the name of its alternative under `key`, in the call that launches it.
    ///
    /// # Errors
    /// [`InvalidValue`] if the key is reserved or empty. The names must be valid tag values of the
    /// cloud, which the backend checks at the launch.
    pub fn record_in_tag(mut self, key: impl Into<String>) -> Result<Self, InvalidValue> {
        let key = key.into();
        for alternative in &self.alternatives {
            Tags::new().with(key.as_str(), alternative.name())?;
        }
        self.tag = Some(key);
        Ok(self)
    }

    /// Returns the configs to try with the names of their alternatives, without duplicates.
    pub(super) fn configs(&self, config: &InstanceConfig) -> Vec<(&str, InstanceConfig)> {
        let mut tried: Vec<InstanceConfig> = Vec::new();
        let mut configs = Vec::new();
        for alternative in &self.alternatives {
            let mut other = alternative.apply(config);
            if tried.contains(&other) {
                continue;
            }
            tried.push(other.clone());
            if let Some(key) = &self.tag {
                // Key and value were checked when the policy was created.
                let _ = other.tags.insert(key.as_str(), alternative.name());
            }
            configs.push((alternative.name(), other));
        }
        if configs.is_empty() {
            configs.push(("as requested", config.clone()));
        }
        configs
    }
}
