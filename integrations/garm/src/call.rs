//! The call: what GARM says in the environment.
//!
//! Owns the names of commands, versions and variables. GARM's own names for two of the commands are StartInstance and StopInstance
//! (cloudbase/garm-provider-common, `execution/common/commands.go`); its interface calls them Start and Stop, and both are accepted.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    failure::Failure,
    identity::{Controller, Pool},
};

/// The versions of the interface that this program has.
pub(crate) const VERSIONS: [&str; 2] = ["v0.1.0", "v0.1.1"];

/// The longest value of a variable, in bytes. The operating system allows 128 KiB.
const MAX_SPECS_BYTES: usize = 1024 * 1024;

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Creates an instance.
    CreateInstance,
    /// Deletes an instance.
    DeleteInstance,
    /// Describes an instance.
    GetInstance,
    /// Lists the instances of a pool.
    ListInstances,
    /// Deletes every instance of the controller.
    RemoveAllInstances,
    /// Starts a stopped instance.
    StartInstance,
    /// Stops an instance.
    StopInstance,
    /// Prints the version of this program.
    GetVersion,
    /// Prints the versions of the interface.
    GetSupportedInterfaceVersions,
    /// Checks the settings of a pool.
    ValidatePoolInfo,
    /// Prints the JSON schema of the config file.
    GetConfigJsonSchema,
    /// Prints the JSON schema of the extra specs.
    GetExtraSpecsJsonSchema,
}

impl Command {
    /// Every command with its name, and whether it is in version v0.1.0 already.
    const NAMES: [(&'static str, Self, bool); 14] = [
        ("CreateInstance", Self::CreateInstance, true),
        ("DeleteInstance", Self::DeleteInstance, true),
        ("GetInstance", Self::GetInstance, true),
        ("ListInstances", Self::ListInstances, true),
        ("RemoveAllInstances", Self::RemoveAllInstances, true),
        ("StartInstance", Self::StartInstance, true),
        ("StopInstance", Self::StopInstance, true),
        ("Start", Self::StartInstance, true),
        ("Stop", Self::StopInstance, true),
        ("GetVersion", Self::GetVersion, true),
        (
            "GetSupportedInterfaceVersions",
            Self::GetSupportedInterfaceVersions,
            false,
        ),
        ("ValidatePoolInfo", Self::ValidatePoolInfo, false),
        ("GetConfigJSONSchema", Self::GetConfigJsonSchema, false),
        (
            "GetExtraSpecsJSONSchema",
            Self::GetExtraSpecsJsonSchema,
            false,
        ),
    ];

    fn parse(text: &str, version: &str) -> Result<Self, Failure> {
        let offered = Self::NAMES
            .iter()
            .filter(|(_, _, early)| *early || version != VERSIONS[0]);
        let found = offered.clone().find(|(name, ..)| *name == text);
        found.map(|(_, command, _)| *command).ok_or_else(|| {
            let names: Vec<_> = offered.map(|(name, ..)| *name).collect();
            let names = names.join(", ");
            Failure::new(if text.is_empty() {
                format!("GARM_COMMAND is not set: expected one of {names}. GARM starts this program; it is not for people")
            } else {
                format!("GARM_COMMAND is {text:?}, which version {version} of the interface does not have: expected one of {names}")
            })
        })
    }
}

/// One call of GARM.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What it asks for.
    pub(crate) command: Command,
    environment: Environment,
}

#[derive(Clone, Debug, Default)]
struct Environment {
    config_file: String,
    controller: String,
    pool: String,
    instance: String,
    extra_specs: String,
}

