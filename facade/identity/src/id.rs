//! Who and whose: identifiers as types, so that a project is never passed where an organization belongs.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Makes a UUID of its own type. Two types with the same six impls are one macro here.
macro_rules! uuid_type {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// From a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// As a UUID.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

uuid_type! {
    /// A tenant: who has quota and whose projects there are.
    OrganizationId
}

uuid_type! {
    /// A part of an organization, in which instances and networks stand.
    ProjectId
}

/// Who acts, as records and logs keep it. Says nothing about what they may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", content = "name", rename_all = "kebab-case")]
pub enum Actor {
    /// A person or a program of a tenant.
    User(ActorName),
    /// A part of the façade itself: a controller, a monitor.
    Service(ActorName),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user {name}"),
            Self::Service(name) => write!(f, "service {name}"),
        }
    }
}

/// What an actor is called: 1 to 256 bytes without control characters, so that it fits into a line of a log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActorName(Arc<str>);

const MAX_ACTOR_BYTES: usize = 256;

impl ActorName {
    /// Checks the text.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        if (1..=MAX_ACTOR_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
            return Ok(Self(text.into()));
        }
        Err(InvalidName::new(
            "an actor",
            text,
            "1 to 256 bytes without control characters",
        ))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ActorName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl From<ActorName> for String {
    fn from(name: ActorName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A name that breaks the rules for its sort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:.80?} does not name {what}: want {wanted}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    wanted: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, text: &str, wanted: &'static str) -> Self {
        Self {
            what,
            text: text.to_owned(),
            wanted,
        }
    }
}

/// Whether a text is a lower-case name as roles and quota kinds have it.
pub(crate) fn is_lower_case_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read_as_uuids() {
        let text = "\"5ba1e150-0000-4000-8000-000000000001\"";
        let id: OrganizationId = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
        assert_eq!(id.to_string().parse::<OrganizationId>(), Ok(id));
        assert!(serde_json::from_str::<ProjectId>("\"blue\"").is_err());
    }

    #[test]
    fn an_actor_fits_into_a_line() {
        assert!(ActorName::new("alice@example.com").is_ok());
        for bad in ["", "two\nlines", &"x".repeat(257)] {
            assert!(ActorName::new(bad).is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<ActorName>("\"\\u0007\"").is_err());
    }

    #[test]
    fn an_actor_is_kept_with_its_sort() {
        let actor = Actor::Service(ActorName::new("monitor").unwrap());
        let json = serde_json::to_string(&actor).unwrap();
        assert_eq!(json, r#"{"type":"service","name":"monitor"}"#);
        assert_eq!(actor.to_string(), "service monitor");
    }
}
