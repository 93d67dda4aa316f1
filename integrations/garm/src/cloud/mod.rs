//! The cloud of a config file, as a provisioner with the layers around it.
//!
//! Owns which feature a table needs, and what this program needs to know of a cloud beside the trait: the form of its ids, and how its
//! Windows machines get their script.

#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "ec2")]
mod ec2;
#[cfg(feature = "gcp")]
mod gcp;
#[cfg(feature = "memory")]
mod memory;

use std::sync::Arc;

use fleetwright::{
    InstanceProvisioner, InvalidValue,
    layer::{FallbackPolicy, Stack, TimeoutPolicy},
};

use crate::{
    config::{ConfigFile, Limits},
    failure::Failure,
    settings::LaunchSettings,
    user_data::WindowsScript,
};

/// Where a mistake is, and what it is.
pub(crate) type Invalid = (Vec<String>, String);

/// How a Windows machine of a cloud gets its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowsBy {
    /// As user data, between tags of PowerShell.
    UserData,
    /// As a metadata key of the machine.
    Metadata,
    /// Not at all: the provider launches Linux only.
    Nothing,
}

/// Opens the provisioner of a config file. Sends nothing.
///
/// # Errors
/// The file's cloud is not in this build, has no credentials, or has a value that the cloud cannot accept.
pub(crate) async fn open(
    config: &ConfigFile,
    settings: &LaunchSettings,
    script: Option<&WindowsScript>,
) -> Result<Arc<dyn InstanceProvisioner>, Failure> {
    let limits = &config.limits;
    match config {
        #[cfg(feature = "ec2")]
        ConfigFile { ec2: Some(ec2), .. } => {
            layered(ec2::open(ec2, settings, limits).await?, settings, limits)
        }
        #[cfg(feature = "gcp")]
        ConfigFile { gcp: Some(gcp), .. } => {
            let opened = gcp::open(gcp, settings, limits, script).await?;
            layered(opened, settings, limits)
        }
        #[cfg(feature = "azure")]
        ConfigFile {
            azure: Some(azure), ..
        } => layered(azure::open(azure, settings, limits)?, settings, limits),
        #[cfg(feature = "memory")]
        ConfigFile {
            memory: Some(memory),
            ..
        } => layered(memory::open(memory)?, settings, limits),
        _ => {
            let _ = script;
            Err(not_built(config))
        }
    }
}

/// Puts the layers around a provisioner: timeouts, retries, and the alternatives of the settings.
fn layered(
    cloud: impl InstanceProvisioner + 'static,
    settings: &LaunchSettings,
    limits: &Limits,
) -> Result<Arc<dyn InstanceProvisioner>, Failure> {
    let mut stack = Stack::default();
    // One process makes one call: there is nothing to combine.
    stack.coalesce = None;
    if let Some(total) = Limits::duration(limits.total_timeout_seconds) {
        stack.total_timeout = Some(TimeoutPolicy::new(total));
    }
    let alternatives = settings.alternatives();
    let alternatives = alternatives.map_err(|invalid| Failure::new(invalid.to_string()))?;
    if !alternatives.is_empty() {
        stack.fallback = Some(FallbackPolicy::new(alternatives));
    }
    Ok(stack.wrap(cloud))
}

fn not_built(config: &ConfigFile) -> Failure {
    let cloud = config.cloud().unwrap_or("no cloud");
    Failure::new(format!(
        "this build has no support for {cloud}: it has {}; build it with `--features {cloud}`",
        built().join(", ")
    ))
}

/// Returns the clouds of this build.
pub(crate) fn built() -> Vec<&'static str> {
    let all = [
        ("ec2", cfg!(feature = "ec2")),
        ("gcp", cfg!(feature = "gcp")),
        ("azure", cfg!(feature = "azure")),
        ("memory", cfg!(feature = "memory")),
    ];
    let built = all.into_iter().filter(|(_, is_built)| *is_built);
    built.map(|(name, _)| name).collect()
}

/// Returns whether `text` has the form of an id of the cloud. The names of instances are not meant to have it, and one that has it is found
/// all the same.
pub(crate) fn is_id(config: &ConfigFile, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match config.cloud() {
        // "i-" and 8 or 17 hexadecimal digits (AWS, "Resource IDs").
        Some("ec2") => text
            .strip_prefix("i-")
            .is_some_and(|rest| matches!(rest.len(), 8 | 17) && rest.bytes().all(hex)),
        Some("gcp") => text.starts_with("gce://"),
        Some("azure") => text.starts_with("azure://"),
        _ => text.strip_prefix("machine-").is_some_and(digits),
    }
}

/// Returns how a Windows machine of the cloud gets its script.
pub(crate) fn windows_by(config: &ConfigFile) -> WindowsBy {
    match config.cloud() {
        Some("ec2") => WindowsBy::UserData,
        Some("gcp") => WindowsBy::Metadata,
        _ => WindowsBy::Nothing,
    }
}

/// Checks the values of the cloud's table as the provider does. Returns the first one that it refuses.
pub(crate) fn check(config: &ConfigFile) -> Option<Invalid> {
    let settings = &config.launch;
    let refused = |table: &str, invalid: &InvalidValue| {
        let field = invalid.field();
        let key: String = field.chars().take_while(|c| *c != '[').collect();
        (vec![table.to_owned(), key], invalid.to_string())
    };
    match config {
        #[cfg(feature = "ec2")]
        ConfigFile { ec2: Some(ec2), .. } => {
            let built = ec2::launch_config(ec2, settings);
            built.err().map(|invalid| refused("ec2", &invalid))
        }
        #[cfg(feature = "gcp")]
        ConfigFile { gcp: Some(gcp), .. } => {
            let built = gcp::launch_config(gcp, settings, None);
            built.err().map(|invalid| refused("gcp", &invalid))
        }
        #[cfg(feature = "azure")]
        ConfigFile {
            azure: Some(azure), ..
        } => {
            let built = azure::launch_config(azure, settings);
            built.err().map(|invalid| refused("azure", &invalid))
        }
        _ => {
            let _ = (settings, refused);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_names() {
        let ec2 = ConfigFile::parse("[ec2]\n").unwrap();
        assert!(is_id(&ec2, "i-0123456789abcdef0") && is_id(&ec2, "i-01234567"));
        for name in [
            "garm-ny9HeeQYw2rl",
            "i-ny9HeeQYw2rl",
            "i-0123456789ab",
            "i-0123456789ABCDEF0",
            "",
        ] {
            assert!(!is_id(&ec2, name), "{name}");
        }
        let memory = ConfigFile::parse("[memory]\nfolder = \"x\"\n").unwrap();
        assert!(is_id(&memory, "machine-0") && !is_id(&memory, "machine-a1"));
    }
}
