//! Permissions: one verb on one kind of resource. No permission implies another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An action on a resource. Each verb is granted separately: reading does not include any other verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Create a resource.
    Create,
    /// Read a resource by its id.
    Read,
    /// List resources.
    List,
    /// Change the desired state of a resource.
    Update,
    /// Delete a resource.
    Delete,
    /// Start a stopped resource.
    Start,
    /// Stop a running resource.
    Stop,
    /// Reboot a resource, softly or hard.
    Reboot,
    /// Read the console output, which can contain secrets.
    ConsoleOutput,
    /// Open an interactive console session.
    ConsoleSession,
    /// Read the private SSH key.
    SshKey,
    /// Create an image of the disk with all its data.
    Snapshot,
}

impl Verb {
    /// All verbs.
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

    /// Returns the serialized name.
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

    /// Returns the words for a sentence, before the name of a resource.
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

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Tenants' instances.
    Instances,
    /// The servers behind instances, which tenants do not see.
    Servers,
    /// Networks.
    Networks,
    /// Security groups on a network.
    SecurityGroups,
    /// SSH certificate authorities that servers trust.
    SshCertificateAuthorities,
    /// Regions.
    Regions,
    /// Flavors: machine sizes.
    Flavors,
    /// Boot images, of the catalog or of a project.
    Images,
    /// What images are at the clouds. Only the image controller of a region writes it.
    NativeImages,
    /// Organizations, which are the tenants.
    Organizations,
    /// Projects of an organization.
    Projects,
    /// Bindings of roles to actors.
    RoleBindings,
    /// Quotas of organizations. Tenants can read them, but not raise them.
    Quotas,
    /// Quotas of projects.
    ProjectQuotas,
    /// Allocations: what uses the quota.
    Allocations,
    /// The audit log. It can only be read: there is no permission to change it.
    AuditLog,
}

const CRUD: &[Verb] = &[
    Verb::Create,
    Verb::Read,
    Verb::List,
    Verb::Update,
    Verb::Delete,
];

impl Resource {
    /// All resources.
    pub const ALL: [Self; 16] = [
        Self::Instances,
        Self::Servers,
        Self::Networks,
        Self::SecurityGroups,
        Self::SshCertificateAuthorities,
        Self::Regions,
        Self::Flavors,
        Self::Images,
        Self::NativeImages,
        Self::Organizations,
        Self::Projects,
        Self::RoleBindings,
        Self::Quotas,
        Self::ProjectQuotas,
        Self::Allocations,
        Self::AuditLog,
    ];

    /// Returns the verbs that exist for the resource. No role can grant another one.
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Instances | Self::Servers => &Verb::ALL,
            Self::NativeImages => &[Verb::Update],
            Self::AuditLog => &[Verb::List],
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

    /// Returns the serialized name.
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
            Self::NativeImages => "native-images",
            Self::Organizations => "organizations",
            Self::Projects => "projects",
            Self::RoleBindings => "role-bindings",
            Self::Quotas => "quotas",
            Self::ProjectQuotas => "project-quotas",
            Self::Allocations => "allocations",
            Self::AuditLog => "audit-log",
        }
    }

    /// Returns the words for a sentence.
    fn phrase(self) -> &'static str {
        match self {
            Self::SecurityGroups => "security groups",
            Self::SshCertificateAuthorities => "SSH certificate authorities",
            Self::RoleBindings => "role bindings",
            Self::ProjectQuotas => "project quotas",
            Self::NativeImages => "native images",
            Self::AuditLog => "the audit log",
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

/// One verb on one resource.
///
/// ```
/// use fleetwright_identity::{Permission, Resource, Verb};
///
/// let permission = Permission::new(Verb::SshKey, Resource::Instances)?;
/// assert_eq!(permission.to_string(), "read the SSH key of instances");
/// assert!(Permission::new(Verb::Reboot, Resource::Networks).is_err());
/// # Ok::<(), fleetwright_identity::NoSuchPermission>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    resource: Resource,
    verb: Verb,
}

impl Permission {
    /// Combines a verb with a resource.
    ///
    /// # Errors
    ///
    /// The verb does not exist for the resource: networks cannot be rebooted.
    pub fn new(verb: Verb, resource: Resource) -> Result<Self, NoSuchPermission> {
        if resource.verbs().contains(&verb) {
            return Ok(Self { resource, verb });
        }
        Err(NoSuchPermission { verb, resource })
    }

    /// Iterates over all permissions.
    pub fn all() -> impl Iterator<Item = Self> {
        Resource::ALL.into_iter().flat_map(|resource| {
            let verbs = resource.verbs().iter();
            verbs.map(move |&verb| Self { resource, verb })
        })
    }

    /// Returns the verb.
    pub fn verb(self) -> Verb {
        self.verb
    }

    /// Returns the resource.
    pub fn resource(self) -> Resource {
        self.resource
    }

    /// Returns whether no role may grant it, not even a global one: only a service of this system has it. A user with it could name the
    /// disk of a stranger as the content of an image.
    pub fn is_internal(self) -> bool {
        self.resource == Resource::NativeImages
    }

    /// Returns whether only a global role may grant it. A tenant with it could change its own limits,
    /// its allocations or the catalog.
    pub fn is_platform_only(self) -> bool {
        let reads = matches!(self.verb, Verb::Read | Verb::List);
        match self.resource {
            Resource::Quotas
            | Resource::Allocations
            | Resource::Regions
            | Resource::Flavors
            | Resource::Organizations => !reads,
            Resource::NativeImages => true,
            Resource::Instances
            | Resource::Servers
            | Resource::Networks
            | Resource::SecurityGroups
            | Resource::SshCertificateAuthorities
            | Resource::Images
            | Resource::Projects
            | Resource::RoleBindings
            | Resource::ProjectQuotas
            | Resource::AuditLog => false,
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
    fn names_match_their_serialized_form() {
        for verb in Verb::ALL {
            assert_eq!(serde_json::to_value(verb).unwrap(), verb.as_str());
        }
        for resource in Resource::ALL {
            assert_eq!(serde_json::to_value(resource).unwrap(), resource.as_str());
        }
    }

    #[test]
    fn permission_requires_an_existing_verb() {
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
