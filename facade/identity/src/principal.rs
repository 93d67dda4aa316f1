//! The one question that everything asks: may this principal do this to that, there?
//!
//! The answer comes from the principal alone. No store is asked, so an answer never tells what exists.

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::{
    Actor, ActorName, OrganizationId, Permission, Resource, RoleName, Scope, Verb,
    permission::phrase,
};

/// An actor and what it was granted. Whoever has none has no permission: there is no default.
///
/// Made by [`Roles::principal`](crate::Roles::principal) from bindings, or by [`service`](Self::service). It is not
/// read from data, so that no request brings its own.
#[derive(Clone, Debug)]
pub struct Principal {
    actor: Actor,
    grants: Vec<Grant>,
}

/// A set of permissions at a scope, and by which role.
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

    /// By which role.
    pub fn role(&self) -> &RoleName {
        &self.role
    }

    /// Where.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// What a principal may do to a record that was found, and what it may be told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// It may.
    Allowed,
    /// It may not, but may read the record: tell it so.
    Refused(Refused),
    /// It may not even read the record: answer as if there were none.
    NotVisible,
}

/// Where a principal may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedScopes {
    /// Everywhere.
    Everywhere,
    /// In these scopes and within them. None lies within another, none is global, and there is at least one.
    Within(BTreeSet<Scope>),
}

impl GrantedScopes {
    /// Whether a scope lies in it.
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

    /// A part of the façade that acts by itself: a controller, a monitor. It has these permissions everywhere and
    /// no other, under its own name, which records and logs keep.
    pub fn service(name: ActorName, permissions: impl IntoIterator<Item = Permission>) -> Self {
        let permissions = Arc::new(permissions.into_iter().collect());
        let grant = Grant::new(RoleName::known("service"), Scope::Global, permissions);
        Self::new(Actor::Service(name), vec![grant])
    }

    /// Who it is.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// What it was granted, and where.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The organizations it has a role in, or in a project of. Whoever has one everywhere need not be in any.
    pub fn organizations(&self) -> BTreeSet<OrganizationId> {
        let scopes = self.grants.iter().map(|grant| grant.scope);
        scopes.filter_map(|scope| scope.organization()).collect()
    }

    /// Whether it may do something in a scope that **it named itself**: a project it creates in, an organization it
    /// lists. For a record that was found by its id, ask [`judge`](Self::judge), which hides what it must not see.
    ///
    /// Grants are evaluated from the global ones over those of the organization to those of the project; the first
    /// that has the permission and contains the scope is enough. A permission in a project is none in its
    /// organization.
    pub fn authorize(&self, verb: Verb, resource: Resource, scope: &Scope) -> Result<(), Refused> {
        self.find(verb, resource, |held| held.contains(scope))
            .map(|_| ())
            .ok_or_else(|| self.refused(verb, resource, *scope))
    }

    /// Whether it may do something somewhere within a scope, or in all of it. For what belongs to all members of an
    /// organization (`Scope::Organization`) or to everybody (`Scope::Global`), such as the catalog.
    pub fn authorize_within(
        &self,
        verb: Verb,
        resource: Resource,
        within: &Scope,
    ) -> Result<(), Refused> {
        self.find(verb, resource, |held| {
            held.contains(within) || within.contains(held)
        })
        .map(|_| ())
        .ok_or_else(|| self.refused(verb, resource, *within))
    }

    /// What it may do to a record that was found, and whether it may be told that there is one.
    pub fn access(&self, verb: Verb, resource: Resource, scope: &Scope) -> Access {
        match self.authorize(verb, resource, scope) {
            Ok(()) => Access::Allowed,
            Err(refused) => match self.authorize(Verb::Read, resource, scope) {
                Ok(()) => Access::Refused(refused),
                Err(_) => Access::NotVisible,
            },
        }
    }

    /// Where it may do something: what a list is narrowed to. Refused if that is nowhere.
    pub fn scopes_for(&self, verb: Verb, resource: Resource) -> Result<GrantedScopes, Refused> {
        let held: BTreeSet<_> = self
            .granting(verb, resource)
            .map(|grant| grant.scope)
            .collect();
        if held.contains(&Scope::Global) {
            return Ok(GrantedScopes::Everywhere);
        }
        let is_inner = |scope: &Scope| {
            held.iter()
                .any(|outer| outer != scope && outer.contains(scope))
        };
        let widest: BTreeSet<_> = held
            .iter()
            .filter(|scope| !is_inner(scope))
            .copied()
            .collect();
        if widest.is_empty() {
            return Err(self.refused(verb, resource, Scope::Global));
        }
        Ok(GrantedScopes::Within(widest))
    }

    /// By which grant it may do something in a scope: what an audit shows.
    pub fn granted_by(&self, verb: Verb, resource: Resource, scope: &Scope) -> Option<&Grant> {
        self.find(verb, resource, |held| held.contains(scope))
    }

    /// The widest grant of the permission at a scope that fits.
    fn find(
        &self,
        verb: Verb,
        resource: Resource,
        fits: impl Fn(&Scope) -> bool,
    ) -> Option<&Grant> {
        self.granting(verb, resource)
            .filter(|grant| fits(&grant.scope))
            .min_by_key(|grant| grant.scope.level())
    }

    fn granting(&self, verb: Verb, resource: Resource) -> impl Iterator<Item = &Grant> {
        let wanted = Permission::new(verb, resource).ok();
        let grants = self.grants.iter();
        grants.filter(move |grant| {
            wanted.is_some_and(|permission| grant.permissions.contains(&permission))
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

/// That a principal may not do something (HTTP 403). It says what was asked and by whom, and nothing of what exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Who asked.
    pub actor: Actor,
    /// What was to be done.
    pub verb: Verb,
    /// To what.
    pub resource: Resource,
    /// Where.
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
