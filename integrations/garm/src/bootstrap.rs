//! What GARM sends for a creation: one JSON document on standard input.
//!
//! Owns the fields of GARM's `BootstrapInstance` (cloudbase/garm-provider-common, `params/params.go`) that this program uses. Unknown
//! fields are ignored, because newer versions of GARM add some.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use crate::{failure::Failure, secret::Secret};

/// The largest document that is read, in bytes. GARM's are a few KB, with a large CA bundle some hundred.
pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The document of a creation. `Debug` shows no secret.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BootstrapInstance {
    /// The name of the instance.
    pub(crate) name: String,
    /// The downloads of the runner, for each operating system and architecture.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) tools: Vec<Tool>,
    /// The repository, organization or enterprise.
    #[serde(default)]
    pub(crate) repo_url: String,
    /// Where the machine reports its status.
    #[serde(default, rename = "callback-url")]
    pub(crate) callback_url: String,
    /// Where the machine reads what it needs.
    #[serde(default, rename = "metadata-url")]
    pub(crate) metadata_url: String,
    /// What the machine proves itself with towards GARM.
    #[serde(default, rename = "instance-token")]
    pub(crate) instance_token: Secret,
    /// The keys that may log in.
    #[serde(default, rename = "ssh-keys", deserialize_with = "or_default")]
    pub(crate) ssh_keys: Vec<String>,
    /// The settings of the pool for this provider.
    #[serde(default)]
    pub(crate) extra_specs: serde_json::Value,
    /// The group that the runner joins.
    #[serde(default, rename = "github-runner-group")]
    pub(crate) runner_group: String,
    /// Certificates that the machine must trust, as PEM in base64.
    #[serde(default, rename = "ca-cert-bundle")]
    pub(crate) ca_bundle: Option<String>,
    /// The architecture.
    pub(crate) arch: Arch,
    /// The operating system.
    pub(crate) os_type: OsType,
    /// The instance type.
    pub(crate) flavor: String,
    /// The image.
    pub(crate) image: String,
    /// The labels of the runner, if it is not configured just in time.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) labels: Vec<String>,
    /// The pool.
    #[serde(default)]
    pub(crate) pool_id: String,
    /// What the machine does at its first boot.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) user_data_options: UserDataOptions,
    /// Whether the runner reads its credentials from GARM instead of registering itself.
    #[serde(default)]
    pub(crate) jit_config_enabled: bool,
    /// The proxy of the machine.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) proxy_config: ProxyConfig,
}

/// A download of the runner.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tool {
    /// `linux`, `win` or another name.
    pub(crate) os: Option<String>,
    /// `x64`, `arm64` or another name.
    pub(crate) architecture: Option<String>,
    /// The address.
    pub(crate) download_url: Option<String>,
    /// The name of the file.
    pub(crate) filename: Option<String>,
    /// The digest of the file, in hexadecimal digits.
    pub(crate) sha256_checksum: Option<String>,
    /// A token for the download, which is a secret.
    pub(crate) temp_download_token: Option<Secret>,
}

/// What the machine does at its first boot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UserDataOptions {
    /// Whether it upgrades no packages.
    pub(crate) disable_updates_on_boot: bool,
    /// The packages that it installs.
    #[serde(deserialize_with = "or_default")]
    pub(crate) extra_packages: Vec<String>,
    /// Whether the install script prints its commands.
    pub(crate) enable_boot_debug: bool,
}

/// The proxy of the machine. Its addresses can contain a password, so `Debug` shows none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProxyConfig {
    /// For http.
    pub(crate) http_proxy: Secret,
    /// For https.
    pub(crate) https_proxy: Secret,
    /// What is reached without it.
    pub(crate) no_proxy: String,
}

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OsType {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
}

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arch {
    /// 64 bits, Intel and AMD.
    Amd64,
    /// 32 bits, Intel and AMD.
    I386,
    /// 64 bits, ARM.
    Arm64,
    /// 32 bits, ARM.
    Arm,
}

