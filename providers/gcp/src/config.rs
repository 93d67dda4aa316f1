//! What only Compute Engine knows of a launch.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use fleetwright::{InvalidValue, Problem, PublicAddress, SecurityGroupId, Zone};
use serde::{Deserialize, Serialize};

use crate::{address, labels, metadata};

/// How instances are launched on Compute Engine, beside what a launch itself says.
///
/// Loadable with serde from any format; [`check`](Self::check) is called when a provisioner is made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GcpLaunchConfig {
    /// The project, by id.
    pub project: String,
    /// The zones that are launched into and listed. The first is for launches that name none; one that
    /// names another than these is refused, because nobody would see it.
    pub zones: Vec<Zone>,
    /// The network, by name or path; unset means the network `default`, or the subnetwork's own.
    #[serde(default)]
    pub network: Option<String>,
    /// The subnetwork of launches that name none, by name (in the zone's region) or path.
    #[serde(default)]
    pub subnetwork: Option<String>,
    /// The network tags of launches that name no security group: firewall rules go by them.
    #[serde(default)]
    pub network_tags: BTreeSet<SecurityGroupId>,
    /// Whether launches that do not say get an external address.
    #[serde(default = "assigned")]
    pub public_address: PublicAddress,
    /// Who the instance is to Google's APIs; unset means nobody.
    #[serde(default)]
    pub service_account: Option<ServiceAccount>,
    /// The boot disk's type, such as `pd-balanced`; unset means Compute Engine's choice.
    #[serde(default)]
    pub disk_type: Option<String>,
    /// How many local SSDs each instance gets. They lose their content at a stop.
    #[serde(default)]
    pub local_ssds: u8,
    /// The options of a shielded VM.
    #[serde(default)]
    pub shielded: ShieldedOptions,
    /// What becomes of a spot instance that is preempted.
    #[serde(default)]
    pub spot_end: SpotEnd,
    /// What happens to the instance when its host is serviced; unset means Compute Engine's choice, and
    /// an end for spot instances and those with accelerators, which cannot move.
    #[serde(default)]
    pub host_maintenance: Option<HostMaintenance>,
    /// Accelerators to attach, by type: `{"nvidia-tesla-t4": 1}`.
    #[serde(default)]
    pub accelerators: BTreeMap<String, u32>,
    /// What runs a launch's user data.
    #[serde(default)]
    pub user_data: UserDataAs,
    /// More labels for everything that is launched. They are shown as tags.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// More metadata for every instance. `Debug` shows its keys only: scripts have secrets in them.
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

/// Who an instance is to Google's APIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServiceAccount {
    /// Its address, or `default` for the project's own.
    pub email: String,
    /// What it may ask for, as URLs; the account's rights limit it further.
    #[serde(default = "cloud_platform")]
    pub scopes: Vec<String>,
}

impl ServiceAccount {
    /// An account with the scope of the whole platform, so that its rights alone decide.
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

/// The options of a shielded VM; unset means the image's and Compute Engine's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ShieldedOptions {
    /// Whether only signed software boots.
    pub secure_boot: Option<bool>,
    /// Whether there is a virtual trusted platform module.
    pub vtpm: Option<bool>,
    /// Whether the boot is measured and compared.
    pub integrity_monitoring: Option<bool>,
}

/// What becomes of a spot instance that is preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpotEnd {
    /// It is deleted. Compute Engine's own default is to stop it, which leaves disks to pay for.
    #[default]
    Deleted,
    /// It is stopped, and can be started again when there is room.
    Stopped,
}

/// What happens to an instance when its host is serviced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostMaintenance {
    /// It moves to another host without a stop.
    Migrates,
    /// It is stopped, and started again on another host unless it is a spot instance.
    Stops,
}

/// What runs a launch's user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserDataAs {
    /// The key `user-data`: cloud-init, once, if the image has it. It takes any bytes.
    #[default]
    CloudInit,
    /// The key `startup-script`: Google's guest agent, at every boot. It takes text only.
    StartupScript,
}

impl GcpLaunchConfig {
    /// Launches into `zones` of `project`, the first of them where a launch names none.
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

    /// Checks every value; the error names the first that is wrong.
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
            if !labels::fits(key, value) {
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

/// A security group is a network tag here, and those are names.
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
mod tests {
    use super::*;

    fn config() -> GcpLaunchConfig {
        let zones = ["us-central1-a", "us-central1-b"].map(|zone| Zone::new(zone).unwrap());
        GcpLaunchConfig::new("fleet-1", zones)
    }

    fn wrong(turn: impl FnOnce(&mut GcpLaunchConfig)) -> String {
        let mut config = config();
        turn(&mut config);
        config.check().unwrap_err().field().to_owned()
    }

    #[test]
    fn a_mistake_is_named() {
        config().check().unwrap();
        assert_eq!(
            wrong(|config| config.project = "My Project".to_owned()),
            "project"
        );
        assert_eq!(wrong(|config| config.zones.clear()), "zones");
        let url = Zone::new("https://example.com/zones/us-central1-a").unwrap();
        assert_eq!(wrong(|config| config.zones[1] = url), "zones[1]");
        assert_eq!(
            wrong(|config| config.zones[1] = config.zones[0].clone()),
            "zones[1]"
        );
        assert_eq!(
            wrong(|config| config.subnetwork = Some(" ".to_owned())),
            "subnetwork"
        );
        let label = ("Team".to_owned(), "blue".to_owned());
        assert_eq!(
            wrong(|config| config.labels = [label].into()),
            "labels[\"Team\"]"
        );
        let item = ("user-data".to_owned(), String::new());
        assert_eq!(
            wrong(|config| config.metadata = [item].into()),
            "metadata[\"user-data\"]"
        );
        let account = ServiceAccount::new("");
        assert_eq!(
            wrong(|config| config.service_account = Some(account)),
            "service_account.email"
        );
        let tag = SecurityGroupId::new("Web").unwrap();
        assert_eq!(
            wrong(|config| config.network_tags = [tag].into()),
            "network_tags"
        );
    }

    #[test]
    fn a_file_says_what_it_wants_and_a_typo_is_refused() {
        let text = r#"{"project":"fleet-1","zones":["us-central1-a"],"spot_end":"stopped",
            "service_account":{"email":"ci@fleet-1.iam.gserviceaccount.com"},
            "shielded":{"secure_boot":true},"user_data":"startup-script"}"#;
        let config: GcpLaunchConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.spot_end, SpotEnd::Stopped);
        assert_eq!(config.public_address, PublicAddress::Assigned);
        assert_eq!(config.service_account.as_ref().unwrap().scopes.len(), 1);
        let back = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<GcpLaunchConfig>(&back).unwrap(),
            config
        );
        let typo = r#"{"project":"fleet-1","zones":["us-central1-a"],"label":{}}"#;
        assert!(serde_json::from_str::<GcpLaunchConfig>(typo).is_err());
        assert!(serde_json::from_str::<GcpLaunchConfig>(r#"{"project":"fleet-1"}"#).is_err());
    }
}
