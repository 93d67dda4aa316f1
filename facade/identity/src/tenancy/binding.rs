//! Binding roles to users, and removing, reading and listing bindings.

use fleetwright_store::{Check, IndexName, StoreError, Versioned};

use super::{ATTEMPTS, RoleBinding, RoleBindingId, Tenancy, TenancyError, record};
use crate::{
    Access, Actor, AuditEvent, Binding, ListPage, PageRequest, Principal, Resource, RoleName,
    Scope, Verb,
    page::{Source, page},
};

const WHAT: &str = "role binding";
/// The largest number of bindings that an actor has in one organization. An organization cannot slow down the requests of a user by
/// binding thousands of roles to it.
pub(super) const MAX_BINDINGS: usize = 100;

/// A request to bind a role to a user.
///
/// ```
/// use fleetwright_identity::{Actor, ActorName, NewRoleBinding, RoleName, Scope};
///
/// let olga = Actor::User(ActorName::new("olga")?);
/// let new = NewRoleBinding::new(olga, RoleName::new("platform-administrator")?, Scope::Global);
/// assert_eq!(new.binding.scope, Scope::Global);
/// # Ok::<(), fleetwright_identity::InvalidName>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewRoleBinding {
    /// The user.
    pub actor: Actor,
    /// The role with its scope.
    pub binding: Binding,
}

impl NewRoleBinding {
    /// Requests that a user has a role in a scope.
    pub fn new(actor: Actor, role: RoleName, scope: Scope) -> Self {
        Self {
            actor,
            binding: Binding::new(role, scope),
        }
    }
}

impl Tenancy {
    /// Binds a role to a user. A repeated call returns the existing binding.
    ///
    /// # Errors
    ///
    /// - [`Refused`](TenancyError::Refused): the caller may not create bindings in the scope.
    /// - [`InvalidRole`](TenancyError::InvalidRole): the role does not exist, or cannot be bound at a scope of this level.
    /// - [`Escalation`](TenancyError::Escalation): the role has a permission that the caller does not have in the scope.
    /// - [`NotAUser`](TenancyError::NotAUser): the actor is a service.
    /// - [`NotFound`](TenancyError::NotFound), [`Deleting`](TenancyError::Deleting): the organization or project.
    /// - [`TooManyBindings`](TenancyError::TooManyBindings): the user has a hundred bindings in the organization.
    pub async fn bind(
        &self,
        principal: &Principal,
        new: &NewRoleBinding,
    ) -> Result<RoleBinding, TenancyError> {
        let scope = new.binding.scope;
        principal.authorize(Verb::Create, Resource::RoleBindings, &scope)?;
        self.check_grant(principal, &new.binding)?;
        self.create_binding(principal.actor(), new, Vec::new())
            .await
    }

    /// Creates a binding that was permitted. `checks` are further checks of its transaction.
    pub(super) async fn create_binding(
        &self,
        by: &Actor,
        new: &NewRoleBinding,
        checks: Vec<Check>,
    ) -> Result<RoleBinding, TenancyError> {
        if let Actor::Service(_) = new.actor {
            return Err(TenancyError::NotAUser(new.actor.clone()));
        }
        let scope = new.binding.scope;
        for _ in 0..ATTEMPTS {
            let mut transaction = self.begin(&scope).await?;
            transaction.checks.extend(checks.clone());
            let binding = RoleBinding::new(
                new.actor.clone(),
                new.binding.clone(),
                self.clock().now(),
                by.clone(),
            );
            let key = binding.id.key()?;
            if let Some(found) = self.bindings.get(&key).await? {
                return Ok(found.value);
            }
            self.check_room(&binding).await?;
            let event =
                AuditEvent::new(by, Verb::Create, Resource::RoleBindings, binding.id, scope);
            let event = event.named(described(&binding));
            let created = self.bindings.create(transaction, &key, &binding)?;
            if self.commit(created, &event).await?.is_some() {
                return Ok(binding);
            }
            if !checks.is_empty() && self.is_bootstrapped().await? {
                return Err(TenancyError::AlreadyBootstrapped);
            }
        }
        Err(busy(RoleBindingId::derive(&new.actor, &new.binding)))
    }

