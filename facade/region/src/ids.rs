//! What the things of a region are called, each its own type so that none is passed for another.
//!
//! People write the ids of flavors, images and regions into files, so those are short texts. Networks, security
//! groups and certificate authorities are made by calls, and are UUIDs: a network is the namespace in which the ids of
//! its servers are derived.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest id that a person may write.
pub const MAX_ID_CHARS: usize = 63;

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: want {wanted}")]
pub struct InvalidId {
    what: &'static str,
    text: String,
    wanted: &'static str,
}

impl InvalidId {
    fn new(what: &'static str, text: &str, wanted: &'static str) -> Self {
        // A message is one line of a log, whatever was sent.
        let text = text.chars().take(80).collect();
        Self { what, text, wanted }
    }

    /// What would be accepted.
    pub fn wanted(&self) -> &'static str {
        self.wanted
    }
}

fn check_written(what: &'static str, text: &str) -> Result<(), InvalidId> {
    let fits = (1..=MAX_ID_CHARS).contains(&text.len());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if fits && text.chars().all(allowed) && text.starts_with(edge) && text.ends_with(edge) {
        return Ok(());
    }
    let wanted =
        "1 to 63 of a-z, 0-9, '-', '.' and '_', beginning and ending with a letter or digit";
    Err(InvalidId::new(what, text, wanted))
}

/// What both sorts of ids have in common: they are made of text, shown as text, and checked when read from JSON.
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

macro_rules! written_id {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text: 1 to 63 of a-z, 0-9, `-`, `.` and `_`, beginning and ending with a letter or digit.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                check_written($what, text)?;
                Ok(Self(text.into()))
            }

            /// The text.
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

macro_rules! made_id {
    ($(#[$docs:meta])* $name:ident, $what:literal) => {
        $(#[$docs])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// Reads a UUID in the form with hyphens.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                // Other forms of the same UUID would be other keys of the same record.
                let read = Uuid::try_parse(text).ok().map(Self);
                let same = |id: &Self| id.as_text().eq_ignore_ascii_case(text);
                read.filter(same)
                    .ok_or_else(|| InvalidId::new($what, text, "a UUID with hyphens"))
            }

            /// This UUID.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// As a UUID: the namespace of what is derived from it.
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

written_id! {
    /// A size of server, as the catalog has it.
    FlavorId, "flavor id"
}
written_id! {
    /// What a server boots from, as the catalog has it.
    ImageId, "image id"
}
written_id! {
    /// A region: one provisioner with what it offers.
    RegionId, "region id"
}
made_id! {
    /// A network of a project in a region.
    NetworkId, "network id"
}
made_id! {
    /// A security group on a network.
    SecurityGroupId, "security group id"
}
made_id! {
    /// An SSH certificate authority of a project.
    SshAuthorityId, "SSH certificate authority id"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_id_is_refused_with_what_would_be_taken() {
        let long = "x".repeat(64);
        for bad in ["", "A", "a b", "-a", "a-", "ä", "a\n", long.as_str()] {
            let error = FlavorId::new(bad).unwrap_err();
            assert!(
                error.to_string().contains("no flavor id: want 1 to 63"),
                "{error}"
            );
            assert!(serde_json::from_value::<FlavorId>(bad.into()).is_err());
        }
        assert_eq!(
            NetworkId::new("blue").unwrap_err().to_string(),
            "\"blue\" is no network id: want a UUID with hyphens"
        );
    }

    #[test]
    fn a_uuid_has_one_form() {
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
        fn any_text_is_an_id_as_a_whole_or_refused_in_one_line(text in ".{0,100}") {
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
