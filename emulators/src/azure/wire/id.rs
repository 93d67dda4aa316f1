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
    /// A virtual network with its subnets.
    VirtualNetwork,
    /// A network security group with its rules.
    SecurityGroup,
    /// A snapshot of a disk.
    Snapshot,
    /// An SSH key.
    SshKey,
    /// A resource group. Its name is also the group of its id.
    ResourceGroup,
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
            Self::VirtualNetwork => "Microsoft.Network/virtualNetworks",
            Self::SecurityGroup => "Microsoft.Network/networkSecurityGroups",
            Self::Snapshot => "Microsoft.Compute/snapshots",
            Self::SshKey => "Microsoft.Compute/sshPublicKeys",
            Self::ResourceGroup => "Microsoft.Resources/resourceGroups",
        }
    }

    /// Returns the kind with this provider and type, in any case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// All kinds.
    pub(crate) const ALL: [Self; 10] = [
        Self::VirtualMachine,
        Self::Disk,
        Self::Image,
        Self::Nic,
        Self::PublicIp,
        Self::VirtualNetwork,
        Self::SecurityGroup,
        Self::Snapshot,
        Self::SshKey,
        Self::ResourceGroup,
    ];

    /// Returns the provider alone, which the URLs of operations contain.
    pub(crate) const fn provider(self) -> &'static str {
        match self {
            Self::VirtualMachine | Self::Disk | Self::Image | Self::Snapshot | Self::SshKey => {
                "Microsoft.Compute"
            }
            Self::Nic | Self::PublicIp | Self::VirtualNetwork | Self::SecurityGroup => {
                "Microsoft.Network"
            }
            Self::ResourceGroup => "Microsoft.Resources",
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

    /// Returns the id of a resource group.
    pub(crate) fn of_group(subscription: &str, name: &str) -> Self {
        Self::new(Kind::ResourceGroup, subscription, name, name)
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
        if self.kind == Kind::ResourceGroup {
            let Self {
                subscription, name, ..
            } = self;
            return format!("/subscriptions/{subscription}/resourceGroups/{name}");
        }
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

    /// Returns the resource manager's 404 for this id: `ResourceNotFound`, or
    /// `ResourceGroupNotFound`.
    pub(crate) fn not_found(&self) -> Refusal {
        if self.kind == Kind::ResourceGroup {
            return Refusal::group_not_found(&self.name);
        }
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
