//! Resource ids.
//!
//! An id is a path of eight segments: subscription, resource group, provider, type and name. Ids
//! are not case-sensitive: [`Id::path`] keeps the case that the client used, and [`Id::key`] is for
//! comparisons.

use crate::azure::error::Refusal;

/// The kinds of resources that clients create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A virtual machine.
    VirtualMachine,
    /// A managed disk.
    Disk,
    /// A managed image.
    Image,
    /// A network interface.
    Nic,
    /// A public address.
    PublicIp,
}

impl Kind {
    /// Returns the provider and the type, as ids and documents contain them.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::VirtualMachine => "Microsoft.Compute/virtualMachines",
            Self::Disk => "Microsoft.Compute/disks",
            Self::Image => "Microsoft.Compute/images",
            Self::Nic => "Microsoft.Network/networkInterfaces",
            Self::PublicIp => "Microsoft.Network/publicIPAddresses",
        }
    }

    /// Returns the provider alone, which the URLs of operations contain.
    pub(crate) const fn provider(self) -> &'static str {
        match self {
            Self::VirtualMachine | Self::Disk | Self::Image => "Microsoft.Compute",
            Self::Nic | Self::PublicIp => "Microsoft.Network",
        }
    }
}

/// The id of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    /// The kind of the resource.
    pub(crate) kind: Kind,
    /// The subscription, usually a GUID. The emulator accepts any text.
    pub(crate) subscription: String,
    /// The resource group.
    pub(crate) group: String,
    /// The name, unique in the group for this kind.
    pub(crate) name: String,
}

impl Id {
    /// Creates an id from its parts, in the case in which they are given.
    pub(crate) fn new(kind: Kind, subscription: &str, group: &str, name: &str) -> Self {
        Self {
            kind,
            subscription: subscription.to_owned(),
            group: group.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the id of another resource in the same resource group.
    pub(crate) fn sibling(&self, kind: Kind, name: &str) -> Self {
        Self::new(kind, &self.subscription, &self.group, name)
    }

    /// Parses the id of a resource of this kind from a document.
    ///
    /// # Errors
    ///
    /// 400 `LinkedInvalidPropertyId` if the text is not a resource id, or the id of another kind.
    pub(crate) fn read(kind: Kind, text: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = text.trim_start_matches('/').split('/').collect();
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        match parts.as_slice() {
            [
                subscriptions,
                subscription,
                groups,
                group,
                providers,
                provider,
                kinds,
                name,
            ] if same(subscriptions, "subscriptions")
                && same(groups, "resourceGroups")
                && same(providers, "providers")
                && same(&format!("{provider}/{kinds}"), kind.name())
                && !name.is_empty() =>
            {
                Ok(Self::new(kind, subscription, group, name))
            }
            _ => {
                let message = format!(
                    "The value '{text}' is not the id of a resource of type {}.",
                    kind.name()
                );
                Err(Refusal::client("LinkedInvalidPropertyId", message))
            }
        }
    }

    /// Returns the id as documents contain it.
    pub(crate) fn path(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{}/{}",
            self.subscription,
            self.group,
            self.kind.name(),
            self.name
        )
    }

    /// Returns the id in lower case, for lookups and comparisons.
    pub(crate) fn key(&self) -> String {
        self.path().to_ascii_lowercase()
    }

    /// Returns the resource manager's 404 `ResourceNotFound` for this id.
    pub(crate) fn not_found(&self) -> Refusal {
        Refusal::manager_not_found(self.kind.name(), &self.name, &self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_round_trips_and_rejects_other_texts() {
        let id = Id::new(Kind::Nic, "s", "Rg", "Nic1");
        assert_eq!(Id::read(Kind::Nic, &id.path()).unwrap(), id);
        let small = Id::read(Kind::Nic, &id.key()).unwrap();
        assert_eq!(small.key(), id.key());
        for bad in [
            "",
            "/",
            "nic1",
            "/subscriptions/s",
            &id.path()[..id.path().len() - 4],
        ] {
            assert!(Id::read(Kind::Nic, bad).is_err(), "{bad}");
        }
        assert!(Id::read(Kind::Disk, &id.path()).is_err());
    }
}
