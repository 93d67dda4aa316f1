//! The part of a launch that only Compute Engine knows.
//!
//! Owns the launch config and its validation. It sends nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use fleetwright::{InvalidValue, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

use crate::{address, labels, metadata};

/// How instances are launched on Compute Engine, beside what an
/// [`InstanceConfig`](fleetwright::InstanceConfig) says.
///
/// Can be loaded with serde from any format; unknown fields are refused. A provisioner
/// [checks](Self::check) it when it is created.
///
/// ```
/// use fleetwright_gcp::{GcpLaunchConfig, ServiceAccount, fleetwright::Zone};
///
/// let zones = ["us-central1-a", "us-central1-b"].map(|zone| Zone::new(zone).unwrap());
/// let mut launch = GcpLaunchConfig::new("my-project", zones);
/// launch.subnetwork = Some("fleet".to_owned());
/// launch.service_account = Some(ServiceAccount::new("ci@my-project.iam.gserviceaccount.com"));
/// launch.disk_type = Some("pd-balanced".to_owned());
/// assert!(launch.check().is_ok());
///
/// launch.zones.clear();
/// assert_eq!(launch.check().unwrap_err().field(), "zones");
/// ```
///
/// The required fields are those of [`new`](Self::new). As JSON:
///
/// ```
/// # use fleetwright_gcp::GcpLaunchConfig;
/// let launch: GcpLaunchConfig = serde_json::from_str(r#"{
///     "project": "my-project",
///     "zones": ["us-central1-a", "us-central1-b"],
///     "subnetwork": "fleet",
///     "service_account": {"email": "ci@my-project.iam.gserviceaccount.com"},
///     "shielded": {"secure_boot": true},
///     "spot_end": "stopped",
///     "user_data": "startup-script",
///     "labels": {"team": "blue"}
/// }"#).unwrap();
/// assert_eq!(launch.local_ssds, 0);
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GcpLaunchConfig {
    /// The id of the project, such as `my-project` or `example.com:my-project`. Required.
    pub project: String,
    /// The zones in which instances are launched and listed, at least one. Required. The first is for
    /// launches that name none. A launch in any other zone is refused, because no list would show
    /// it.
    pub zones: Vec<Zone>,
    /// The network, by name or path. Default: that of the subnetwork, or the network `default`.
    #[serde(default)]
    pub network: Option<String>,
    /// The subnetwork of launches that name none, by name (in the zone's region) or path. A
    /// launch's `placement.network` overrides it. Default: none.
    #[serde(default)]
    pub subnetwork: Option<String>,
    /// The network tags of launches that name no security group. Firewall rules select instances by
    /// them. Default: none.
    #[serde(default)]
    pub network_tags: BTreeSet<SecurityGroupId>,
    /// Whether a launch that leaves it open gets an external address. Default: `Assigned`.
    #[serde(default = "assigned")]
    pub public_address: PublicAddress,
    /// The account that software in the instance acts as towards Google's APIs. Default: none.
    #[serde(default)]
    pub service_account: Option<ServiceAccount>,
    /// The type of the boot disk, such as `pd-balanced`. Default: Compute Engine's choice.
    #[serde(default)]
    pub disk_type: Option<String>,
    /// How many local SSDs each instance gets. They lose their content when the instance stops.
    /// Default: 0.
    #[serde(default)]
    pub local_ssds: u8,
    /// The options of a shielded VM. Default: those of the image and of Compute Engine.
    #[serde(default)]
    pub shielded: ShieldedOptions,
    /// What happens to a spot instance that is preempted. Default: it is deleted.
    #[serde(default)]
    pub spot_end: SpotEnd,
    /// What happens to an instance when its host is serviced. Default: Compute Engine's choice.
    /// Spot instances and those with accelerators cannot move and are always stopped.
    #[serde(default)]
    pub host_maintenance: Option<HostMaintenance>,
    /// The number of accelerators to attach by type: `{"nvidia-tesla-t4": 1}`. Default: none.
    #[serde(default)]
    pub accelerators: BTreeMap<String, u32>,
    /// Which software in the instance runs a launch's user data. Default: cloud-init.
    #[serde(default)]
    pub user_data: UserDataAs,
    /// Labels for every instance and disk, in addition to the tags of the launch. Reads return them
    /// as tags. Default: none. They count against the limit of 64 labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Metadata for every instance. `Debug` shows only its keys, because scripts contain secrets.
    /// Default: none.
    /// Keys that this crate uses, such as `user-data`, are refused.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

impl fmt::Debug for GcpLaunchConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcpLaunchConfig")
            .field("project", &self.project)
            .field("zones", &self.zones)
            .field("network", &self.network)
            .field("subnetwork", &self.subnetwork)
            .field("network_tags", &self.network_tags)
            .field("public_address", &self.public_address)
            .field("service_account", &self.service_account)
            .field("disk_type", &self.disk_type)
            .field("local_ssds", &self.local_ssds)
            .field("shielded", &self.shielded)
            .field("spot_end", &self.spot_end)
            .field("host_maintenance", &self.host_maintenance)
            .field("accelerators", &self.accelerators)
            .field("user_data", &self.user_data)
            .field("labels", &self.labels)
            .field("metadata", &self.metadata.keys())
            .finish()
    }
}

