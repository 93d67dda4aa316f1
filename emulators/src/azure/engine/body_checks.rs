//! Checks the document of a virtual machine, before anything is looked up.
//!
//! Owns the rules that need only the document: names, the administrator, Base64 data, priority and
//! zones. Rules that need the catalog or the state are in `plan`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::azure::{
    catalog::SizeSpec,
    error::Refusal,
    knobs::Market,
    wire::vm_body::{OsProfile, VmBody},
};

/// The maximum number of bytes of custom data, after decoding.
const MAX_CUSTOM_DATA: usize = 65_535;

/// The maximum length of the name of a virtual machine, and of a Linux host name.
const MAX_NAME_LENGTH: usize = 64;

/// The maximum length of a Windows host name.
const MAX_WINDOWS_NAME_LENGTH: usize = 15;

/// The maximum length of the name of a disk. It is larger, because the default name of an OS disk
/// extends the name of its virtual machine.
const MAX_DISK_NAME_LENGTH: usize = 80;

/// Refuses an invalid name of a virtual machine, with 400 `InvalidParameter`.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    check_name_format(name, MAX_NAME_LENGTH, "vmName")
}

/// Refuses an invalid name of a disk, with 400 `InvalidParameter`.
pub(super) fn check_disk_name(name: &str) -> Result<(), Refusal> {
    check_name_format(name, MAX_DISK_NAME_LENGTH, "disk.name")
}

/// Refuses a name with 400 `InvalidParameter` unless it starts with a letter or digit, ends with
/// one or an underscore, and has at most `max_length` characters of `A-Z a-z 0-9 . _ -`.
fn check_name_format(name: &str, max_length: usize, target: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let valid_start = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let valid_end = name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if valid_start && valid_end && name.len() <= max_length && name.chars().all(plain) {
        return Ok(());
    }
    let message = format!(
        "The entity name is invalid. Valid names start with a letter or number, contain only letters, numbers, \
         hyphens, periods and underscores, end with a letter, number or underscore, and have at most {max_length} \
         characters."
    );
    Err(Refusal::invalid(target, message))
}

/// Checks the administrator: a name that is allowed, and a password or an SSH key. Windows always
/// needs a password.
///
/// # Errors
///
/// 400 `InvalidParameter` with the property as `target`.
pub(super) fn check_user(profile: Option<&OsProfile>, name: &str, os: &str) -> Result<(), Refusal> {
    let profile = profile.ok_or_else(|| Refusal::missing("osProfile"))?;
    let windows = os.eq_ignore_ascii_case("windows");
    check_computer_name(profile.computer_name.as_deref().unwrap_or(name), windows)?;
    let user = profile.admin_username.as_deref().unwrap_or_default();
    if user.is_empty() {
        return Err(Refusal::missing("osProfile.adminUsername"));
    }
    if ["admin", "administrator", "root", "guest"].contains(&user.to_ascii_lowercase().as_str()) {
        let message = "The Admin Username specified is not allowed.";
        return Err(Refusal::invalid("adminUsername", message));
    }
    let linux = profile.linux_configuration.as_ref();
    let keys = linux.and_then(|linux| linux.ssh.as_ref()?.public_keys.as_ref());
    let has_key = keys.is_some_and(|keys| {
        keys.iter()
            .any(|key| key.key_data.as_deref().is_some_and(|data| !data.is_empty()))
    });
    let no_password = linux.and_then(|linux| linux.disable_password_authentication);
    match (profile.admin_password.is_some(), has_key) {
        (false, false) if no_password == Some(true) => Err(Refusal::invalid(
            "linuxConfiguration.ssh.publicKeys",
            "Authentication using either SSH or by user name and password must be enabled in Linux profile.",
        )),
        (false, false) => Err(Refusal::missing("osProfile.adminPassword")),
        (false, true) if windows => Err(Refusal::missing("osProfile.adminPassword")),
        (_, _) => Ok(()),
    }
}

/// Refuses a host name that is too long, entirely numeric, or has special characters, with 400
/// `InvalidParameter`.
fn check_computer_name(name: &str, windows: bool) -> Result<(), Refusal> {
    let max_length = if windows {
        MAX_WINDOWS_NAME_LENGTH
    } else {
        MAX_NAME_LENGTH
    };
    let forbidden = |c: char| c.is_whitespace() || "~!@#$%^&*()=+[]{}\\|;:'\",<>/?".contains(c);
    let digits = name.chars().all(|c| c.is_ascii_digit());
    if name.len() <= max_length && !digits && !name.contains(forbidden) {
        return Ok(());
    }
    let message = format!(
        "The computer name cannot be more than {max_length} characters long, be entirely numeric, or contain special \
         characters."
    );
    Err(Refusal::invalid("computerName", message))
}

/// Decodes the custom data.
///
/// # Errors
///
/// 400 `InvalidParameter` if it is not Base64, or longer than 65,535 bytes.
pub(super) fn custom_data(profile: Option<&OsProfile>) -> Result<Option<Arc<[u8]>>, Refusal> {
    let Some(text) = profile.and_then(|profile| profile.custom_data.as_deref()) else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(text).ok();
    match bytes.filter(|bytes| bytes.len() <= MAX_CUSTOM_DATA) {
        Some(bytes) => Ok(Some(bytes.into())),
        None => {
            let message = "Custom data in OSProfile must be in Base64 encoding and with a maximum length of 87380 \
                           characters.";
            Err(Refusal::invalid("customData", message))
        }
    }
}

