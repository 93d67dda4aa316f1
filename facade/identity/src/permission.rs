//! What can be done to what. A permission is one verb on one sort of thing and implies no other.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that is done to resources. Every verb is granted for itself: who may read does not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Makes one.
    Create,
    /// Looks at one whose id is known.
    Read,
    /// Looks at which there are.
    List,
    /// Changes what is asked of one.
    Update,
    /// Deletes one.
    Delete,
    /// Starts one that is stopped.
    Start,
    /// Stops one that runs.
    Stop,
    /// Reboots one, softly or hard.
    Reboot,
    /// Reads what one has written to its console. That may hold secrets.
    ConsoleOutput,
    /// Opens a session on the console: the same as sitting in front of the machine.
    ConsoleSession,
    /// Is shown the private key.
    SshKey,
    /// Makes an image of the disk, with all that is on it.
    Snapshot,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 12] = [
        Self::Create,
        Self::Read,
        Self::List,
        Self::Update,
        Self::Delete,
        Self::Start,
        Self::Stop,
        Self::Reboot,
        Self::ConsoleOutput,
        Self::ConsoleSession,
        Self::SshKey,
        Self::Snapshot,
    ];

    /// As data has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::List => "list",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Reboot => "reboot",
            Self::ConsoleOutput => "console-output",
            Self::ConsoleSession => "console-session",
            Self::SshKey => "ssh-key",
            Self::Snapshot => "snapshot",
        }
    }

    /// As a sentence has it, before the name of a resource.
    fn phrase(self) -> &'static str {
        match self {
            Self::ConsoleOutput => "read the console output of",
            Self::ConsoleSession => "open a console session on",
            Self::SshKey => "read the SSH key of",
            Self::Create
            | Self::Read
            | Self::List
            | Self::Update
            | Self::Delete
            | Self::Start
            | Self::Stop
            | Self::Reboot
            | Self::Snapshot => self.as_str(),
        }
    }
}

/// A sort of thing that permissions are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// What a tenant asks for.
    Instances,
    /// What an instance stands on. Tenants do not see them.
    Servers,
    /// Networks.
    Networks,
    /// Security groups on a network.
    SecurityGroups,
    /// Authorities that sign the keys of those who log in.
    SshCertificateAuthorities,
    /// Places to run in.
    Regions,
    /// Sizes of machines.
    Flavors,
    /// What machines boot from: of the catalog, or of an organization.
    Images,
    /// Tenants.
    Organizations,
    /// Parts of tenants.
    Projects,
    /// Who has which role where.
    RoleBindings,
    /// How much an organization may have. Tenants read it; raising it is not theirs.
    Quotas,
    /// How much of that a project may have.
    ProjectQuotas,
    /// What quota is used for.
    Allocations,
}

const CRUD: &[Verb] = &[
    Verb::Create,
    Verb::Read,
    Verb::List,
    Verb::Update,
    Verb::Delete,
];

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 14] = [
        Self::Instances,
        Self::Servers,
        Self::Networks,
        Self::SecurityGroups,
        Self::SshCertificateAuthorities,
        Self::Regions,
        Self::Flavors,
        Self::Images,
        Self::Organizations,
        Self::Projects,
        Self::RoleBindings,
        Self::Quotas,
        Self::ProjectQuotas,
        Self::Allocations,
    ];

    /// The verbs that exist for it. No role grants another one, and nobody may do it.
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Instances | Self::Servers => &Verb::ALL,
            Self::Networks
            | Self::SecurityGroups
            | Self::SshCertificateAuthorities
            | Self::Regions
            | Self::Flavors
            | Self::Images
            | Self::Organizations
            | Self::Projects
            | Self::RoleBindings
            | Self::ProjectQuotas
            | Self::Allocations
            | Self::Quotas => CRUD,
        }
    }

    /// As data has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::Servers => "servers",
            Self::Networks => "networks",
            Self::SecurityGroups => "security-groups",
            Self::SshCertificateAuthorities => "ssh-certificate-authorities",
            Self::Regions => "regions",
            Self::Flavors => "flavors",
            Self::Images => "images",
            Self::Organizations => "organizations",
            Self::Projects => "projects",
            Self::RoleBindings => "role-bindings",
            Self::Quotas => "quotas",
            Self::ProjectQuotas => "project-quotas",
            Self::Allocations => "allocations",
        }
    }

    /// As a sentence has it.
    fn phrase(self) -> &'static str {
        match self {
            Self::SecurityGroups => "security groups",
            Self::SshCertificateAuthorities => "SSH certificate authorities",
            Self::RoleBindings => "role bindings",
            Self::ProjectQuotas => "project quotas",
            Self::Instances
            | Self::Servers
            | Self::Networks
            | Self::Regions
            | Self::Flavors
            | Self::Images
            | Self::Organizations
            | Self::Projects
            | Self::Quotas
            | Self::Allocations => self.as_str(),
        }
    }
}

/// A verb on a resource for which it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    resource: Resource,
    verb: Verb,
}

impl Permission {
    /// Fails if the verb does not exist for the resource: networks are not rebooted.
    pub fn new(verb: Verb, resource: Resource) -> Result<Self, NoSuchPermission> {
        if resource.verbs().contains(&verb) {
            return Ok(Self { resource, verb });
        }
        Err(NoSuchPermission { verb, resource })
    }

    /// Every permission there is.
    pub fn all() -> impl Iterator<Item = Self> {
        Resource::ALL.into_iter().flat_map(|resource| {
            let verbs = resource.verbs().iter();
            verbs.map(move |&verb| Self { resource, verb })
        })
    }

    /// What is done.
    pub fn verb(self) -> Verb {
        self.verb
    }

    /// To what.
    pub fn resource(self) -> Resource {
        self.resource
    }

    /// Whether only a global role grants it: with it a tenant would set its own limits, its own bill or the catalog.
    pub fn is_platform_only(self) -> bool {
        let only_looks = matches!(self.verb, Verb::Read | Verb::List);
        match self.resource {
            Resource::Quotas
            | Resource::Allocations
            | Resource::Regions
            | Resource::Flavors
            | Resource::Organizations => !only_looks,
            Resource::Instances
            | Resource::Servers
            | Resource::Networks
            | Resource::SecurityGroups
            | Resource::SshCertificateAuthorities
            | Resource::Images
            | Resource::Projects
            | Resource::RoleBindings
            | Resource::ProjectQuotas => false,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        phrase(self.verb, self.resource, f)
    }
}

/// "read the SSH key of instances".
pub(crate) fn phrase(verb: Verb, resource: Resource, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} {}", verb.phrase(), resource.phrase())
}

/// A verb that does not exist for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no permission to {} {}", verb.phrase(), resource.phrase())]
pub struct NoSuchPermission {
    /// The verb.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_data() {
        for verb in Verb::ALL {
            assert_eq!(serde_json::to_value(verb).unwrap(), verb.as_str());
        }
        for resource in Resource::ALL {
            assert_eq!(serde_json::to_value(resource).unwrap(), resource.as_str());
        }
    }

    #[test]
    fn a_permission_is_of_a_verb_that_exists() {
        let mut count = 0;
        for resource in Resource::ALL {
            for verb in Verb::ALL {
                let permission = Permission::new(verb, resource);
                assert_eq!(permission.is_ok(), resource.verbs().contains(&verb));
                count += usize::from(permission.is_ok());
            }
        }
        assert_eq!(Permission::all().count(), count);
        assert_eq!(
            Permission::new(Verb::Reboot, Resource::Networks)
                .unwrap_err()
                .to_string(),
            "there is no permission to reboot networks"
        );
    }
}
