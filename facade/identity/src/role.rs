//! Roles: sets of permissions with a name, the built-in ones and those of an installation's own data.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Actor, Grant, Level, NoSuchPermission, Permission, Principal, Resource, RoleName, Scope, Verb,
    builtin,
};

/// A set of permissions that is bound to actors at scopes of one level.
///
/// As data it is a table such as this one; unknown names, verbs that a resource does not have, roles that grant
/// nothing, and roles for tenants that grant what is the platform's are refused.
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
    /// Fails if it grants nothing, or if it is for tenants and grants what is the platform's.
    pub fn new(
        name: RoleName,
        level: Level,
        permissions: impl IntoIterator<Item = Permission>,
    ) -> Result<Self, InvalidRole> {
        let permissions: BTreeSet<_> = permissions.into_iter().collect();
        if permissions.is_empty() {
            return Err(InvalidRole::GrantsNothing(name));
        }
        let beyond = permissions.iter().find(|held| held.is_platform_only());
        if let (Some(&permission), Level::Organization | Level::Project) = (beyond, level) {
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

    /// A role that is known to be right.
    pub(crate) fn known(name: &'static str, level: Level, permissions: Vec<Permission>) -> Self {
        Self {
            name: RoleName::known(name),
            level,
            permissions: Arc::new(permissions.into_iter().collect()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &RoleName {
        &self.name
    }

    /// At scopes of which level it can be bound.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What it grants.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> {
        self.permissions.iter().copied()
    }
}

/// A role as files have it.
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

/// That an actor has a role at a scope and within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// Which role.
    pub role: RoleName,
    /// Where. It must be of the role's level.
    pub scope: Scope,
}

impl Binding {
    /// A role at a scope.
    pub fn new(role: RoleName, scope: Scope) -> Self {
        Self { role, scope }
    }
}

/// The roles of an installation.
#[derive(Clone, Debug)]
pub struct Roles {
    by_name: BTreeMap<RoleName, Role>,
}

impl Roles {
    /// The built-in roles: `platform-administrator`, `organization-administrator`, `organization-auditor`,
    /// `project-user` and `project-reader`.
    pub fn built_in() -> Self {
        let by_name = builtin::roles()
            .into_iter()
            .map(|role| (role.name.clone(), role));
        Self {
            by_name: by_name.collect(),
        }
    }

    /// Adds a role. A name that is taken is refused, so that no file changes what a built-in role means.
    pub fn with(mut self, role: Role) -> Result<Self, InvalidRole> {
        if self.by_name.contains_key(&role.name) {
            return Err(InvalidRole::Taken(role.name));
        }
        self.by_name.insert(role.name.clone(), role);
        Ok(self)
    }

    /// Adds the roles of a TOML text: an array of tables `role`.
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

    /// A role by its name.
    pub fn role(&self, name: &RoleName) -> Option<&Role> {
        self.by_name.get(name)
    }

    /// Every role, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.by_name.values()
    }

    /// An actor with what its bindings grant it. A binding to a role that is not there, or at a scope of
    /// another level than the role's, is an error: a principal never has more or less than what was written.
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

/// What is wrong with a role, or with a binding to one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRole {
    /// It has no permission.
    #[error("role {0} grants nothing: give it a permission or leave it out")]
    GrantsNothing(RoleName),
    /// It grants what does not exist.
    #[error("role {role}: {grants}")]
    NoSuchPermission {
        /// Which role.
        role: RoleName,
        /// What it grants.
        grants: NoSuchPermission,
    },
    /// It is for tenants and grants what only a global role may.
    #[error(
        "role {role} of level {level} grants to {permission}, which only a role of level global may"
    )]
    PlatformOnly {
        /// Which role.
        role: RoleName,
        /// Its level.
        level: Level,
        /// What it grants.
        permission: Permission,
    },
    /// The name is that of another role.
    #[error("role {0} is there already: take another name")]
    Taken(RoleName),
    /// There is no such role.
    #[error("role {0} is not defined: define it, or bind another")]
    Unknown(RoleName),
    /// It is bound at a scope that is not of its level.
    #[error("role {role} is bound at a scope of level {bound_at}, and is of level {level}")]
    WrongLevel {
        /// Which role.
        role: RoleName,
        /// Where it can be bound.
        level: Level,
        /// Where it was.
        bound_at: Level,
    },
    /// The text is no such TOML.
    #[error("roles cannot be read")]
    Toml(#[from] toml::de::Error),
}
