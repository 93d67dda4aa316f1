//! The ids of a region's resources, one type for each, so that the compiler distinguishes them.
//!
//! Operators write the ids of flavors, images and regions into files, so these are short texts. Networks, security
//! groups and SSH certificate authorities are created by calls and have UUIDs. A network's UUID is also the namespace
//! from which the ids of its servers are derived.
//!
//! Every id is checked when it is created or deserialized, has one textual form, and is a string in JSON.
//!
//! ```
//! use fleetwright_region::ids::{FlavorId, NetworkId};
//!
//! let flavor = FlavorId::new("standard-4")?;
//! assert_eq!(flavor.as_str(), "standard-4");
//! assert!(FlavorId::new("Standard 4").is_err());
//!
//! let network: NetworkId = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee".parse()?;
//! assert!(NetworkId::new("b059b3e69ae542b794b4f42fb7a6baee").is_err(), "hyphens are required");
//! # let _ = network;
//! # Ok::<(), fleetwright_region::ids::InvalidId>(())
//! ```

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest id of a flavor, image or region, in characters.
pub const MAX_ID_CHARS: usize = 63;

/// A text that is not a valid id. The message shows at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: expected {expected}")]
pub struct InvalidId {
    what: &'static str,
    text: String,
    expected: &'static str,
}

impl InvalidId {
    fn new(what: &'static str, text: &str, expected: &'static str) -> Self {
        // A message is one line of a log, however long the text is.
        let text = text.chars().take(80).collect();
        Self {
            what,
            text,
            expected,
        }
    }

    /// Returns a description of the accepted form.
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

fn check_text_id(what: &'static str, text: &str) -> Result<(), InvalidId> {
    let fits = (1..=MAX_ID_CHARS).contains(&text.len());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if fits && text.chars().all(allowed) && text.starts_with(edge) && text.ends_with(edge) {
        return Ok(());
    }
    let expected =
        "1 to 63 of a-z, 0-9, '-', '.' and '_', beginning and ending with a letter or digit";
    Err(InvalidId::new(what, text, expected))
}

/// The conversions of both sorts of ids from and to text.
macro_rules! as_text {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidId;
            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.as_text())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id from 1 to 63 of a-z, 0-9, `-`, `.` and `_`, beginning and ending with a letter or digit.
            ///
            /// # Errors
            ///
            /// The text has another length, another character, or punctuation at an end.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                check_text_id($what, text)?;
                Ok(Self(text.into()))
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            fn as_text(&self) -> std::borrow::Cow<'_, str> {
                (&*self.0).into()
            }
        }

        as_text!($name);
    };
}

macro_rules! uuid_id {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// Parses a UUID in the form with hyphens, in either case.
            ///
            /// # Errors
            ///
            /// The text is in another form. Other forms of the same UUID would be other keys of the same record.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                let read = Uuid::try_parse(text).ok().map(Self);
                let same = |id: &Self| id.as_text().eq_ignore_ascii_case(text);
                read.filter(same)
                    .ok_or_else(|| InvalidId::new($what, text, "a UUID with hyphens"))
            }

            /// Creates an id from a UUID.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID: the namespace of ids that are derived from this one.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }

            fn as_text(&self) -> std::borrow::Cow<'_, str> {
                self.0.hyphenated().to_string().into()
            }
        }

        as_text!($name);
    };
}

text_id! {
    /// The id of a flavor in the catalog.
    FlavorId, "flavor id"
}
text_id! {
    /// The id of an image in the catalog, from its file or created by a tenant.
    ImageId, "image id"
}
text_id! {
    /// The id of a region: one provisioner with its mapping.
    RegionId, "region id"
}
uuid_id! {
    /// The id of a network of a project in a region.
    NetworkId, "network id"
}
uuid_id! {
    /// The id of a security group on a network.
    SecurityGroupId, "security group id"
}
uuid_id! {
    /// The id of an SSH certificate authority of a project.
    SshAuthorityId, "SSH certificate authority id"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_id_is_refused_with_the_accepted_form() {
        let long = "x".repeat(64);
        for bad in ["", "A", "a b", "-a", "a-", "ä", "a\n", long.as_str()] {
            let error = FlavorId::new(bad).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("not a valid flavor id: expected 1 to 63"),
                "{error}"
            );
            assert!(serde_json::from_value::<FlavorId>(bad.into()).is_err());
        }
        assert_eq!(
            NetworkId::new("blue").unwrap_err().to_string(),
            "\"blue\" is not a valid network id: expected a UUID with hyphens"
        );
    }

    #[test]
    fn uuid_has_one_accepted_form() {
        let text = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee";
        let id = NetworkId::new(text).unwrap();
        assert_eq!(NetworkId::new(text.to_uppercase()).unwrap(), id);
        assert_eq!(id.to_string(), text);
        assert_eq!(format!("{id:?}"), format!("NetworkId({text})"));
        for other in [
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
        ] {
            assert!(NetworkId::new(other).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_unchanged_or_refused_in_one_line(text in ".{0,100}") {
            match FlavorId::new(&text) {
                Ok(id) => {
                    prop_assert_eq!(id.as_str(), &text);
                    let json = serde_json::to_string(&id).unwrap();
                    prop_assert_eq!(serde_json::from_str::<FlavorId>(&json).unwrap(), id);
                }
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
            prop_assert!(NetworkId::new(&text).is_err());
        }

        #[test]
        fn any_uuid_round_trips(bits in any::<u128>()) {
            let id = SecurityGroupId::from_uuid(Uuid::from_u128(bits));
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(serde_json::from_str::<SecurityGroupId>(&json).unwrap(), id);
            prop_assert_eq!(id.to_string().parse::<SecurityGroupId>().unwrap().as_uuid(), id.as_uuid());
        }
    }
}
