//! Resource ids, which are not case-sensitive.

use crate::azure::error::Refusal;

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    VirtualMachine,
    Disk,
    Image,
    Nic,
    PublicIp,
}

impl Kind {
    /// The provider and the type, as ids and documents have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::VirtualMachine => "Microsoft.Compute/virtualMachines",
            Self::Disk => "Microsoft.Compute/disks",
            Self::Image => "Microsoft.Compute/images",
            Self::Nic => "Microsoft.Network/networkInterfaces",
            Self::PublicIp => "Microsoft.Network/publicIPAddresses",
        }
    }

    /// The provider alone, which the URLs of operations name.
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
    pub(crate) kind: Kind,
    pub(crate) subscription: String,
    pub(crate) group: String,
    pub(crate) name: String,
}

impl Id {
    pub(crate) fn new(kind: Kind, subscription: &str, group: &str, name: &str) -> Self {
        Self {
            kind,
            subscription: subscription.to_owned(),
            group: group.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Another resource of the same group.
    pub(crate) fn beside(&self, kind: Kind, name: &str) -> Self {
        Self::new(kind, &self.subscription, &self.group, name)
    }

    /// The id that a document says, of a resource of this kind.
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

    /// The id as documents write it.
    pub(crate) fn path(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/{}/{}",
            self.subscription,
            self.group,
            self.kind.name(),
            self.name
        )
    }

    /// The id as it is looked up.
    pub(crate) fn key(&self) -> String {
        self.path().to_ascii_lowercase()
    }

    /// It is not there, in the words of the resource manager.
    pub(crate) fn not_found(&self) -> Refusal {
        Refusal::manager_not_found(self.kind.name(), &self.name, &self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_told_from_others() {
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
