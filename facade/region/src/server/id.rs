//! The ids of servers and of their owners.

use std::{fmt, str::FromStr};

use fleetwright_store::{Invalid, Key};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a server. The owner chooses it: an instance and its server have the same UUID.
///
/// ```
/// use fleetwright_region::server::ServerId;
/// use uuid::Uuid;
///
/// let id = ServerId::from_uuid(Uuid::from_u128(7));
/// assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007");
/// assert_eq!(id.to_string().parse(), Ok(id));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerId(Uuid);

impl ServerId {
    /// Creates an id from a UUID.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns it as a UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// Returns the key of its record.
    pub fn key(&self) -> Result<Key, Invalid> {
        Key::new(self.to_string())
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerId({self})")
    }
}

impl FromStr for ServerId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// The owner of a server: a record, named by its kind and its id. It has no other server.
///
/// ```
/// use fleetwright_region::server::Owner;
///
/// assert_eq!(Owner::new("instance", "web-01").to_string(), "instance web-01");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The kind of the record: `instance`.
    pub kind: String,
    /// The id of the record.
    pub id: String,
}

impl Owner {
    /// Creates an owner from the kind and the id of its record.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            id: id.into(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_the_key_of_its_record() {
        let id: ServerId = "cea82847-20ce-5f13-87fb-9f3cc7da081d".parse().unwrap();
        assert_eq!(id.key().unwrap().as_str(), id.to_string());
        assert!("blue".parse::<ServerId>().is_err());
    }
}