const fn assigned() -> PublicAddress {
    PublicAddress::Assigned
}

/// The account that software in an instance acts as towards Google's APIs.
///
/// ```
/// use fleetwright_gcp::{GcpLaunchConfig, ServiceAccount, fleetwright::Zone};
///
/// let mut launch = GcpLaunchConfig::new("my-project", [Zone::new("us-central1-a")?]);
/// launch.service_account = Some(ServiceAccount::new("runner@my-project.iam.gserviceaccount.com"));
/// # Ok::<(), fleetwright_gcp::fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceAccount {
    /// Its e-mail address, or `default` for the account of the project.
    pub email: String,
    /// The OAuth scopes, as URLs. The account's permissions limit access further. Default: the
    /// whole platform.
    #[serde(default = "cloud_platform")]
    pub scopes: Vec<String>,
}

impl ServiceAccount {
    /// Creates an account with the scope of the whole platform, so that only its permissions limit
    /// it.
    pub fn new(email: impl Into<String>) -> Self {
        Self {
            email: email.into(),
            scopes: cloud_platform(),
        }
    }
}

fn cloud_platform() -> Vec<String> {
    vec!["https://www.googleapis.com/auth/cloud-platform".to_owned()]
}

/// The options of a shielded VM. `None` means the default of the image and of Compute Engine.
///
/// ```
/// use fleetwright_gcp::{GcpLaunchConfig, fleetwright::Zone};
///
/// let mut launch = GcpLaunchConfig::new("my-project", [Zone::new("us-central1-a")?]);
/// launch.shielded.secure_boot = Some(true);
/// # Ok::<(), fleetwright_gcp::fleetwright::InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ShieldedOptions {
    /// Whether only signed software can boot. Default: `None`.
    pub secure_boot: Option<bool>,
    /// Whether the instance has a virtual trusted platform module. Default: `None`.
    pub vtpm: Option<bool>,
    /// Whether boots are measured and compared with a baseline. Default: `None`.
    pub integrity_monitoring: Option<bool>,
}

/// What happens to a spot instance that is preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpotEnd {
    /// It is deleted. Compute Engine's own default is to stop it, which leaves disks that are
    /// billed. Serialized as `deleted`.
    #[default]
    Deleted,
    /// It is stopped, and can be started again when there is capacity.
    /// Serialized as `stopped`.
    Stopped,
}

/// What happens to an instance when its host is serviced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostMaintenance {
    /// It moves to another host while it runs.
    /// Serialized as `migrates`.
    Migrates,
    /// It is stopped, and started again on another host unless it is a spot instance.
    /// Serialized as `stops`.
    Stops,
}