    /// Removes a binding. The user's next request no longer has the role.
    ///
    /// # Errors
    ///
    /// It does not exist or is not visible, the caller may not delete it, or it is the [last one](TenancyError::LastAdministrator) that
    /// administers its scope. A caller with the permission from outside of an organization can remove the organization's last
    /// administrator.
    pub async fn unbind(
        &self,
        principal: &Principal,
        id: RoleBindingId,
    ) -> Result<(), TenancyError> {
        for _ in 0..ATTEMPTS {
            let found = self.find_binding(principal, Verb::Delete, id).await?;
            let binding = &found.value;
            let mut transaction = fleetwright_store::Transaction::new();
            transaction
                .checks
                .extend(self.check_administered(principal, binding).await?);
            let removed = self.bindings.remove(transaction, &found);
            let actor = principal.actor();
            let scope = binding.scope();
            let event = AuditEvent::new(actor, Verb::Delete, Resource::RoleBindings, id, scope);
            let event = event.named(described(binding));
            if self.commit(removed, &event).await?.is_some() {
                return Ok(());
            }
        }
        Err(busy(id))
    }

    /// Returns a binding.
    ///
    /// # Errors
    ///
    /// It does not exist, or is not visible to the caller.
    pub async fn binding(
        &self,
        principal: &Principal,
        id: RoleBindingId,
    ) -> Result<RoleBinding, TenancyError> {
        Ok(self.find_binding(principal, Verb::Read, id).await?.value)
    }

    /// Returns a page of the bindings at a scope, in the order of their ids. Bindings at scopes within it are not included.
    ///
    /// # Errors
    ///
    /// The caller may not list bindings in the scope, or the store fails. Neither depends on whether the scope exists.
    pub async fn bindings(
        &self,
        principal: &Principal,
        scope: &Scope,
        request: &PageRequest,
    ) -> Result<ListPage<RoleBinding>, TenancyError> {
        principal.authorize(Verb::List, Resource::RoleBindings, scope)?;
        let index = IndexName::new(record::PLACE_INDEX)?;
        let source = Source::Range(self.bindings.by(&index, record::place(scope)));
        Ok(page(&self.bindings, self.store.schema(), source, request).await?)
    }

    async fn find_binding(
        &self,
        principal: &Principal,
        verb: Verb,
        id: RoleBindingId,
    ) -> Result<Versioned<RoleBinding>, TenancyError> {
        let found = match self.bindings.get(&id.key()?).await {
            Ok(found) => found.ok_or_else(|| missing(id))?,
            Err(error @ (StoreError::Corrupt { .. } | StoreError::Incompatible { .. })) => {
                // It does not exist for those to whom nothing of it is visible.
                self.show_binding(principal, id).await?;
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        match principal.access(verb, Resource::RoleBindings, &found.value.scope()) {
            Access::Allowed => Ok(found),
            Access::NotVisible => Err(missing(id)),
            Access::Refused(refused) => {
                let name = described(&found.value);
                self.audit.record_refusal(&refused, id, Some(&name)).await;
                Err(refused.into())
            }
        }
    }

    /// Checks that the user has room for another binding in the organization. Reads at most a hundred bindings.
    async fn check_room(&self, binding: &RoleBinding) -> Result<(), TenancyError> {
        let Some(organization) = binding.organization else {
            return Ok(());
        };
        let (kind, name) = binding.actor.parts();
        let index = IndexName::new(record::MEMBER_INDEX)?;
        let value = [kind, name.as_str(), &organization.to_string()];
        let query = self.bindings.by(&index, value).limit(MAX_BINDINGS as u32);
        let page = self.bindings.list(&query).await?;
        if page.items.len() + page.damaged.len() < MAX_BINDINGS {
            return Ok(());
        }
        Err(TenancyError::TooManyBindings {
            actor: binding.actor.clone(),
            limit: MAX_BINDINGS,
        })
    }
}

/// What the audit log calls a binding.
fn described(binding: &RoleBinding) -> String {
    format!("{} to {}", binding.role(), binding.actor)
}

pub(super) fn missing(id: RoleBindingId) -> TenancyError {
    TenancyError::NotFound {
        what: WHAT,
        id: id.to_string(),
    }
}

fn busy(id: RoleBindingId) -> TenancyError {
    TenancyError::Busy {
        what: WHAT,
        id: id.to_string(),
    }
}
