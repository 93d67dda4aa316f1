//! The ids of instances, and how they are derived from network and name.

use std::{fmt, str::FromStr};

use fleetwright_region::{
    ids::NetworkId,
    name::Name,
    server::{Owner, ServerId},
};
use fleetwright_store::{Invalid, Key};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of an instance. The same name in the same network always has the same id, so that two creations of one name conflict in the
/// store.
///
/// ```
/// use fleetwright_compute::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network: NetworkId = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee".parse()?;
/// let id = InstanceId::derive(network, &"my-host".parse()?);
/// assert_eq!(id.to_string(), "cea82847-20ce-5f13-87fb-9f3cc7da081d");
/// assert_eq!("cea82847-20ce-5f13-87fb-9f3cc7da081d".parse::<InstanceId>()?, id);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(Uuid);

impl InstanceId {
    /// Derives the id of the instance of this name in this network: the name's UUID (version 5) in the namespace of the network. If its
    /// text does not begin with a letter, the bytes of the UUID are hashed again until it does, because some systems accept only names
    /// that begin with a letter.
    ///
    /// The derivation must never change: existing instances would no longer be found.
    pub fn derive(network: NetworkId, name: &Name) -> Self {
        let namespace = network.as_uuid();
        let mut id = Uuid::new_v5(&namespace, name.as_str().as_bytes());
        while !begins_with_letter(&id) {
            id = Uuid::new_v5(&namespace, id.as_bytes());
        }
        Self(id)
    }

    /// Creates an id from a UUID.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Returns it as a UUID.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// The key of its record.
    pub fn key(&self) -> Result<Key, Invalid> {
        Key::new(self.to_string())
    }

    /// Returns the id of its server. The instance's record has it too.
    pub fn server(&self) -> ServerId {
        ServerId::from_uuid(self.0)
    }

    /// The owner in the server's record.
    pub fn owner(&self) -> Owner {
        Owner::new(crate::schema::INSTANCE_KIND, self.to_string())
    }
}

/// Whether the first of the 32 hexadecimal digits is a letter: the first four bits are ten or more.
fn begins_with_letter(id: &Uuid) -> bool {
    id.as_bytes()[0] >= 0xa0
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}

impl FromStr for InstanceId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn derived(network: &str, name: &str) -> String {
        let network = NetworkId::new(network).unwrap();
        InstanceId::derive(network, &Name::new(name).unwrap()).to_string()
    }

    #[test]
    fn derived_ids_never_change() {
        let network = "b059b3e6-9ae5-42b7-94b4-f42fb7a6baee";
        // Hashed once, and hashed again once.
        assert_eq!(
            derived(network, "my-host"),
            "cea82847-20ce-5f13-87fb-9f3cc7da081d"
        );
        assert_eq!(
            derived(network, "test-instance"),
            "a545d185-a9be-5e00-9029-6c8c7df00a01"
        );
        assert_eq!(
            derived("a1b2c3d4-e5f6-4789-8abc-def012345678", "web-01"),
            "ecb348fb-92ec-585f-8263-681ae23f8f7f"
        );
    }

    /// These names are not valid for tenants; they need two rounds of hashing.
    #[test]
    fn hashing_repeats_until_the_id_begins_with_a_letter() {
        let namespace = Uuid::NAMESPACE_DNS;
        let derive = |name: &str| {
            let mut id = Uuid::new_v5(&namespace, name.as_bytes());
            let mut rounds = 0;
            while !begins_with_letter(&id) {
                id = Uuid::new_v5(&namespace, id.as_bytes());
                rounds += 1;
            }
            (id.to_string(), rounds)
        };
        let bar = "fd088d96-7c6b-5adf-8581-cbb18a5dad67";
        assert_eq!(derive("foo:bar").0, bar);
        let baz = "fae08b48-6d31-57e0-ba2d-1619034aaae7";
        assert_eq!(derive("foo:baz"), (baz.to_owned(), 2));
    }

    proptest! {
        #[test]
        fn derived_id_begins_with_a_letter_and_equals_the_server_id(
            network in any::<u128>(),
            name in "[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?",
        ) {
            let network = NetworkId::from_uuid(Uuid::from_u128(network));
            let id = InstanceId::derive(network, &Name::new(&name).unwrap());
            prop_assert!(id.to_string().starts_with(|c: char| c.is_ascii_alphabetic()));
            prop_assert_eq!(id.server().as_uuid(), id.as_uuid());
            prop_assert_eq!(id.to_string().parse::<InstanceId>().unwrap(), id);
        }
    }
}