/// Which software in the instance runs a launch's user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserDataAs {
    /// cloud-init, once, if the image has it. The data is the metadata key `user-data` and can be
    /// any bytes. Serialized as `cloud-init`.
    #[default]
    CloudInit,
    /// Google's guest agent, at every boot. The data is the metadata key `startup-script` and must
    /// be text. Serialized as `startup-script`.
    StartupScript,
}

impl GcpLaunchConfig {
    /// Creates a config for `zones` of `project` with the defaults of every other field.
    pub fn new(project: impl Into<String>, zones: impl IntoIterator<Item = Zone>) -> Self {
        Self {
            project: project.into(),
            zones: zones.into_iter().collect(),
            network: None,
            subnetwork: None,
            network_tags: BTreeSet::new(),
            public_address: PublicAddress::Assigned,
            service_account: None,
            disk_type: None,
            local_ssds: 0,
            shielded: ShieldedOptions::default(),
            spot_end: SpotEnd::default(),
            host_maintenance: None,
            accelerators: BTreeMap::new(),
            user_data: UserDataAs::default(),
            labels: BTreeMap::new(),
            metadata: BTreeMap::new(),
        }
    }

    /// Checks every value without a call to Compute Engine.
    ///
    /// # Errors
    ///
    /// The first invalid value, by its field name.
    pub fn check(&self) -> Result<(), InvalidValue> {
        if !address::is_project(&self.project) {
            let expected = "a project id: lowercase letters, digits and hyphens";
            return Err(InvalidValue::new(
                "project",
                Problem::Malformed { expected },
            ));
        }
        self.check_zones()?;
        for (field, value) in [
            ("network", &self.network),
            ("subnetwork", &self.subnetwork),
            ("disk_type", &self.disk_type),
        ] {
            if value.as_deref().is_some_and(|text| text.trim().is_empty()) {
                return Err(InvalidValue::new(field, Problem::Empty));
            }
        }
        let account = self.service_account.as_ref();
        if account.is_some_and(|account| account.email.trim().is_empty()) {
            return Err(InvalidValue::new("service_account.email", Problem::Empty));
        }
        for tag in &self.network_tags {
            check_network_tag("network_tags", tag)?;
        }
        for (key, value) in &self.labels {
            if !labels::fits_label(key, value) {
                let expected = "a label: lowercase letters, digits, _ and -, at most 63, a letter in \
                                front of the key, which starts with neither goog nor fwx-";
                let field = format!("labels[{key:?}]");
                return Err(InvalidValue::new(field, Problem::Malformed { expected }));
            }
        }
        for key in self.metadata.keys() {
            metadata::check_key(key)?;
        }
        Ok(())
    }

    fn check_zones(&self) -> Result<(), InvalidValue> {
        if self.zones.is_empty() {
            return Err(InvalidValue::new("zones", Problem::Empty));
        }
        for (at, zone) in self.zones.iter().enumerate() {
            if !address::is_name(zone.as_str()) {
                let expected = "a zone's name, such as us-central1-a, and no URL";
                return Err(InvalidValue::new(
                    format!("zones[{at}]"),
                    Problem::Malformed { expected },
                ));
            }
            if self.zones[..at].contains(zone) {
                let other = zone.to_string();
                return Err(InvalidValue::new(
                    format!("zones[{at}]"),
                    Problem::Duplicate { other },
                ));
            }
        }
        Ok(())
    }
}

/// Checks a security group, which is a network tag on Compute Engine and must have the form of a
/// name.
pub(crate) fn check_network_tag(
    field: &'static str,
    tag: &SecurityGroupId,
) -> Result<(), InvalidValue> {
    if address::is_name(tag.as_str()) {
        return Ok(());
    }
    let expected = "a network tag: lowercase letters, digits and hyphens, at most 63";
    Err(InvalidValue::new(field, Problem::Malformed { expected }))
}

#[cfg(test)]
mod tests;
