//! The records of organizations, projects and role bindings, and their keys.
//!
//! Nobody changes a record after its creation, except that its deletion sets `state`.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Actor, Binding, OrganizationId, ProjectId, Resource, RoleName, Scope, TenantName};

/// The index of projects by organization.
pub(crate) const PROJECTS_INDEX: &str = "organization";
/// The index of organizations and projects by state, by which interrupted deletions are found.
pub(crate) const STATE_INDEX: &str = "state";
/// The index of bindings by actor.
pub(crate) const ACTOR_INDEX: &str = "actor";
/// The index of bindings by actor and organization.
pub(crate) const MEMBER_INDEX: &str = "member";
/// The index of bindings by the scope at which they are.
pub(crate) const PLACE_INDEX: &str = "place";
/// The index of bindings by scope and role.
pub(crate) const PLACE_ROLE_INDEX: &str = "place-role";

/// Whether something can be created in an organization or project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TenantState {
    /// It accepts new records.
    #[default]
    Open,
    /// It is empty and is being deleted with its bindings. It accepts nothing.
    Deleting,
}

impl TenantState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Deleting => "deleting",
        }
    }
}

/// An organization: a tenant, with its projects and its quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, unique in the installation.
    pub name: TenantName,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: Actor,
    /// Whether it accepts new projects and bindings.
    #[serde(default)]
    pub state: TenantState,
}

impl Document for Organization {
    const KIND: &'static str = "organization";
}

/// A project: the part of an organization that networks, instances and images belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Project {
    /// Its id. The same id in another organization is another project.
    pub id: ProjectId,
    /// Its organization.
    pub organization: OrganizationId,
    /// Its name, unique in the organization.
    pub name: TenantName,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: Actor,
    /// Whether it accepts new records.
    #[serde(default)]
    pub state: TenantState,
}

impl Project {
    /// Returns its scope.
    pub fn scope(&self) -> Scope {
        Scope::Project(self.organization, self.id)
    }
}

impl Document for Project {
    const KIND: &'static str = "project";
}

/// The namespace of the ids of bindings. Frozen, so that a repeated request has the same id.
const BINDINGS: Uuid = Uuid::from_u128(0x1d7e_02b9_5c44_4a0e_9f13_8b6a_e5c2_71d0);

/// The id of a role binding. It is derived from actor, role and scope, so a binding exists at most once.
///
/// ```
/// use fleetwright_identity::{Actor, ActorName, Binding, RoleBindingId, RoleName, Scope};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let olga = Actor::User(ActorName::new("olga")?);
/// let binding = Binding::new(RoleName::new("platform-administrator")?, Scope::Global);
/// let id = RoleBindingId::derive(&olga, &binding);
/// assert_eq!(id.to_string().parse::<RoleBindingId>()?, id);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoleBindingId(Uuid);

impl RoleBindingId {
    /// Returns the id of the binding of an actor to a role in a scope.
    pub fn derive(actor: &Actor, binding: &Binding) -> Self {
        let (kind, name) = actor.parts();
        // Neither a role nor a scope contains a line break, and the name of the actor is last.
        let text = format!(
            "{kind}\n{}\n{}\n{name}",
            binding.role,
            place(&binding.scope)
        );
        Self(Uuid::new_v5(&BINDINGS, text.as_bytes()))
    }

    /// Returns the UUID.
    pub fn as_uuid(&self) -> Uuid {
        self.0
    }

    pub(super) fn key(self) -> Result<Key, Invalid> {
        Key::new(self.to_string())
    }
}

impl FromStr for RoleBindingId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl fmt::Display for RoleBindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for RoleBindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A role that an actor has in a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredBinding")]
#[non_exhaustive]
pub struct RoleBinding {
    /// Its id.
    pub id: RoleBindingId,
    /// The actor: always a user.
    pub actor: Actor,
    /// The role with its scope.
    #[serde(flatten)]
    pub binding: Binding,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: Actor,
    /// The scope as text, by which bindings are found.
    pub(super) place: String,
    /// The organization of the scope, by which the bindings of one actor in it are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) organization: Option<OrganizationId>,
}

/// The stored form of a binding, from which it is read. With `flatten`, the place of a value that is not understood would be lost.
#[derive(Deserialize)]
struct StoredBinding {
    id: RoleBindingId,
    actor: Actor,
    role: RoleName,
    scope: Scope,
    created_at: DateTime<Utc>,
    created_by: Actor,
    place: String,
    #[serde(default)]
    organization: Option<OrganizationId>,
}

impl From<StoredBinding> for RoleBinding {
    fn from(stored: StoredBinding) -> Self {
        Self {
            id: stored.id,
            actor: stored.actor,
            binding: Binding::new(stored.role, stored.scope),
            created_at: stored.created_at,
            created_by: stored.created_by,
            place: stored.place,
            organization: stored.organization,
        }
    }
}

impl RoleBinding {
    pub(super) fn new(
        actor: Actor,
        binding: Binding,
        created_at: DateTime<Utc>,
        created_by: Actor,
    ) -> Self {
        Self {
            id: RoleBindingId::derive(&actor, &binding),
            place: place(&binding.scope),
            organization: binding.scope.organization(),
            actor,
            binding,
            created_at,
            created_by,
        }
    }

    /// Returns the role.
    pub fn role(&self) -> &RoleName {
        &self.binding.role
    }

    /// Returns the scope.
    pub fn scope(&self) -> Scope {
        self.binding.scope
    }
}

impl Document for RoleBinding {
    const KIND: &'static str = "role-binding";
}

/// Returns a scope as the text of an index value.
pub(super) fn place(scope: &Scope) -> String {
    match scope {
        Scope::Global => "global".to_owned(),
        Scope::Organization(organization) => organization.to_string(),
        Scope::Project(organization, project) => format!("{organization}/{project}"),
    }
}

pub(super) fn organization_key(id: OrganizationId) -> Result<Key, Invalid> {
    Key::new(id.to_string())
}

/// The same project id in two organizations is two projects, so the key has both.
pub(super) fn project_key(organization: OrganizationId, id: ProjectId) -> Result<Key, Invalid> {
    Key::new(format!("{organization}/{id}"))
}

/// An organization or a project: a record that is closed before it is removed.
pub(super) trait Closable: Document {
    /// Its permissions.
    const RESOURCE: Resource;
    /// The record, closed. `None` if it is closed already.
    fn closed(&self) -> Option<Self>;
    fn id(&self) -> String;
    fn name(&self) -> &TenantName;
}

impl Closable for Organization {
    const RESOURCE: Resource = Resource::Organizations;

    fn closed(&self) -> Option<Self> {
        let state = TenantState::Deleting;
        (self.state != state).then(|| Self {
            state,
            ..self.clone()
        })
    }
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn name(&self) -> &TenantName {
        &self.name
    }
}

impl Closable for Project {
    const RESOURCE: Resource = Resource::Projects;

    fn closed(&self) -> Option<Self> {
        let state = TenantState::Deleting;
        (self.state != state).then(|| Self {
            state,
            ..self.clone()
        })
    }
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn name(&self) -> &TenantName {
        &self.name
    }
}
