//! Launch settings that only EC2 has.
//!
//! Owns their defaults and their validation. It must never hold a secret: a config is serialized and
//! logged as it is.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{InvalidValue, NetworkId, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

/// How instances are launched on EC2, in addition to the [`InstanceConfig`](fleetwright::InstanceConfig) of
/// each launch. A value of the launch itself wins over the default here.
///
/// Serde reads it from any format; unknown fields are refused. A provisioner [checks](Self::check) it when it
/// is created.
///
/// ```
/// use fleetwright_ec2::Ec2LaunchConfig;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config: Ec2LaunchConfig = serde_json::from_str(
///     r#"{
///         "subnets": { "eu-west-1a": "subnet-0a", "eu-west-1b": "subnet-0b" },
///         "security_groups": ["sg-0123"],
///         "key_pair": "ops",
///         "root_device": { "volume_type": "gp3", "encrypted": true },
///         "extra_volumes": [{ "device": "/dev/sdf", "size_gb": 100, "on_termination": "keep" }]
///     }"#,
/// )?;
/// config.check()?;
/// assert_eq!(config.metadata.hop_limit, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Ec2LaunchConfig {
    /// The subnet for each zone. A launch into a zone that is not listed gets the zone's default subnet.
    pub subnets: BTreeMap<Zone, NetworkId>,
    /// The subnet of launches without zone and network. Default: EC2 chooses a zone and its default
    /// subnet.
    pub default_subnet: Option<NetworkId>,
    /// The security groups of launches that name none. They must belong to the subnet's network.
    /// Default: the default group of the network.
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// The name of the key pair for SSH, which must exist in the region. Default: none.
    pub key_pair: Option<String>,
    /// The instance profile, by name or ARN. The caller needs `iam:PassRole` for its role. Default:
    /// none.
    pub instance_profile: Option<String>,
    /// Whether launches that leave it open get a public address. EC2 bills public addresses. Default:
    /// the setting of the subnet.
    pub public_address: Option<PublicAddress>,
    /// The root disk. Default: as the image describes it.
    pub root_device: RootDevice,
    /// Additional disks. They are deleted with the instance unless one is set to be kept. Default: none.
    pub extra_volumes: Vec<ExtraVolume>,
    /// The settings of the instance metadata service. Default: version 2 only, two hops.
    pub metadata: MetadataOptions,
    /// What a shutdown from inside the instance does. Default: stop.
    pub guest_shutdown: GuestShutdown,
}

/// The root disk. Its size comes from the launch, or else from the image. It is always deleted with
/// its instance.
///
/// ```
/// use fleetwright_ec2::Ec2LaunchConfig;
///
/// let mut launch = Ec2LaunchConfig::new();
/// launch.root_device.volume_type = Some("gp3".to_owned());
/// launch.root_device.encrypted = Some(true);
/// assert!(launch.check().is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RootDevice {
    /// The device name, such as `/dev/xvda`. It must be the image's own: EC2 adds a second disk under
    /// another name. Default: read from the image, once per image and handle.
    pub name: Option<String>,
    /// The volume type, such as `gp3`. Default: that of the image.
    pub volume_type: Option<String>,
    /// Whether it is encrypted. Default: the setting of the account.
    pub encrypted: Option<bool>,
}

impl RootDevice {
    /// Returns whether the root disk has a setting that belongs to the launch request.
    pub(crate) fn has_settings(&self) -> bool {
        self.volume_type.is_some() || self.encrypted.is_some()
    }
}

