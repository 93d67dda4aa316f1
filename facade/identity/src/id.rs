//! Identifiers as types, so that a project id cannot be passed as an organization id.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ActorName;

/// Defines a UUID newtype. A macro, because two types have the same six impls.
macro_rules! uuid_type {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID.
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
    /// The id of an organization: a tenant, which has quota and projects.
    OrganizationId
}

uuid_type! {
    /// The id of a project: a part of an organization that contains instances and networks.
    ProjectId
}

/// The actor of a call, as records and logs store it. It has no permissions by itself: see
/// [`Principal`](crate::Principal).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", content = "name", rename_all = "kebab-case")]
pub enum Actor {
    /// A person or a program of a tenant, or an operator.
    User(ActorName),
    /// A component of the façade, such as a controller.
    Service(ActorName),
}

impl Actor {
    /// Returns the type as it is serialized, and the name: the parts of an index value.
    pub(crate) fn parts(&self) -> (&'static str, &ActorName) {
        match self {
            Self::User(name) => ("user", name),
            Self::Service(name) => ("service", name),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user {name}"),
            Self::Service(name) => write!(f, "service {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_serialize_as_uuids() {
        let text = "\"5ba1e150-0000-4000-8000-000000000001\"";
        let id: OrganizationId = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
        assert_eq!(id.to_string().parse::<OrganizationId>(), Ok(id));
        assert!(serde_json::from_str::<ProjectId>("\"blue\"").is_err());
    }

    #[test]
    fn actor_serializes_with_its_type() {
        let actor = Actor::Service(ActorName::new("monitor").unwrap());
        let json = serde_json::to_string(&actor).unwrap();
        assert_eq!(json, r#"{"type":"service","name":"monitor"}"#);
        assert_eq!(actor.to_string(), "service monitor");
        assert_eq!(actor.parts().0, "service");
        let user = Actor::User(ActorName::new("ada").unwrap());
        let json = serde_json::to_value(&user).unwrap();
        assert_eq!(
            (json["type"].as_str(), json["name"].as_str()),
            (Some(user.parts().0), Some("ada"))
        );
    }
}
