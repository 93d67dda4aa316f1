//! The file that the operator writes, and GARM names in `GARM_PROVIDER_CONFIG_FILE`.
//!
//! Owns its tables. One of the clouds must be there; `launch` and `limits` are optional. No field holds a secret: credentials come from where
//! the vendor's own tools find them.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    document::Document,
    failure::Failure,
    settings::{LaunchSettings, PublicAddressSetting},
};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The config of the provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConfigFile {
    /// Amazon EC2.
    pub(crate) ec2: Option<Ec2Section>,
    /// Google Compute Engine.
    pub(crate) gcp: Option<GcpSection>,
    /// Azure virtual machines.
    pub(crate) azure: Option<AzureSection>,
    /// Simulated machines in a file, to try a GARM without a cloud.
    pub(crate) memory: Option<MemorySection>,
    /// What every machine gets, unless a pool overrides it.
    pub(crate) launch: LaunchSettings,
    /// Limits of time.
    pub(crate) limits: Limits,
}

/// Amazon EC2. Credentials come from the default chain of the AWS SDK: the environment, profiles, web identities, the metadata service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ec2Section {
    /// The region. Default: that of the environment or the profile.
    #[schemars(length(min = 1))]
    pub(crate) region: Option<String>,
    /// The profile in the files of the AWS tools. Default: that of the environment, or `default`.
    #[schemars(length(min = 1))]
    pub(crate) profile: Option<String>,
    /// Another endpoint, such as that of an emulator.
    #[schemars(length(min = 1))]
    pub(crate) endpoint: Option<String>,
    /// The subnet for each zone.
    pub(crate) subnets: BTreeMap<String, String>,
    /// The subnet of launches without zone and network.
    #[schemars(length(min = 1))]
    pub(crate) default_subnet: Option<String>,
    /// The security groups of launches that name none.
    pub(crate) security_groups: Vec<String>,
    /// The name of the key pair for SSH.
    #[schemars(length(min = 1))]
    pub(crate) key_pair: Option<String>,
    /// The instance profile, by name or ARN.
    #[schemars(length(min = 1))]
    pub(crate) instance_profile: Option<String>,
    /// Whether machines get a public address. Default: the setting of the subnet.
    pub(crate) public_address: Option<PublicAddressSetting>,
    /// The type of the root volume, such as `gp3`.
    #[schemars(length(min = 1))]
    pub(crate) root_volume_type: Option<String>,
    /// Whether the root volume is encrypted.
    pub(crate) root_encrypted: Option<bool>,
    /// How many hops a response of the metadata service may travel. Default: 2.
    #[schemars(range(min = 1, max = 64))]
    pub(crate) metadata_hop_limit: Option<u8>,
}

/// Google Compute Engine. Credentials are the application default credentials of Google's tools.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GcpSection {
    /// The id of the project.
    #[schemars(length(min = 1))]
    pub(crate) project: String,
    /// The zones in which machines are launched and listed. The first is for launches that name none.
    #[schemars(length(min = 1))]
    pub(crate) zones: Vec<String>,
    /// Another endpoint, such as that of an emulator.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) endpoint: Option<String>,
    /// Where credentials come from. Default: `application-default`.
    #[serde(default)]
    pub(crate) credentials: GcpCredentials,
    /// The network, by name or path.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) network: Option<String>,
    /// The subnetwork, by name or path.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) subnetwork: Option<String>,
    /// The network tags of launches that name no security group.
    #[serde(default)]
    pub(crate) network_tags: Vec<String>,
    /// The service account of machines, by its e-mail address.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) service_account: Option<String>,
    /// The type of the boot disk, such as `pd-balanced`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) disk_type: Option<String>,
    /// Whether machines get an external address. Default: `assigned`.
    #[serde(default)]
    pub(crate) public_address: Option<PublicAddressSetting>,
    /// Labels of every machine and disk.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// Where credentials for Compute Engine come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GcpCredentials {
    /// The application default credentials.
    #[default]
    ApplicationDefault,
    /// None, for an emulator. Needs `endpoint`.
    Anonymous,
}

/// Azure virtual machines, with Linux only. Credentials are those that the variables `AZURE_…` describe.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AzureSection {
    /// The subscription, by its GUID.
    #[schemars(length(min = 1))]
    pub(crate) subscription: String,
    /// The resource group, which must exist.
    #[schemars(length(min = 1))]
    pub(crate) resource_group: String,
    /// The location, such as `eastus`.
    #[schemars(length(min = 1))]
    pub(crate) location: String,
    /// The subnet: `network/subnet` in the resource group, or a resource id.
    #[schemars(length(min = 1))]
    pub(crate) subnet: String,
    /// The key to log in with: one line of an `authorized_keys` file. Azure creates no Linux machine without one.
    #[schemars(length(min = 1))]
    pub(crate) ssh_public_key: String,
    /// The user that logs in with it. Default: `azureuser`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) admin_user: Option<String>,
    /// Another endpoint of the Resource Manager, such as that of an emulator.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) endpoint: Option<String>,
    /// The environment variable that holds an access token, instead of credentials. Such a token is valid for an hour or so, so this is for
    /// emulators. GARM passes the variable only if `environment_variables` lists it.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) access_token_variable: Option<String>,
    /// The network security group, by name or resource id.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) network_security_group: Option<String>,
    /// The zone of launches that name none, such as `1`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) zone: Option<String>,
    /// Whether machines get a public address. Default: `assigned`.
    #[serde(default)]
    pub(crate) public_address: Option<PublicAddressSetting>,
    /// The type of the system disk, such as `Premium_LRS`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) os_disk_type: Option<String>,
    /// The resource ids of the identities that machines have.
    #[serde(default)]
    pub(crate) user_identities: Vec<String>,
}