/// An additional disk.
///
/// ```
/// use fleetwright_ec2::{Ec2LaunchConfig, ExtraVolume, OnTermination};
///
/// let mut data = ExtraVolume::new("/dev/sdf", 100);
/// data.volume_type = Some("gp3".to_owned());
/// data.on_termination = OnTermination::Keep;
/// let mut launch = Ec2LaunchConfig::new();
/// launch.extra_volumes = vec![data];
/// assert!(launch.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExtraVolume {
    /// The device name, such as `/dev/sdf`. Unique among the additional disks.
    pub device: String,
    /// The size in GiB. At least 1.
    pub size_gb: u32,
    /// The volume type, such as `gp3`. Default: EC2's own default for new volumes.
    #[serde(default)]
    pub volume_type: Option<String>,
    /// Whether it is encrypted. Default: the setting of the account.
    #[serde(default)]
    pub encrypted: Option<bool>,
    /// What happens to it when the instance is terminated. Default: it is deleted.
    #[serde(default)]
    pub on_termination: OnTermination,
}

impl ExtraVolume {
    /// Creates a disk of `size_gb` GiB that is deleted with its instance.
    pub fn new(device: impl Into<String>, size_gb: u32) -> Self {
        Self {
            device: device.into(),
            size_gb,
            volume_type: None,
            encrypted: None,
            on_termination: OnTermination::Delete,
        }
    }
}

/// What happens to an additional disk when its instance is terminated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnTermination {
    /// It is deleted. EC2's own default is to keep it, which leaks disks.
    #[default]
    Delete,
    /// It is kept, and billed until somebody deletes it.
    Keep,
}

/// The settings of the instance metadata service.
///
/// ```
/// use fleetwright_ec2::Ec2LaunchConfig;
///
/// let mut launch = Ec2LaunchConfig::new();
/// launch.metadata.hop_limit = 1; // only the instance itself, and no container on it
/// assert!(launch.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MetadataOptions {
    /// Whether requests need a session token. Default: required.
    pub tokens: MetadataTokens,
    /// How many network hops a response may travel, 1 to 64. Default: 2, which reaches containers on
    /// the instance; 1 reaches only the instance itself.
    pub hop_limit: u8,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            tokens: MetadataTokens::Required,
            hop_limit: 2,
        }
    }
}

/// Which versions of the metadata service are available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataTokens {
    /// Only version 2, with session tokens. Programs that know only version 1 get no credentials.
    #[default]
    Required,
    /// Versions 1 and 2.
    Optional,
}

/// What a shutdown from inside the instance does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestShutdown {
    /// It stops the instance. Its disks are billed until it is terminated.
    #[default]
    Stop,
    /// It terminates the instance.
    Terminate,
}

impl Ec2LaunchConfig {
    /// Creates a config with the defaults. They are EC2's own, except that the metadata service requires
    /// version 2 and additional disks are deleted with their instance.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks every value, without a call to EC2: names that do not exist are found by the launch.
    ///
    /// # Errors
    ///
    /// The first invalid value, with the name of its field: an empty name, a hop limit that is not
    /// from 1 to 64, or an additional disk without device name or size, or with the device name of
    /// another one.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let names = [
            ("key_pair", self.key_pair.as_deref()),
            ("instance_profile", self.instance_profile.as_deref()),
            ("root_device.name", self.root_device.name.as_deref()),
            (
                "root_device.volume_type",
                self.root_device.volume_type.as_deref(),
            ),
        ];
        for (field, value) in names {
            if value.is_some_and(|text| text.trim().is_empty()) {
                return Err(InvalidValue::new(field, Problem::Empty));
            }
        }
        if !(1..=64).contains(&self.metadata.hop_limit) {
            let problem = Problem::Malformed {
                expected: "a number from 1 to 64",
            };
            return Err(InvalidValue::new("metadata.hop_limit", problem));
        }
        let mut devices = BTreeSet::new();
        for (index, volume) in self.extra_volumes.iter().enumerate() {
            let field = |name: &str| format!("extra_volumes[{index}].{name}");
            if volume.device.trim().is_empty() {
                return Err(InvalidValue::new(field("device"), Problem::Empty));
            }
            if volume.size_gb == 0 {
                return Err(InvalidValue::new(field("size_gb"), Problem::Zero));
            }
            if !devices.insert(&volume.device) {
                let other = volume.device.clone();
                return Err(InvalidValue::new(
                    field("device"),
                    Problem::Duplicate { other },
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
