//! Roles: named sets of permissions, built in or from the installation's own files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Actor, Grant, Level, NoSuchPermission, Permission, Principal, Resource, RoleName, Scope, Verb,
    builtin,
};

/// A named set of permissions that can be bound to actors at scopes of one level.
///
/// A role is serialized as a table like the one below. Refused are unknown names, verbs that a resource
/// does not have, roles without permissions, tenant roles with a permission that is
/// [reserved for the platform](Permission::is_platform_only), and roles with a permission
/// [of this system's services](Permission::is_internal).
///
/// ```toml
/// name = "night-shift"
/// level = "project"
/// [permissions]
/// instances = ["read", "list", "start", "stop", "reboot"]
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RoleData", into = "RoleData")]
pub struct Role {
    name: RoleName,
    level: Level,
    permissions: Arc<BTreeSet<Permission>>,
}

impl Role {
    /// Creates a role.
    ///
    /// # Errors
    ///
    /// The role grants nothing, it grants a permission of this system's services, or it is a tenant role with a permission reserved for
    /// the platform.
    pub fn new(
        name: RoleName,
        level: Level,
        permissions: impl IntoIterator<Item = Permission>,
    ) -> Result<Self, InvalidRole> {
        let permissions: BTreeSet<_> = permissions.into_iter().collect();
        if permissions.is_empty() {
            return Err(InvalidRole::GrantsNothing(name));
        }
        if let Some(&permission) = permissions.iter().find(|held| held.is_internal()) {
            return Err(InvalidRole::Internal {
                role: name,
                permission,
            });
        }
        let reserved = permissions.iter().find(|held| held.is_platform_only());
        if let (Some(&permission), Level::Organization | Level::Project) = (reserved, level) {
            return Err(InvalidRole::PlatformOnly {
                role: name,
                level,
                permission,
            });
        }
        Ok(Self {
            name,
            level,
            permissions: Arc::new(permissions),
        })
    }

    /// Creates a role that is known to be valid.
    pub(crate) fn from_static(
        name: &'static str,
        level: Level,
        permissions: Vec<Permission>,
    ) -> Self {
        Self {
            name: RoleName::from_static(name),
            level,
            permissions: Arc::new(permissions.into_iter().collect()),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &RoleName {
        &self.name
    }

    /// Returns the level of the scopes at which it can be bound.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Iterates over the permissions.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> {
        self.permissions.iter().copied()
    }
}

/// The serialized form of a role.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleData {
    name: RoleName,
    level: Level,
    permissions: BTreeMap<Resource, Vec<Verb>>,
}

impl TryFrom<RoleData> for Role {
    type Error = InvalidRole;
    fn try_from(data: RoleData) -> Result<Self, InvalidRole> {
        let RoleData {
            name,
            level,
            permissions,
        } = data;
        let mut granted = BTreeSet::new();
        for (resource, verbs) in permissions {
            for verb in verbs {
                let permission = Permission::new(verb, resource).map_err(|grants| {
                    let role = name.clone();
                    InvalidRole::NoSuchPermission { role, grants }
                })?;
                granted.insert(permission);
            }
        }
        Self::new(name, level, granted)
    }
}

impl From<Role> for RoleData {
    fn from(role: Role) -> Self {
        let mut permissions = BTreeMap::<_, Vec<_>>::new();
        for permission in role.permissions() {
            let verbs = permissions.entry(permission.resource()).or_default();
            verbs.push(permission.verb());
        }
        Self {
            name: role.name,
            level: role.level,
            permissions,
        }
    }
}

/// A role at a scope, for one actor. It applies to the scope and everything within it.
///
/// ```
/// use fleetwright_identity::{Binding, RoleName, Scope};
///
/// let auditor = RoleName::new("organization-auditor")?;
/// let acme = "5ba1e150-0000-4000-8000-000000000001".parse()?;
/// let binding = Binding::new(auditor, Scope::Organization(acme));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The role.
    pub role: RoleName,
    /// The scope. It must have the role's level.
    pub scope: Scope,
}

impl Binding {
    /// Binds a role at a scope.
    pub fn new(role: RoleName, scope: Scope) -> Self {
        Self { role, scope }
    }
}

