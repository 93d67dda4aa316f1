//! Who may grant what: nobody grants more than they have, and every organization keeps an administrator.

use fleetwright_store::{Check, IndexName};

use super::{RoleBinding, Tenancy, TenancyError, record};
use crate::{Binding, InvalidRole, Level, Permission, Principal, Resource, Role, Scope, Verb};

/// Returns whether a role administers the scopes at which it is bound: it can grant roles there.
fn administers(role: &Role) -> bool {
    Permission::new(Verb::Create, Resource::RoleBindings)
        .is_ok_and(|bind| role.permissions().any(|permission| permission == bind))
}

impl Tenancy {
    /// Checks that a role can be bound at the scope, and that the caller has every permission of the role there.
    pub(super) fn check_grant(
        &self,
        principal: &Principal,
        binding: &Binding,
    ) -> Result<(), TenancyError> {
        let Binding { role: name, scope } = binding;
        let role = self.bindable(binding)?;
        for permission in role.permissions() {
            let held = principal.authorize(permission.verb(), permission.resource(), scope);
            // No role has an internal permission. If one had, it would not be bound either.
            if held.is_err() || permission.is_internal() {
                return Err(TenancyError::Escalation {
                    role: name.clone(),
                    permission,
                    scope: *scope,
                });
            }
        }
        Ok(())
    }

    /// Returns a role that can be bound at a scope.
    pub(super) fn bindable(&self, binding: &Binding) -> Result<&Role, InvalidRole> {
        let Binding { role: name, scope } = binding;
        let role = self.roles.role(name);
        let role = role.ok_or_else(|| InvalidRole::Unknown(name.clone()))?;
        if role.level() == scope.level() {
            return Ok(role);
        }
        Err(InvalidRole::WrongLevel {
            role: name.clone(),
            level: role.level(),
            bound_at: scope.level(),
        })
    }

    /// Returns the check that another administrator stays when a binding is removed, or `None` if none is needed: the binding does not
    /// administer its scope, it is that of a project, or the caller administers the scope from outside.
    pub(super) async fn check_administered(
        &self,
        principal: &Principal,
        removed: &RoleBinding,
    ) -> Result<Option<Check>, TenancyError> {
        let scope = removed.scope();
        let role = self.roles.role(removed.role());
        if !role.is_some_and(administers) {
            return Ok(None);
        }
        let from_outside = principal
            .authorize(Verb::Delete, Resource::RoleBindings, &Scope::Global)
            .is_ok();
        match scope.level() {
            Level::Project => return Ok(None),
            Level::Organization if from_outside => return Ok(None),
            Level::Organization | Level::Global => {}
        }
        let index = IndexName::new(record::PLACE_ROLE_INDEX)?;
        let level = scope.level();
        let roles = self.roles.iter();
        for role in roles.filter(|role| role.level() == level && administers(role)) {
            let value = [record::place(&scope), role.name().to_string()];
            let query = self.bindings.by(&index, value).limit(2);
            let page = self.bindings.list(&query).await?;
            let other = page
                .items
                .into_iter()
                .find(|one| one.value.id != removed.id);
            if let Some(other) = other {
                return Ok(Some(Check::Exists(self.bindings.id(&other.key))));
            }
        }
        Err(TenancyError::LastAdministrator(scope))
    }
}