/// Checks properties that are stored and returned unchanged: user data, the type of the identity,
/// and disks.
///
/// # Errors
///
/// 400 `InvalidParameter`, or 400 `NotSupported` for the write accelerator.
pub(super) fn check_stored(body: &VmBody) -> Result<(), Refusal> {
    let properties = &body.properties;
    let data = properties.user_data.as_deref();
    if data.is_some_and(|data| STANDARD.decode(data).is_err()) {
        let message = "User data must be in Base64 encoding.";
        return Err(Refusal::invalid("userData", message));
    }
    let kind = body.identity.as_ref().map(|it| it.r#type.as_deref());
    if !matches!(
        kind,
        None | Some(Some(
            "None" | "SystemAssigned" | "UserAssigned" | "SystemAssigned, UserAssigned"
        ))
    ) {
        let message = "The type of the identity is missing or not known.";
        return Err(Refusal::invalid("identity.type", message));
    }
    let storage = properties.storage_profile.as_ref();
    let disks = storage.into_iter().flat_map(|storage| {
        let more = storage.data_disks.iter().flatten();
        storage.os_disk.iter().chain(more)
    });
    for disk in disks {
        if disk.write_accelerator_enabled == Some(true) {
            return Err(Refusal::unsupported("writeAcceleratorEnabled"));
        }
    }
    Ok(())
}

/// Refuses accelerated networking of a size that does not offer it, with 400
/// `VMSizeIsNotPermittedToEnableAcceleratedNetworking`.
pub(super) fn check_accelerated(body: &VmBody, size: &SizeSpec) -> Result<(), Refusal> {
    let profile = body.properties.network_profile.as_ref();
    let configurations = profile.and_then(|it| it.network_interface_configurations.as_ref());
    let mut configurations = configurations.into_iter().flatten();
    let requested =
        configurations.any(|it| it.properties.enable_accelerated_networking == Some(true));
    if requested && !size.accelerated_networking {
        let message = format!(
            "The VM size '{}' is not permitted to enable accelerated networking.",
            size.name
        );
        let code = "VMSizeIsNotPermittedToEnableAcceleratedNetworking";
        return Err(Refusal::client(code, message));
    }
    Ok(())
}

/// Returns whether the document requests a regular or a spot machine.
///
/// # Errors
///
/// 400 `InvalidParameter` for an unknown priority, or an eviction policy of a regular machine.
pub(super) fn market(body: &VmBody) -> Result<Market, Refusal> {
    match body.properties.priority.as_deref() {
        None | Some("Regular") if body.properties.eviction_policy.is_some() => {
            let message = "Eviction policy can be set only on Azure Spot Virtual Machines.";
            Err(Refusal::invalid("evictionPolicy", message))
        }
        None | Some("Regular") => Ok(Market::OnDemand),
        Some("Spot" | "Low") => Ok(Market::Spot),
        Some(other) => {
            let message = format!("The value '{other}' of parameter 'priority' is not allowed.");
            Err(Refusal::invalid("priority", message))
        }
    }
}

/// Returns the availability zone, if there is one. More than one is refused with 400
/// `InvalidParameter`.
pub(super) fn zone(body: &VmBody) -> Result<Option<String>, Refusal> {
    match body.zones.as_deref() {
        None | Some([]) => Ok(None),
        Some([zone]) => Ok(Some(zone.clone())),
        Some(_) => {
            let message = "A virtual machine can be in one availability zone only.";
            Err(Refusal::invalid("zones", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(profile: serde_json::Value) -> String {
        let profile: OsProfile = serde_json::from_value(profile).unwrap();
        let checked = check_user(Some(&profile), "vm", "Linux");
        checked.map_or_else(|refusal| refusal.target.unwrap(), |()| "fine".to_owned())
    }

    #[test]
    fn login_method_is_required() {
        let keys =
            json!({ "ssh": { "publicKeys": [{ "path": "/x", "keyData": "ssh-rsa AAAA" }] } });
        assert_eq!(
            user(json!({ "adminUsername": "me", "linuxConfiguration": keys })),
            "fine"
        );
        assert_eq!(
            user(json!({ "adminUsername": "me", "adminPassword": "Pa55word!" })),
            "fine"
        );
        assert_eq!(
            user(json!({ "adminUsername": "me" })),
            "osProfile.adminPassword"
        );
        assert_eq!(
            user(json!({ "adminPassword": "x" })),
            "osProfile.adminUsername"
        );
        assert_eq!(
            user(json!({ "adminUsername": "Root", "adminPassword": "x" })),
            "adminUsername"
        );
        let closed = json!({ "disablePasswordAuthentication": true });
        let target = user(json!({ "adminUsername": "me", "linuxConfiguration": closed }));
        assert_eq!(target, "linuxConfiguration.ssh.publicKeys");
        let digits = json!({ "adminUsername": "me", "adminPassword": "x", "computerName": "123" });
        assert_eq!(user(digits), "computerName");
    }

    #[test]
    fn names_have_limited_characters_and_length() {
        for good in ["a", "Vm-1.x_", "0"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(65);
        for bad in ["", "-a", "a-", "a.", "a b", "a/b", "é", &long] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn custom_data_is_base64_and_bounded() {
        let data = |text: String| {
            let profile = OsProfile {
                custom_data: Some(text),
                ..OsProfile::default()
            };
            custom_data(Some(&profile)).map(|data| data.map_or(0, |data| data.len()))
        };
        assert_eq!(data(STANDARD.encode(b"hello")), Ok(5));
        assert_eq!(
            data(STANDARD.encode(vec![7; MAX_CUSTOM_DATA])),
            Ok(MAX_CUSTOM_DATA)
        );
        assert!(data(STANDARD.encode(vec![7; MAX_CUSTOM_DATA + 1])).is_err());
        assert!(data("#!/bin/sh".to_owned()).is_err());
    }
}
