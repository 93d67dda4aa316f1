//! What a launch gets beside image and flavor: the table `launch` of the config file, and the extra specs of a pool.
//!
//! Owns one type for both, so that a pool can override everything that the file sets for all pools.

use std::collections::BTreeMap;

use fleetwright::{
    InvalidValue, Market, NetworkId, Placement, PublicAddress, SecurityGroupId, Zone,
    layer::Alternative,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    document::{Document, Mistakes},
    identity::key,
};

/// What a launch gets beside image and flavor. Every field is optional. A field that a pool sets in its extra specs replaces that of the
/// config file; tags and the values for templates are added to those of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LaunchSettings {
    /// The size of the root disk in GB. Default: that of the image.
    #[schemars(range(min = 1, max = 65536))]
    pub(crate) disk_size_gb: Option<u32>,
    /// The zone. Default: that of the cloud's section, or the cloud's choice.
    #[schemars(length(min = 1))]
    pub(crate) zone: Option<String>,
    /// The subnet: an id on EC2, a name or path on Compute Engine, `network/subnet` or a resource id on Azure.
    #[schemars(length(min = 1))]
    pub(crate) network: Option<String>,
    /// The security groups on EC2, the network tags on Compute Engine, one network security group on Azure.
    pub(crate) security_groups: Option<Vec<String>>,
    /// Whether machines get a public address.
    pub(crate) public_address: Option<PublicAddressSetting>,
    /// Whether machines are spot or on-demand. Default: on-demand.
    pub(crate) market: Option<MarketSetting>,
    /// What is launched instead, in this order, if the cloud has no capacity or quota for what was asked for.
    pub(crate) alternatives: Option<Vec<AlternativeSettings>>,
    /// Tags of the machines and their disks, beside those of this program.
    pub(crate) tags: BTreeMap<String, String>,
    /// The instance profile on EC2, by name or ARN.
    #[schemars(length(min = 1))]
    pub(crate) instance_profile: Option<String>,
    /// The service account on Compute Engine, by its e-mail address.
    #[schemars(length(min = 1))]
    pub(crate) service_account: Option<String>,
    /// The resource ids of the identities that machines have on Azure.
    pub(crate) user_identities: Option<Vec<String>>,
    /// Where the install script comes from. Default: `auto`.
    pub(crate) install: Option<Install>,
    /// Whether machines upgrade no packages at their first boot.
    pub(crate) disable_updates: Option<bool>,
    /// Packages to install, beside those that GARM asks for.
    pub(crate) extra_packages: Option<Vec<String>>,
    /// Whether the install script prints its commands.
    pub(crate) enable_boot_debug: Option<bool>,
    /// A script to run instead of the built-in one, in base64, for a GARM that offers no install script. `{{ .RunnerName }}` and the other
    /// plain variables of GARM's templates are replaced.
    pub(crate) runner_install_template: Option<String>,
    /// Scripts that run as root before the runner is installed, in base64, by their file names. They run in the order of their names.
    pub(crate) pre_install_scripts: BTreeMap<String, String>,
    /// Values for `{{ .ExtraContext.name }}` in the template.
    pub(crate) extra_context: BTreeMap<String, String>,
}

/// Whether machines get a public address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PublicAddressSetting {
    /// Each machine gets one.
    Assigned,
    /// No machine gets one.
    Absent,
}

/// How machines are paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MarketSetting {
    /// By the hour, and the cloud does not take them back.
    OnDemand,
    /// At a discount, and the cloud may take them back.
    Spot,
}

/// Where the install script comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Install {
    /// From GARM if it offers one, otherwise from the user data.
    #[default]
    Auto,
    /// From GARM only. The user data is smallest.
    Metadata,
    /// From the user data only.
    Script,
}

