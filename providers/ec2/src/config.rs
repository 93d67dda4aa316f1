//! What only EC2 knows of a launch.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright::{InvalidValue, NetworkId, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

/// How instances are launched on EC2, beside what a launch itself says.
///
/// Loadable with serde from any format; [`check`](Self::check) is called when a provisioner is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Ec2LaunchConfig {
    /// The subnet for each zone. A launch that names a zone goes into its subnet; without one here, into
    /// the zone's default subnet.
    pub subnets: BTreeMap<Zone, NetworkId>,
    /// The subnet of launches that name neither zone nor network; unset means EC2's choice.
    pub default_subnet: Option<NetworkId>,
    /// The security groups of launches that name none.
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// The key pair for SSH.
    pub key_pair: Option<String>,
    /// The instance profile, by name or ARN.
    pub instance_profile: Option<String>,
    /// Whether launches that do not say get a public address; unset means the subnet's own setting.
    pub public_address: Option<PublicAddress>,
    /// The root disk.
    pub root_device: RootDevice,
    /// More disks, which live and die with the instance unless one says otherwise.
    pub extra_volumes: Vec<ExtraVolume>,
    /// The instance metadata service.
    pub metadata: MetadataOptions,
    /// What a shutdown from inside does.
    pub guest_shutdown: GuestShutdown,
}

/// The root disk. Its size is the launch's own, or the image's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RootDevice {
    /// Its device name; unset means that the image is asked, once for each.
    pub name: Option<String>,
    /// The volume type, such as `gp3`; unset means the image's.
    pub volume_type: Option<String>,
    /// Whether it is encrypted; unset means the account's default.
    pub encrypted: Option<bool>,
}

impl RootDevice {
    /// Whether anything is asked of the root disk beside its size.
    pub(crate) fn says_something(&self) -> bool {
        self.volume_type.is_some() || self.encrypted.is_some()
    }
}

/// A disk beside the root disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExtraVolume {
    /// The device name, such as `/dev/sdf`.
    pub device: String,
    /// The size.
    pub size_gb: u32,
    /// The volume type, such as `gp3`.
    #[serde(default)]
    pub volume_type: Option<String>,
    /// Whether it is encrypted; unset means the account's default.
    #[serde(default)]
    pub encrypted: Option<bool>,
    /// What becomes of it when the instance is terminated.
    #[serde(default)]
    pub at_the_end: VolumeEnd,
}

impl ExtraVolume {
    /// A disk of this size that goes with its instance.
    pub fn new(device: impl Into<String>, size_gb: u32) -> Self {
        Self {
            device: device.into(),
            size_gb,
            volume_type: None,
            encrypted: None,
            at_the_end: VolumeEnd::Deleted,
        }
    }
}

/// What becomes of an extra volume when its instance is terminated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeEnd {
    /// It goes too. EC2's own default is to keep it, which leaks.
    #[default]
    Deleted,
    /// It is kept, and paid for until somebody deletes it.
    Kept,
}

/// The instance metadata service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MetadataOptions {
    /// Whether only version 2, with session tokens, is served.
    pub tokens: MetadataTokens,
    /// How many hops an answer may travel: 2 reaches containers.
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

/// Which versions of the metadata service answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataTokens {
    /// Version 2 only.
    #[default]
    Required,
    /// Version 1 too.
    Optional,
}

/// What a shutdown from inside the instance does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestShutdown {
    /// The instance is stopped, and its disks are paid for until it is terminated.
    #[default]
    Stops,
    /// The instance is terminated.
    Terminates,
}

impl Ec2LaunchConfig {
    /// EC2's own defaults, but for version 2 of the metadata service.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks every value; the error names the first that is wrong.
    pub fn check(&self) -> Result<(), InvalidValue> {
        let named = [
            ("key_pair", self.key_pair.as_deref()),
            ("instance_profile", self.instance_profile.as_deref()),
            ("root_device.name", self.root_device.name.as_deref()),
            (
                "root_device.volume_type",
                self.root_device.volume_type.as_deref(),
            ),
        ];
        for (field, value) in named {
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
        for (at, volume) in self.extra_volumes.iter().enumerate() {
            let field = |name: &str| format!("extra_volumes[{at}].{name}");
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
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_before_anything_is_launched() {
        let mut config = Ec2LaunchConfig::new();
        config.check().unwrap();
        config.extra_volumes = vec![
            ExtraVolume::new("/dev/sdf", 9),
            ExtraVolume::new("/dev/sdf", 9),
        ];
        assert_eq!(
            config.check().unwrap_err().field(),
            "extra_volumes[1].device"
        );
        config.extra_volumes[1] = ExtraVolume::new("/dev/sdg", 0);
        assert_eq!(
            config.check().unwrap_err().field(),
            "extra_volumes[1].size_gb"
        );
        config.extra_volumes.clear();
        config.metadata.hop_limit = 0;
        assert_eq!(config.check().unwrap_err().field(), "metadata.hop_limit");
        config.metadata.hop_limit = 1;
        config.key_pair = Some(" ".to_owned());
        assert_eq!(config.check().unwrap_err().field(), "key_pair");
    }

    #[test]
    fn a_file_says_what_it_wants_and_a_typo_is_refused() {
        let text = r#"{"subnets":{"us-east-1a":"subnet-1"},"metadata":{"tokens":"optional"},
            "extra_volumes":[{"device":"/dev/sdf","size_gb":100,"at_the_end":"kept"}]}"#;
        let config: Ec2LaunchConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.metadata.tokens, MetadataTokens::Optional);
        assert_eq!(config.metadata.hop_limit, 2);
        assert_eq!(config.extra_volumes[0].at_the_end, VolumeEnd::Kept);
        let back = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<Ec2LaunchConfig>(&back).unwrap(),
            config
        );
        assert!(serde_json::from_str::<Ec2LaunchConfig>(r#"{"subnet":"subnet-1"}"#).is_err());
    }
}
