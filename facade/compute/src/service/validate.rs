//! Checks of the form of each field, before anything it refers to is read. Pure, and the same for every caller.
//!
//! The limits keep a record far below a store's size limit. Errors name the field as the HTTP interface does.

use fleetwright::{RESERVED_PREFIX, Tags};
use fleetwright_region::{
    server::{MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES},
    tags::is_reserved,
};

use crate::{ComputeError, instance::InstanceSpec};

/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// The most tags of an instance.
pub const MAX_TAGS: usize = 32;
/// The longest key of a tag, in characters.
pub const MAX_TAG_KEY_CHARS: usize = 128;
/// The longest value of a tag, in characters.
pub const MAX_TAG_VALUE_CHARS: usize = 256;

/// The most bytes of the keys and values of all tags together. A server's record contains them four times.
pub const MAX_TAG_BYTES: usize = 4096;

/// Checks the fields that are stored as the caller sent them. Returns the first error.
pub(super) fn check(
    description: Option<&str>,
    tags: &Tags,
    spec: &InstanceSpec,
) -> Result<(), ComputeError> {
    check_description(description)?;
    check_tags(tags)?;
    let groups = spec.networking.security_groups.len();
    if groups > MAX_SECURITY_GROUPS {
        return Err(bad_field(
            "spec.networking.securityGroups",
            format!(
                "{groups} security groups are too many: at most {MAX_SECURITY_GROUPS} are allowed; merge their rules into fewer groups"
            ),
        ));
    }
    let bytes = spec.user_data.as_ref();
    let bytes = bytes.map_or(0, |data| data.as_bytes().len());
    if bytes > MAX_USER_DATA_BYTES {
        return Err(bad_field(
            "spec.userData",
            format!("{bytes} bytes are too many: at most {MAX_USER_DATA_BYTES} are allowed"),
        ));
    }
    Ok(())
}

fn check_description(description: Option<&str>) -> Result<(), ComputeError> {
    let Some(text) = description else {
        return Ok(());
    };
    let count = text.chars().count();
    if count > MAX_DESCRIPTION_CHARS {
        return Err(bad_field(
            "metadata.description",
            format!("{count} characters are too many: at most {MAX_DESCRIPTION_CHARS} are allowed"),
        ));
    }
    Ok(())
}

fn check_tags(tags: &Tags) -> Result<(), ComputeError> {
    if tags.len() > MAX_TAGS {
        let count = tags.len();
        return Err(bad_field(
            "metadata.tags",
            format!("{count} tags are too many: at most {MAX_TAGS} are allowed"),
        ));
    }
    let bytes: usize = tags
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > MAX_TAG_BYTES {
        return Err(bad_field(
            "metadata.tags",
            format!(
                "{bytes} bytes are too many: all keys and values together have at most {MAX_TAG_BYTES}"
            ),
        ));
    }
    for (key, value) in tags {
        let field = || format!("metadata.tags[{:?}]", shorten(key));
        let (key_chars, value_chars) = (key.chars().count(), value.chars().count());
        if is_reserved(key) {
            let prefix = RESERVED_PREFIX.trim_end_matches(':');
            return Err(bad_field(
                field(),
                format!(
                    "keys that begin with {prefix} and ':', '/' or '-' are reserved: choose another key"
                ),
            ));
        }
        if key.chars().any(char::is_control) || value.chars().any(char::is_control) {
            return Err(bad_field(
                field(),
                "it contains a control character: remove it".to_owned(),
            ));
        }
        if key_chars > MAX_TAG_KEY_CHARS {
            return Err(bad_field(
                field(),
                format!(
                    "a key of {key_chars} characters is too long: at most {MAX_TAG_KEY_CHARS} are allowed"
                ),
            ));
        }
        if value_chars > MAX_TAG_VALUE_CHARS {
            return Err(bad_field(
                field(),
                format!(
                    "a value of {value_chars} characters is too long: at most {MAX_TAG_VALUE_CHARS} are allowed"
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses additional source addresses, which no region supports: each cloud permits all of them or none (`docs/decisions/0035-source-addresses.md`). The error
/// names the address family.
pub(super) fn check_sources(spec: &InstanceSpec) -> Result<(), ComputeError> {
    let Some(first) = spec.networking.allowed_sources.first() else {
        return Ok(());
    };
    let family = if first.net().addr().is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    };
    Err(ComputeError::Unprocessable {
        field: "spec.networking.allowedSourceAddresses".to_owned(),
        problem: format!(
            "no region supports additional source addresses, such as the {family} range {first}: remove them"
        ),
    })
}

fn bad_field(field: impl Into<String>, problem: String) -> ComputeError {
    ComputeError::BadField {
        field: field.into(),
        problem,
    }
}

/// The start of a key, for an error in one line.
fn shorten(key: &str) -> String {
    let mut shown: String = key.chars().take(40).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    shown
}
