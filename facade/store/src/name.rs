//! Names of records, as types that are always valid.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    Invalid,
    limits::{MAX_KEY_BYTES, MAX_NAME_BYTES},
};

/// Defines a checked string type. A macro, because three types have the same ten methods.
macro_rules! checked_string {
    ($(#[$docs:meta])* $name:ident, $check:path) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates the text.
            ///
            /// # Errors
            ///
            /// The text breaks the rules of the type, which the message states.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
                let text = text.as_ref();
                $check(stringify!($name), text)?;
                Ok(Self(text.into()))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(text: String) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Invalid;
            fn try_from(text: &str) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

checked_string! {
    /// The kind of a record, such as `server` or `network`: lower-case ASCII letters, digits, `-`,
    /// `_` and `.`, starting with a letter, at most 64 bytes.
    Kind, check_name
}

checked_string! {
    /// The name of an index of a kind, with the rules of [`Kind`].
    IndexName, check_name
}

checked_string! {
    /// The key of a record within its kind: 1 to 512 bytes of text without control characters,
    /// ordered by bytes.
    Key, check_key
}

fn check_name(what: &str, text: &str) -> Result<(), Invalid> {
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_lowercase());
    let has_valid_characters = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c));
    if starts_with_letter && has_valid_characters && text.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "{what} {text:.80?}: must have 1 to {MAX_NAME_BYTES} characters of a-z, 0-9, '-', '_' and '.', and start with a letter"
    )))
}

fn check_key(what: &str, text: &str) -> Result<(), Invalid> {
    let fits = (1..=MAX_KEY_BYTES).contains(&text.len());
    if fits && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "{what} {text:.80?}: must have 1 to {MAX_KEY_BYTES} bytes without control characters"
    )))
}

/// The id of a record: kind and key.
///
/// ```
/// use fleetwright_store::RecordId;
///
/// let id = RecordId::new("server", "s-1")?;
/// assert_eq!(id.to_string(), "server/s-1");
/// assert!(RecordId::new("Server", "s-1").is_err()); // kinds are lower case
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId {
    /// The kind.
    pub kind: Kind,
    /// The key.
    pub key: Key,
}

impl RecordId {
    /// Validates kind and key.
    ///
    /// # Errors
    ///
    /// The first of the two that is invalid.
    pub fn new(kind: impl AsRef<str>, key: impl AsRef<str>) -> Result<Self, Invalid> {
        Ok(Self {
            kind: Kind::new(kind)?,
            key: Key::new(key)?,
        })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_allow_only_their_characters() {
        for good in ["a", "server", "public-ip", "v1.server_2"] {
            assert!(Kind::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Server", "1st", "-a", "a b", "ä", &"a".repeat(65)] {
            assert!(Kind::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_allow_any_text_without_control_characters() {
        for good in ["a", "Ä/ 🦀", &"k".repeat(512)] {
            assert!(Key::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a\0", "a\n", &"k".repeat(513)] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn deserialized_name_is_validated() {
        assert!(serde_json::from_str::<Key>("\"\"").is_err());
        let key = serde_json::from_str::<Key>("\"a\"").unwrap();
        assert_eq!(serde_json::to_string(&key).unwrap(), "\"a\"");
    }
}