/// The roles of an installation.
///
/// ```
/// use fleetwright_identity::{Actor, ActorName, Binding, Resource, RoleName, Roles, Scope, Verb};
///
/// let roles = Roles::built_in();
/// let binding = Binding::new(RoleName::new("platform-administrator")?, Scope::Global);
/// let root = roles.principal(Actor::User(ActorName::new("root")?), [&binding])?;
/// root.authorize(Verb::Delete, Resource::Networks, &Scope::Global)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Roles {
    by_name: BTreeMap<RoleName, Role>,
}

impl Roles {
    /// Returns the built-in roles: `platform-administrator`, `organization-administrator`, `organization-auditor`,
    /// `project-user` and `project-reader`.
    pub fn built_in() -> Self {
        let by_name = builtin::roles()
            .into_iter()
            .map(|role| (role.name.clone(), role));
        Self {
            by_name: by_name.collect(),
        }
    }

    /// Adds a role.
    ///
    /// # Errors
    ///
    /// The name is taken: no file can change the meaning of a built-in role.
    pub fn with(mut self, role: Role) -> Result<Self, InvalidRole> {
        if self.by_name.contains_key(&role.name) {
            return Err(InvalidRole::Taken(role.name));
        }
        self.by_name.insert(role.name.clone(), role);
        Ok(self)
    }

    /// Adds the roles of a TOML text with an array of tables `role`.
    ///
    /// # Errors
    ///
    /// The text is not valid TOML, or one of its roles is invalid or has a name that is taken.
    pub fn with_toml(self, text: &str) -> Result<Self, InvalidRole> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            role: Vec<Role>,
        }
        let file: File = toml::from_str(text)?;
        file.role.into_iter().try_fold(self, Self::with)
    }

    /// Returns a role by its name.
    pub fn role(&self, name: &RoleName) -> Option<&Role> {
        self.by_name.get(name)
    }

    /// Iterates over the roles, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.by_name.values()
    }

    /// Creates the principal of an actor with these bindings.
    ///
    /// # Errors
    ///
    /// A binding names an unknown role, or a scope of another level than the role's. A principal never
    /// has more or fewer permissions than its bindings say.
    pub fn principal<'b>(
        &self,
        actor: Actor,
        bindings: impl IntoIterator<Item = &'b Binding>,
    ) -> Result<Principal, InvalidRole> {
        let grants = bindings.into_iter().map(|binding| self.grant(binding));
        Ok(Principal::new(actor, grants.collect::<Result<_, _>>()?))
    }

    fn grant(&self, binding: &Binding) -> Result<Grant, InvalidRole> {
        let role = self
            .role(&binding.role)
            .ok_or_else(|| InvalidRole::Unknown(binding.role.clone()))?;
        if role.level != binding.scope.level() {
            return Err(InvalidRole::WrongLevel {
                role: role.name.clone(),
                level: role.level,
                bound_at: binding.scope.level(),
            });
        }
        let permissions = Arc::clone(&role.permissions);
        Ok(Grant::new(role.name.clone(), binding.scope, permissions))
    }
}

/// An invalid role or binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRole {
    /// The role has no permission.
    #[error("role {0} grants nothing; add a permission or remove the role")]
    GrantsNothing(RoleName),
    /// The role grants a permission that does not exist.
    #[error("role {role}: {grants}")]
    NoSuchPermission {
        /// The role.
        role: RoleName,
        /// The permission.
        grants: NoSuchPermission,
    },
    /// A tenant role grants a permission reserved for the platform.
    #[error(
        "role {role} of level {level} grants permission to {permission}, which is reserved for roles of level global"
    )]
    PlatformOnly {
        /// The role.
        role: RoleName,
        /// Its level.
        level: Level,
        /// The permission.
        permission: Permission,
    },
    /// The role grants a permission that only services of this system have.
    #[error(
        "role {role} grants permission to {permission}, which only services of this system have; remove it"
    )]
    Internal {
        /// The role.
        role: RoleName,
        /// The permission.
        permission: Permission,
    },
    /// The name is taken.
    #[error("role {0} already exists; use another name")]
    Taken(RoleName),
    /// The role does not exist.
    #[error("role {0} is not defined; define it, or bind another role")]
    Unknown(RoleName),
    /// The binding's scope has another level than the role.
    #[error("role {role} of level {level} cannot be bound at a scope of level {bound_at}")]
    WrongLevel {
        /// The role.
        role: RoleName,
        /// The role's level.
        level: Level,
        /// The level of the scope.
        bound_at: Level,
    },
    /// The TOML text cannot be parsed.
    #[error("cannot parse the roles")]
    Toml(#[from] toml::de::Error),
}