impl Call {
    /// Reads the call from the environment, which `variable` looks up.
    ///
    /// # Errors
    /// The version of the interface or the command is not known.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let read = |name| variable(name).unwrap_or_default();
        let version = read("GARM_INTERFACE_VERSION");
        let version = if version.is_empty() {
            VERSIONS[0]
        } else {
            let known = VERSIONS.into_iter().find(|known| *known == version);
            known.ok_or_else(|| {
                Failure::new(format!(
                    "GARM_INTERFACE_VERSION is {version:?}: this program has {}; set interface_version in GARM's config to one of them",
                    VERSIONS.join(" and ")
                ))
            })?
        };
        Ok(Self {
            command: Command::parse(&read("GARM_COMMAND"), version)?,
            environment: Environment {
                config_file: read("GARM_PROVIDER_CONFIG_FILE"),
                controller: read("GARM_CONTROLLER_ID"),
                pool: read("GARM_POOL_ID"),
                instance: read("GARM_INSTANCE_ID"),
                extra_specs: read("GARM_POOL_EXTRASPECS"),
            },
        })
    }

    /// Returns the path of the config file.
    ///
    /// # Errors
    /// It is not set.
    pub(crate) fn config_file(&self) -> Result<PathBuf, Failure> {
        match self.environment.config_file.as_str() {
            "" => Err(Failure::new(
                "GARM_PROVIDER_CONFIG_FILE is not set: set config_file of the provider in GARM's config",
            )),
            path => Ok(path.into()),
        }
    }

    /// Returns the controller.
    ///
    /// # Errors
    /// It is not set, or not usable.
    pub(crate) fn controller(&self) -> Result<Controller, Failure> {
        Controller::new(&self.environment.controller)
    }

    /// Returns the pool, or that of the document on standard input if GARM names none.
    ///
    /// # Errors
    /// None is set, or both are and differ.
    pub(crate) fn pool(&self, of_document: Option<&str>) -> Result<Pool, Failure> {
        let here = &self.environment.pool;
        match of_document.filter(|other| !other.is_empty()) {
            Some(other) if here.is_empty() => Pool::new(other),
            Some(other) if other != here => Err(Failure::new(format!(
                "GARM_POOL_ID is {here:?}, and the pool_id on standard input is {other:?}: one call is for one pool"
            ))),
            _ => Pool::new(here),
        }
    }

    /// Returns the instance: an id of the cloud, or a name.
    ///
    /// # Errors
    /// It is not set, or longer than any id.
    pub(crate) fn instance(&self) -> Result<&str, Failure> {
        match self.environment.instance.as_str() {
            "" => Err(Failure::new(
                "GARM_INSTANCE_ID is not set: GARM sets it to the id or the name of the instance",
            )),
            text if text.len() > 1024 => Err(Failure::new(format!(
                "GARM_INSTANCE_ID has {} bytes; no id and no name is longer than 1024",
                text.len()
            ))),
            text => Ok(text),
        }
    }

    /// Returns the extra specs of the pool, which version v0.1.1 has in the environment. Null if there are none.
    ///
    /// # Errors
    /// They are not JSON in base64. The message shows nothing of them, because they can contain scripts.
    pub(crate) fn extra_specs(&self) -> Result<Value, Failure> {
        let text = self.environment.extra_specs.trim();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        if text.len() > MAX_SPECS_BYTES {
            let size = text.len();
            return Err(Failure::new(format!(
                "GARM_POOL_EXTRASPECS has {size} bytes; the limit is {MAX_SPECS_BYTES}"
            )));
        }
        let json = crate::settings::decode(text);
        let json = json.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        json.ok_or_else(|| Failure::new("GARM_POOL_EXTRASPECS is not JSON in base64"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pairs: &[(&str, &str)]) -> Result<Call, Failure> {
        Call::read(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn unknown_commands_and_versions_are_refused_with_the_known_ones() {
        let message = |pairs: &[(&str, &str)]| call(pairs).unwrap_err().to_string();
        let unknown = message(&[("GARM_COMMAND", "Create")]);
        assert!(
            unknown.contains("\"Create\"") && unknown.contains("CreateInstance, DeleteInstance"),
            "{unknown}"
        );
        assert!(message(&[]).contains("GARM_COMMAND is not set"));
        let newer = message(&[
            ("GARM_COMMAND", "GetVersion"),
            ("GARM_INTERFACE_VERSION", "v0.2.0"),
        ]);
        assert!(newer.contains("v0.1.0 and v0.1.1"), "{newer}");
        let early = message(&[("GARM_COMMAND", "ValidatePoolInfo")]);
        assert!(
            early.contains("v0.1.0") && !early.contains("GetConfigJSONSchema"),
            "{early}"
        );
        assert!(
            call(&[
                ("GARM_COMMAND", "ValidatePoolInfo"),
                ("GARM_INTERFACE_VERSION", "v0.1.1")
            ])
            .is_ok()
        );
    }

    #[test]
    fn both_names_of_start_and_stop_are_accepted() {
        for (name, command) in [
            ("Start", Command::StartInstance),
            ("StopInstance", Command::StopInstance),
        ] {
            assert_eq!(call(&[("GARM_COMMAND", name)]).unwrap().command, command);
        }
    }

    #[test]
    fn specs_are_json_in_base64() {
        let specs = |text| {
            call(&[
                ("GARM_COMMAND", "GetVersion"),
                ("GARM_POOL_EXTRASPECS", text),
            ])
            .unwrap()
            .extra_specs()
        };
        assert_eq!(specs("").unwrap(), Value::Null);
        assert_eq!(specs("bnVsbA==").unwrap(), Value::Null);
        assert_eq!(specs("eyJhIjoxfQ==").unwrap(), serde_json::json!({"a": 1}));
        assert!(
            specs("s3cr3t!")
                .unwrap_err()
                .to_string()
                .ends_with("not JSON in base64")
        );
    }

    #[test]
    fn pool_of_both_sources_must_be_one() {
        let call = call(&[("GARM_COMMAND", "GetVersion"), ("GARM_POOL_ID", "p1")]).unwrap();
        assert_eq!(call.pool(Some("p1")).unwrap().as_str(), "p1");
        assert_eq!(call.pool(Some("")).unwrap().as_str(), "p1");
        assert!(call.pool(Some("p2")).is_err());
    }
}
