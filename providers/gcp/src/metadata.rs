//! The metadata of an instance: user data, and values for which Compute Engine has no field. Pure.
//!
//! Owns the keys. A launch config cannot set a key that this crate uses.
//!
//! Metadata is replaced as a whole, by fingerprint, like labels. Values are text of at most 256
//! KiB. An error message of Compute Engine can quote values, which [`crate::error`] cuts off.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use fleetwright::{InvalidValue, Problem, UserData};
use google_cloud_compute_v1::model::{Metadata, metadata::Items};

use crate::UserDataAs;

/// The fingerprint of the config that the instance was launched with.
pub(crate) const CONFIG: &str = "fleetwright-config";
/// The image as the launch named it. An instance does not have it, and its disk has another name
/// for it.
pub(crate) const IMAGE: &str = "fleetwright-image";
/// The owner mark: a digest of the launch token.
pub(crate) const OWNER: &str = "fleetwright-token";
/// The tags that are not valid labels, as JSON.
pub(crate) const TAGS: &str = "fleetwright-tags";

/// The prefix of the keys that this crate uses.
const OWN_PREFIX: &str = "fleetwright-";
/// The key that cloud-init reads.
const USER_DATA: &str = "user-data";
/// The key by which cloud-init recognizes base64.
const ENCODING: &str = "user-data-encoding";
/// The key that Google's guest agent runs.
const STARTUP_SCRIPT: &str = "startup-script";

/// The largest user data in bytes. As base64 it fits into one item, which has at most 256 KiB.
pub(crate) const MAX_USER_DATA_BYTES: usize = 192 * 1024;

/// Returns the items of user data. Values are text; other bytes are base64, which cloud-init
/// decodes.
///
/// # Errors
///
/// If a startup script is not text.
pub(crate) fn user_data(data: &UserData, how: UserDataAs) -> Result<Vec<Items>, InvalidValue> {
    let text = std::str::from_utf8(data.as_bytes()).ok();
    let plain = text.filter(|text| text.chars().all(is_plain));
    match (how, plain) {
        (UserDataAs::CloudInit, Some(text)) => Ok(vec![item(USER_DATA, text)]),
        (UserDataAs::CloudInit, None) => {
            let encoded = BASE64_STANDARD.encode(data.as_bytes());
            Ok(vec![item(USER_DATA, &encoded), item(ENCODING, "base64")])
        }
        (UserDataAs::StartupScript, Some(text)) => Ok(vec![item(STARTUP_SCRIPT, text)]),
        (UserDataAs::StartupScript, None) => {
            let expected = "text: a startup script cannot carry other bytes; use cloud-init";
            Err(InvalidValue::new(
                "user data",
                Problem::Malformed { expected },
            ))
        }
    }
}

/// Whether metadata transports a character unchanged.
fn is_plain(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}

/// Creates an item.
pub(crate) fn item(key: &str, value: &str) -> Items {
    Items::new().set_key(key).set_value(value)
}

/// Returns the value of `key`.
pub(crate) fn value<'a>(metadata: Option<&'a Metadata>, key: &str) -> Option<&'a str> {
    let items = metadata.map(|metadata| metadata.items.as_slice());
    let found = items
        .unwrap_or_default()
        .iter()
        .find(|item| item.key.as_deref() == Some(key));
    found.and_then(|item| item.value.as_deref())
}

/// Returns `metadata` with another value of `key`, or without the key. Keeps the fingerprint.
pub(crate) fn with(metadata: Option<&Metadata>, key: &str, value: Option<&str>) -> Metadata {
    let mut changed = metadata.cloned().unwrap_or_default();
    changed
        .items
        .retain(|item| item.key.as_deref() != Some(key));
    changed.items.extend(value.map(|value| item(key, value)));
    changed
}

/// Checks that a launch config may set this key.
pub(crate) fn check_key(key: &str) -> Result<(), InvalidValue> {
    let field = || format!("metadata[{key:?}]");
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if key.is_empty() || key.len() > 127 || !key.bytes().all(inside) {
        let expected = "a metadata key: letters, digits, _ and -, at most 127";
        return Err(InvalidValue::new(field(), Problem::Malformed { expected }));
    }
    if key.starts_with(OWN_PREFIX) || [USER_DATA, ENCODING, STARTUP_SCRIPT].contains(&key) {
        let prefix = key.to_owned();
        return Err(InvalidValue::new(field(), Problem::Reserved { prefix }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[u8], how: UserDataAs) -> Result<Vec<(String, String)>, InvalidValue> {
        let items = user_data(&UserData::new(data).unwrap(), how)?;
        let pair = |item: Items| (item.key.unwrap(), item.value.unwrap());
        Ok(items.into_iter().map(pair).collect())
    }

    #[test]
    fn text_is_unchanged_and_other_bytes_are_base64() {
        let text = "#cloud-config\nhostname: zürich\n";
        let read_text = read(text.as_bytes(), UserDataAs::CloudInit).unwrap();
        assert_eq!(read_text, [(USER_DATA.to_owned(), text.to_owned())]);
        for bytes in [&b"\x1f\x8b\x08\xff"[..], b"a\0b", b"a\r\nb"] {
            let items = read(bytes, UserDataAs::CloudInit).unwrap();
            assert_eq!(items[1], (ENCODING.to_owned(), "base64".to_owned()));
            assert_eq!(BASE64_STANDARD.decode(&items[0].1).unwrap(), bytes);
        }
    }

    #[test]
    fn startup_script_must_be_text() {
        let script = read(b"#!/bin/sh\n", UserDataAs::StartupScript).unwrap();
        assert_eq!(script[0].0, STARTUP_SCRIPT);
        let refused = read(b"\x1f\x8b", UserDataAs::StartupScript).unwrap_err();
        assert_eq!(refused.field(), "user data");
    }

    #[test]
    fn largest_user_data_fits_one_item() {
        let data = UserData::new(vec![0; MAX_USER_DATA_BYTES]).unwrap();
        let items = user_data(&data, UserDataAs::CloudInit).unwrap();
        assert_eq!(items[0].value.as_ref().unwrap().len(), 256 * 1024);
    }

    #[test]
    fn items_are_replaced_and_removed() {
        let one = with(None, "a", Some("1"));
        let two = with(Some(&one), "b", Some("2"));
        let changed = with(Some(&two), "a", Some("3"));
        assert_eq!(value(Some(&changed), "a"), Some("3"));
        assert_eq!(value(Some(&changed), "b"), Some("2"));
        assert_eq!(with(Some(&changed), "a", None).items.len(), 1);
        for (key, good) in [
            ("a_B-9", true),
            ("", false),
            ("a b", false),
            ("user-data", false),
        ] {
            assert_eq!(check_key(key).is_ok(), good, "{key}");
        }
        assert!(check_key(TAGS).is_err() && check_key(&"k".repeat(128)).is_err());
    }
}