/// What to launch instead. Fields that are not set keep their value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AlternativeSettings {
    /// The instance type.
    #[schemars(length(min = 1))]
    pub(crate) instance_type: Option<String>,
    /// The image, which a type of another architecture needs.
    #[schemars(length(min = 1))]
    pub(crate) image: Option<String>,
    /// The zone.
    #[schemars(length(min = 1))]
    pub(crate) zone: Option<String>,
    /// The subnet.
    #[schemars(length(min = 1))]
    pub(crate) network: Option<String>,
    /// Spot or on-demand.
    pub(crate) market: Option<MarketSetting>,
}

impl LaunchSettings {
    /// Reads the extra specs of a pool.
    ///
    /// # Errors
    /// All mistakes.
    pub(crate) fn of_pool(specs: &serde_json::Value) -> Result<Self, Mistakes> {
        Document::json(specs).read(|read: &Self, report| read.check(&[], report))
    }

    /// Reports what the schema cannot say.
    pub(crate) fn check(&self, above: &[&str], report: &mut dyn FnMut(&[&str], String)) {
        let mut report = |path: &[&str], what: String| report(&[above, path].concat(), what);
        if let Err(invalid) = self.placement() {
            let field = invalid.field().to_owned();
            report(&[&field], invalid.to_string());
        }
        for (index, alternative) in self.alternatives.iter().flatten().enumerate() {
            if let Err(invalid) = alternative.to_alternative(index) {
                let index = index.to_string();
                report(&["alternatives", &index], invalid.to_string());
            }
        }
        for name in self.tags.keys() {
            if name.to_lowercase().starts_with(key::PREFIX) || name.is_empty() {
                let what = format!(
                    "the keys that start with {} belong to this program",
                    key::PREFIX
                );
                report(&["tags", name], what);
            }
        }
        for (name, script) in &self.pre_install_scripts {
            let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.starts_with('.') || !name.bytes().all(inside) {
                let what = "expected a file name: letters, digits, and any of -_.".to_owned();
                report(&["pre_install_scripts", name], what);
            }
            if decode(script).is_none() {
                report(&["pre_install_scripts", name], "expected base64".to_owned());
            }
        }
        let template = self.runner_install_template.as_deref();
        if template.is_some_and(|text| decode_text(text).is_none()) {
            report(
                &["runner_install_template"],
                "expected text in base64".to_owned(),
            );
        }
    }

    /// Returns these settings with those of a pool over them.
    #[must_use]
    pub(crate) fn overridden_by(&self, pool: Self) -> Self {
        let mut all = self.clone();
        all.tags.extend(pool.tags);
        all.pre_install_scripts.extend(pool.pre_install_scripts);
        all.extra_context.extend(pool.extra_context);
        Self {
            disk_size_gb: pool.disk_size_gb.or(all.disk_size_gb),
            zone: pool.zone.or(all.zone),
            network: pool.network.or(all.network),
            security_groups: pool.security_groups.or(all.security_groups),
            public_address: pool.public_address.or(all.public_address),
            market: pool.market.or(all.market),
            alternatives: pool.alternatives.or(all.alternatives),
            tags: all.tags,
            instance_profile: pool.instance_profile.or(all.instance_profile),
            service_account: pool.service_account.or(all.service_account),
            user_identities: pool.user_identities.or(all.user_identities),
            install: pool.install.or(all.install),
            disable_updates: pool.disable_updates.or(all.disable_updates),
            extra_packages: pool.extra_packages.or(all.extra_packages),
            enable_boot_debug: pool.enable_boot_debug.or(all.enable_boot_debug),
            runner_install_template: pool.runner_install_template.or(all.runner_install_template),
            pre_install_scripts: all.pre_install_scripts,
            extra_context: all.extra_context,
        }
    }