/// Simulated machines in a file: images `debian` and `alpine`, flavor `blade`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemorySection {
    /// The folder of the file. It must exist.
    #[schemars(length(min = 1))]
    pub(crate) folder: String,
}

/// Limits of time. Each has a default that suits the cloud; an emulator may be faster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// How long one operation may take with all its attempts. Default: 600.
    #[schemars(range(min = 0.001, max = 86400))]
    pub(crate) total_timeout_seconds: Option<f64>,
    /// How long one request may take. Default: 60.
    #[schemars(range(min = 0.001, max = 86400))]
    pub(crate) call_timeout_seconds: Option<f64>,
    /// How long after a change the cloud's reads may be stale. Only after it does absence count as proven, so a deletion by name of what does
    /// not exist takes this long. Default: 300 on EC2, 20 elsewhere.
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) consistency_window_seconds: Option<f64>,
    /// The time between two reads of what is waited for. Default: that of the cloud.
    #[schemars(range(min = 0.001, max = 3600))]
    pub(crate) poll_interval_seconds: Option<f64>,
}

impl Limits {
    /// Converts a number of seconds that the schema allows.
    pub(crate) fn duration(seconds: Option<f64>) -> Option<Duration> {
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

impl ConfigFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// All mistakes, each with its line and column.
    pub(crate) fn parse(text: &str) -> Result<Self, crate::document::Mistakes> {
        Document::toml(text).read(|read: &Self, report| read.check(report))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or has mistakes.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let failed = |what: String| {
            let path = path.display();
            Failure::new(format!(
                "the config file {path}, which GARM's config names as config_file: {what}"
            ))
        };
        let size = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if size.len() > MAX_BYTES {
            let size = size.len();
            return Err(failed(format!(
                "has {size} bytes; the limit is {MAX_BYTES}"
            )));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(|mistakes| failed(mistakes.to_string()))
    }

    /// Returns the name of the cloud's table.
    pub(crate) const fn cloud(&self) -> Option<&'static str> {
        match self {
            Self { ec2: Some(_), .. } => Some("ec2"),
            Self { gcp: Some(_), .. } => Some("gcp"),
            Self { azure: Some(_), .. } => Some("azure"),
            Self {
                memory: Some(_), ..
            } => Some("memory"),
            _ => None,
        }
    }

    fn check(&self, report: &mut dyn FnMut(&[&str], String)) {
        let present = [
            ("ec2", self.ec2.is_some()),
            ("gcp", self.gcp.is_some()),
            ("azure", self.azure.is_some()),
            ("memory", self.memory.is_some()),
        ];
        let tables = present.iter().filter(|(_, is_present)| *is_present);
        let mut tables = tables.map(|(name, _)| *name);
        match tables.next() {
            None => {
                let what = "no cloud is configured: expected one of the tables [ec2], [gcp], [azure] or [memory]";
                report(&[], what.to_owned());
            }
            Some(first) => {
                for other in tables {
                    let what = format!(
                        "[{first}] is configured too: a file is for one cloud; write another file, and another provider in GARM's config"
                    );
                    report(&[other], what);
                }
            }
        }
        let gcp = self.gcp.as_ref();
        let is_anonymous = |gcp: &GcpSection| {
            gcp.credentials == GcpCredentials::Anonymous && gcp.endpoint.is_none()
        };
        if gcp.is_some_and(is_anonymous) {
            let what = "Compute Engine refuses calls without credentials; set endpoint to that of an emulator, or remove this line";
            report(&["gcp", "credentials"], what.to_owned());
        }
        self.launch.check(&["launch"], report);
        if let Some((path, what)) = crate::cloud::check(self) {
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            report(&path, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_cloud_is_configured() {
        let none = ConfigFile::parse("[launch]\nzone = \"a\"\n").unwrap_err();
        assert!(
            none.to_string()
                .contains("line 1, column 1: no cloud is configured"),
            "{none}"
        );
        let two = ConfigFile::parse("[memory]\nfolder = \"x\"\n[ec2]\n").unwrap_err();
        assert!(
            two.to_string()
                .contains("line 1, column 1: memory: [ec2] is configured too"),
            "{two}"
        );
    }

    #[test]
    fn anonymous_credentials_need_an_emulator() {
        let text = "[gcp]\nproject = \"p-1\"\nzones = [\"a-b\"]\ncredentials = \"anonymous\"\n";
        let mistakes = ConfigFile::parse(text).unwrap_err().to_string();
        assert!(
            mistakes.contains("line 4, column 15: gcp.credentials"),
            "{mistakes}"
        );
    }
}
