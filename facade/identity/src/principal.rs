//! Authorization: may this principal use this verb on this resource in this scope?
//!
//! The decision depends on the principal alone. It never reads a store, so it never reveals what exists.

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::{
    Actor, ActorName, OrganizationId, Permission, Resource, RoleName, Scope, Verb,
    permission::phrase,
};

/// An actor with its grants. An actor without grants may do nothing.
///
/// [`Roles::principal`](crate::Roles::principal) creates one from bindings, [`service`](Self::service)
/// one for a component of the façade. A principal cannot be deserialized, so a request cannot bring
/// its own.
///
/// ```
/// use fleetwright_identity::{ActorName, Permission, Principal, Resource, Scope, Verb};
///
/// let read = Permission::new(Verb::Read, Resource::Servers)?;
/// let monitor = Principal::service(ActorName::new("monitor")?, [read]);
/// monitor.authorize(Verb::Read, Resource::Servers, &Scope::Global)?;
/// assert!(monitor.authorize(Verb::Delete, Resource::Servers, &Scope::Global).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Principal {
    actor: Actor,
    grants: Vec<Grant>,
}

/// The permissions of one role at one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    role: RoleName,
    scope: Scope,
    permissions: Arc<BTreeSet<Permission>>,
}

impl Grant {
    pub(crate) fn new(
        role: RoleName,
        scope: Scope,
        permissions: Arc<BTreeSet<Permission>>,
    ) -> Self {
        Self {
            role,
            scope,
            permissions,
        }
    }

    /// Returns the role that grants the permissions.
    pub fn role(&self) -> &RoleName {
        &self.role
    }

    /// Returns the scope of the grant.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The access of a principal to a record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// The call is allowed.
    Allowed,
    /// The call is refused. The principal may read the record, so the refusal may say so.
    Refused(Refused),
    /// The principal may not read the record: return the same error as for a missing record.
    NotVisible,
}

/// The scopes in which a principal has a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedScopes {
    /// The whole installation.
    Everywhere,
    /// These scopes and everything within them. The set is not empty, contains no global scope, and
    /// no scope within another.
    Within(BTreeSet<Scope>),
}

impl GrantedScopes {
    /// Returns whether the scope is covered.
    pub fn covers(&self, scope: &Scope) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Within(scopes) => scopes.iter().any(|outer| outer.contains(scope)),
        }
    }
}

impl Principal {
    pub(crate) fn new(actor: Actor, grants: Vec<Grant>) -> Self {
        Self { actor, grants }
    }

    /// Creates the principal of a component of the façade, such as a controller. It has exactly these
    /// permissions, everywhere. Records and logs store its name.
    pub fn service(name: ActorName, permissions: impl IntoIterator<Item = Permission>) -> Self {
        let permissions = Arc::new(permissions.into_iter().collect());
        let grant = Grant::new(RoleName::from_static("service"), Scope::Global, permissions);
        Self::new(Actor::Service(name), vec![grant])
    }

    /// Returns the actor.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the grants.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the organizations in which it has a role, also in one of their projects. A global role
    /// adds none.
    pub fn organizations(&self) -> BTreeSet<OrganizationId> {
        let scopes = self.grants.iter().map(|grant| grant.scope);
        scopes.filter_map(|scope| scope.organization()).collect()
    }

    /// Checks a permission in a scope that **the caller named**: a project to create in, an organization
    /// to list. For a record that was found by its id use [`access`](Self::access), which hides records
    /// that the caller may not see.
    ///
    /// Global grants are evaluated first, then those of the organization, then those of the project. One
    /// grant that has the permission and contains the scope is enough. A permission in a project does
    /// not apply to its organization.
    ///
    /// # Errors
    ///
    /// No grant has the permission in this scope. The error names actor, permission and scope, and
    /// nothing that exists.
    pub fn authorize(&self, verb: Verb, resource: Resource, scope: &Scope) -> Result<(), Refused> {
        self.find(verb, resource, |granted| granted.contains(scope))
            .map(|_| ())
            .ok_or_else(|| self.refused(verb, resource, *scope))
    }

    /// Checks a permission anywhere within a scope. For resources that all members of an organization
    /// (`Scope::Organization`) or all callers (`Scope::Global`) share, such as the catalog.
    ///
    /// # Errors
    ///
    /// No grant has the permission within this scope.
    pub fn authorize_within(
        &self,
        verb: Verb,
        resource: Resource,
        within: &Scope,
    ) -> Result<(), Refused> {
        self.find(verb, resource, |granted| {
            granted.contains(within) || within.contains(granted)
        })
        .map(|_| ())
        .ok_or_else(|| self.refused(verb, resource, *within))
    }

    /// Decides about a call on a record that was found, and whether the caller may know that it exists.
    pub fn access(&self, verb: Verb, resource: Resource, scope: &Scope) -> Access {
        match self.authorize(verb, resource, scope) {
            Ok(()) => Access::Allowed,
            Err(refused) => match self.authorize(Verb::Read, resource, scope) {
                Ok(()) => Access::Refused(refused),
                Err(_) => Access::NotVisible,
            },
        }
    }

    /// Returns the scopes in which it has a permission, to narrow a list.
    ///
    /// # Errors
    ///
    /// It has the permission nowhere.
    pub fn scopes_for(&self, verb: Verb, resource: Resource) -> Result<GrantedScopes, Refused> {
        let granted: BTreeSet<_> = self
            .grants_of(verb, resource)
            .map(|grant| grant.scope)
            .collect();
        if granted.contains(&Scope::Global) {
            return Ok(GrantedScopes::Everywhere);
        }
        let is_inner = |scope: &Scope| {
            granted
                .iter()
                .any(|outer| outer != scope && outer.contains(scope))
        };
        let widest: BTreeSet<_> = granted
            .iter()
            .filter(|scope| !is_inner(scope))
            .copied()
            .collect();
        if widest.is_empty() {
            return Err(self.refused(verb, resource, Scope::Global));
        }
        Ok(GrantedScopes::Within(widest))
    }

    /// Returns the widest grant that allows a call, for audits.
    pub fn granted_by(&self, verb: Verb, resource: Resource, scope: &Scope) -> Option<&Grant> {
        self.find(verb, resource, |granted| granted.contains(scope))
    }

    /// Returns the widest grant of the permission whose scope matches.
    fn find(
        &self,
        verb: Verb,
        resource: Resource,
        matches_scope: impl Fn(&Scope) -> bool,
    ) -> Option<&Grant> {
        self.grants_of(verb, resource)
            .filter(|grant| matches_scope(&grant.scope))
            .min_by_key(|grant| grant.scope.level())
    }

    fn grants_of(&self, verb: Verb, resource: Resource) -> impl Iterator<Item = &Grant> {
        let permission = Permission::new(verb, resource).ok();
        let grants = self.grants.iter();
        grants.filter(move |grant| {
            permission.is_some_and(|permission| grant.permissions.contains(&permission))
        })
    }

    fn refused(&self, verb: Verb, resource: Resource, scope: Scope) -> Refused {
        Refused {
            actor: self.actor.clone(),
            verb,
            resource,
            scope,
        }
    }
}

/// A refused call (HTTP 403). It names actor, permission and scope, and nothing that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The caller.
    pub actor: Actor,
    /// The verb.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
    /// The scope.
    pub scope: Scope,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} may not ", self.actor)?;
        phrase(self.verb, self.resource, f)?;
        write!(f, " in {}", self.scope)
    }
}

impl std::error::Error for Refused {}