impl OsType {
    /// Returns GARM's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }
}

impl Arch {
    /// Returns GARM's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::I386 => "i386",
            Self::Arm64 => "arm64",
            Self::Arm => "arm",
        }
    }
}

impl BootstrapInstance {
    /// Reads the document.
    ///
    /// # Errors
    /// It is empty, not JSON, or lacks a field. The message has the position and no part of the document, which contains secrets.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            let message =
                "standard input is empty: CreateInstance needs GARM's JSON document there";
            return Err(Failure::new(message));
        }
        serde_json::from_slice(bytes).map_err(|error| {
            let what = match error.classify() {
                serde_json::error::Category::Data => safe_message(&error.to_string()),
                serde_json::error::Category::Io
                | serde_json::error::Category::Syntax
                | serde_json::error::Category::Eof => "it is not valid JSON".to_owned(),
            };
            let (line, column) = (error.line(), error.column());
            Failure::new(format!(
                "the document on standard input cannot be read, line {line}, column {column}: {what}"
            ))
        })
    }

    /// Returns the download for this machine, if GARM sent one.
    pub(crate) fn tool(&self) -> Option<&Tool> {
        // GitHub and Gitea name systems and architectures in different ways.
        let os: &[&str] = match self.os_type {
            OsType::Linux => &["linux"],
            OsType::Windows => &["win", "windows"],
        };
        let arch: &[&str] = match self.arch {
            Arch::Amd64 => &["x64", "amd64", "x86_64"],
            Arch::I386 => &["x86", "386", "i386"],
            Arch::Arm64 => &["arm64", "aarch64"],
            Arch::Arm => &["arm", "armv7", "arm-7"],
        };
        let is_one = |name: &Option<String>, names: &[&str]| {
            name.as_deref().is_some_and(|name| names.contains(&name))
        };
        let mut tools = self.tools.iter();
        tools.find(|tool| is_one(&tool.os, os) && is_one(&tool.architecture, arch))
    }
}

/// Serde quotes values of a wrong type, which may be secrets: only the names of fields and types are kept.
fn safe_message(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.starts_with("missing field") || message.starts_with("unknown variant") {
        return message.to_owned();
    }
    let expected = message.split_once(", expected ");
    expected.map_or_else(
        || "a field has a wrong type".to_owned(),
        |(_, expected)| format!("a field has a wrong type: expected {expected}"),
    )
}

/// Go writes `null` for an empty list or object.
fn or_default<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"name": "garm-1", "arch": "arm64", "os_type": "linux", "flavor": "f", "image": "i",
        "instance-token": "s3cr3t", "ssh-keys": null, "labels": null, "extra_specs": null, "new_field": 1,
        "tools": [{"os": "linux", "architecture": "x64"}, {"os": "linux", "architecture": "arm64", "filename": "a"}]}"#;

    #[test]
    fn document_of_go_is_read_and_shows_no_secret() {
        let read = BootstrapInstance::parse(SMALL.as_bytes()).unwrap();
        assert_eq!(read.tool().unwrap().filename.as_deref(), Some("a"));
        assert_eq!(read.instance_token.reveal(), "s3cr3t");
        assert!(!format!("{read:?}").contains("s3cr3t"));
    }

    #[test]
    fn broken_documents_are_refused_without_quoting_them() {
        let cases = [
            ("", "standard input is empty"),
            ("{\"name\": \"s3cr3t", "not valid JSON"),
            ("{\"name\": \"a\"}", "missing field `arch`"),
            (
                r#"{"name": "a", "instance-token": {"s3cr3t": 1}}"#,
                "wrong type: expected a string",
            ),
            (
                r#"{"name": "a", "arch": "mips", "os_type": "linux", "flavor": "", "image": ""}"#,
                "unknown variant `mips`",
            ),
        ];
        for (text, expected) in cases {
            let message = BootstrapInstance::parse(text.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("s3cr3t"), "{message}");
        }
    }
}
