//! What a field must look like before anything is asked about what it means. Pure, and the same for every caller.
//!
//! The limits keep a record far from what a store takes, and what is refused here is refused with the field's name as an
//! interface has it.

use fleetwright::{RESERVED_PREFIX, Tags};
use fleetwright_region::{
    server::{MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES},
    tags::is_reserved,
};

use crate::{ComputeError, instance::InstanceSpec};

/// How many characters a description has at the most.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// How many tags an instance has at the most.
pub const MAX_TAGS: usize = 32;
/// How many characters the key of a tag has at the most.
pub const MAX_TAG_KEY_CHARS: usize = 128;
/// How many characters the value of a tag has at the most.
pub const MAX_TAG_VALUE_CHARS: usize = 256;

/// How many bytes the keys and values of all tags have at the most, together. A server's record has them four times.
pub const MAX_TAG_BYTES: usize = 4096;

/// What a caller says of an instance, all of it that is written as it comes.
pub(super) fn check(
    description: Option<&str>,
    tags: &Tags,
    spec: &InstanceSpec,
) -> Result<(), ComputeError> {
    check_description(description)?;
    check_tags(tags)?;
    let groups = spec.networking.security_groups.len();
    if groups > MAX_SECURITY_GROUPS {
        return Err(bad(
            "spec.networking.securityGroups",
            format!(
                "{groups} are given, and at most {MAX_SECURITY_GROUPS} are taken: put their rules into fewer"
            ),
        ));
    }
    let bytes = spec.user_data.as_ref();
    let bytes = bytes.map_or(0, |data| data.as_bytes().len());
    if bytes > MAX_USER_DATA_BYTES {
        return Err(bad(
            "spec.userData",
            format!("{bytes} bytes are too many: at most {MAX_USER_DATA_BYTES} are taken"),
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
        return Err(bad(
            "metadata.description",
            format!("{count} characters are too many: at most {MAX_DESCRIPTION_CHARS} are taken"),
        ));
    }
    Ok(())
}

fn check_tags(tags: &Tags) -> Result<(), ComputeError> {
    if tags.len() > MAX_TAGS {
        let count = tags.len();
        return Err(bad(
            "metadata.tags",
            format!("{count} are given, and at most {MAX_TAGS} are taken"),
        ));
    }
    let bytes: usize = tags
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > MAX_TAG_BYTES {
        return Err(bad(
            "metadata.tags",
            format!("their {bytes} bytes are too many: at most {MAX_TAG_BYTES} are taken in all"),
        ));
    }
    for (key, value) in tags {
        let field = || format!("metadata.tags[{:?}]", shown(key));
        let (of_key, of_value) = (key.chars().count(), value.chars().count());
        if is_reserved(key) {
            let prefix = RESERVED_PREFIX.trim_end_matches(':');
            return Err(bad(
                field(),
                format!(
                    "keys that begin with {prefix} and ':', '/' or '-' are the system's own: choose another key"
                ),
            ));
        }
        if key.chars().any(char::is_control) || value.chars().any(char::is_control) {
            return Err(bad(
                field(),
                "there is a control character in it".to_owned(),
            ));
        }
        if of_key > MAX_TAG_KEY_CHARS {
            return Err(bad(
                field(),
                format!(
                    "a key of {of_key} characters is too long: at most {MAX_TAG_KEY_CHARS} are taken"
                ),
            ));
        }
        if of_value > MAX_TAG_VALUE_CHARS {
            return Err(bad(
                field(),
                format!(
                    "a value of {of_value} characters is too long: at most {MAX_TAG_VALUE_CHARS} are taken"
                ),
            ));
        }
    }
    Ok(())
}

/// That addresses are to be sent from which no region lets a machine send from. Told apart by family, because that is the first
/// thing a reader wonders about.
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
            "no region here lets a machine send from addresses that are not its own, as the {family} range {first}: leave it out"
        ),
    })
}

fn bad(field: impl Into<String>, problem: String) -> ComputeError {
    ComputeError::BadField {
        field: field.into(),
        problem,
    }
}

/// A key as an error shows it: one readable line.
fn shown(key: &str) -> String {
    let mut shown: String = key.chars().take(40).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    shown
}