    /// Returns the placement of a launch.
    ///
    /// # Errors
    /// The first name that no cloud could have, with the name of its field.
    pub(crate) fn placement(&self) -> Result<Placement, InvalidValue> {
        let mut placement = Placement::default();
        placement.zone = self.zone.as_deref().map(Zone::new).transpose()?;
        placement.network = self.network.as_deref().map(NetworkId::new).transpose()?;
        let groups = self.security_groups.iter().flatten();
        let groups: Result<_, _> = groups.map(SecurityGroupId::new).collect();
        placement.security_groups = groups?;
        placement.public_address = self.public_address.map(Into::into);
        placement.market = self.market.map(Into::into);
        Ok(placement)
    }

    /// Returns what is tried, in order: what was asked for, then the alternatives. Empty if there are none.
    ///
    /// # Errors
    /// The first name that no cloud could have.
    pub(crate) fn alternatives(&self) -> Result<Vec<Alternative>, InvalidValue> {
        let Some(alternatives) = self.alternatives.as_deref().filter(|all| !all.is_empty()) else {
            return Ok(Vec::new());
        };
        let requested = std::iter::once(Ok(Alternative::new("as requested")));
        let others = alternatives.iter().enumerate();
        let others = others.map(|(index, other)| other.to_alternative(index));
        requested.chain(others).collect()
    }
}

impl AlternativeSettings {
    fn to_alternative(&self, index: usize) -> Result<Alternative, InvalidValue> {
        let mut built = Alternative::new(format!("alternative {}", index + 1));
        if let Some(name) = &self.instance_type {
            built = built.instance_type(name)?;
        }
        if let Some(name) = &self.image {
            built = built.image(name)?;
        }
        if let Some(name) = &self.zone {
            built = built.zone(name)?;
        }
        if let Some(name) = &self.network {
            built = built.network(name)?;
        }
        if let Some(market) = self.market {
            built = built.market(market.into());
        }
        Ok(built)
    }
}

impl From<PublicAddressSetting> for PublicAddress {
    fn from(setting: PublicAddressSetting) -> Self {
        match setting {
            PublicAddressSetting::Assigned => Self::Assigned,
            PublicAddressSetting::Absent => Self::Absent,
        }
    }
}

impl From<MarketSetting> for Market {
    fn from(setting: MarketSetting) -> Self {
        match setting {
            MarketSetting::OnDemand => Self::OnDemand,
            MarketSetting::Spot => Self::Spot,
        }
    }
}

/// Decodes base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.decode(text.trim()).ok()
}

/// Decodes text in base64.
pub(crate) fn decode_text(text: &str) -> Option<String> {
    String::from_utf8(decode(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pool_overrides_the_file_field_by_field() {
        let read = |value| LaunchSettings::of_pool(&value).unwrap();
        let file =
            read(json!({"zone": "a", "disk_size_gb": 20, "tags": {"team": "blue", "cost": "1"}}));
        let pool = read(
            json!({"zone": "b", "tags": {"team": "red"}, "alternatives": [{"market": "on-demand"}]}),
        );
        let both = file.overridden_by(pool);
        assert_eq!(
            (both.zone.as_deref(), both.disk_size_gb),
            (Some("b"), Some(20))
        );
        assert_eq!(both.tags.get("team").map(String::as_str), Some("red"));
        assert_eq!(both.tags.get("cost").map(String::as_str), Some("1"));
        assert_eq!(both.alternatives().unwrap().len(), 2);
        assert_eq!(file.alternatives().unwrap(), []);
    }

    #[test]
    fn absent_specs_are_empty_settings() {
        for value in [json!(null), json!({}), json!({"zone": null})] {
            assert_eq!(
                LaunchSettings::of_pool(&value).unwrap(),
                LaunchSettings::default()
            );
        }
    }

    #[test]
    fn all_mistakes_of_a_pool_are_reported() {
        let specs = json!({
            "tags": {"garm-name": "x"},
            "pre_install_scripts": {"../a": "!"},
            "runner_install_template": "?",
        });
        let text = LaunchSettings::of_pool(&specs).unwrap_err().to_string();
        for part in [
            "4 mistakes",
            "tags.garm-name",
            "expected a file name",
            "expected base64",
            "runner_install_template",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
