//! Who asks.

use fleetwright_identity::{
    Actor, ActorName, Binding, OrganizationId, Permission, Principal, ProjectId, Role, RoleName,
    Roles, Scope,
};
use uuid::Uuid;

pub(crate) type Tenant = (OrganizationId, ProjectId);

pub(crate) fn tenant(organization: u128, project: u128) -> Tenant {
    let [organization, project] = [organization, project].map(Uuid::from_u128);
    (organization.into(), project.into())
}

pub(crate) fn scope(tenant: Tenant) -> Scope {
    Scope::Project(tenant.0, tenant.1)
}

/// Somebody with built-in roles.
pub(crate) fn with_roles(called: &str, roles: &[(&str, Scope)]) -> Principal {
    let bindings = roles
        .iter()
        .map(|(role, scope)| Binding::new(RoleName::new(role).unwrap(), *scope));
    let bindings: Vec<_> = bindings.collect();
    let actor = Actor::User(ActorName::new(called).unwrap());
    Roles::built_in().principal(actor, &bindings).unwrap()
}

/// Whoever works in a project.
pub(crate) fn user(tenant: Tenant) -> Principal {
    with_roles("alice", &[("project-user", scope(tenant))])
}

/// Whoever looks at a project.
pub(crate) fn reader(tenant: Tenant) -> Principal {
    with_roles("rita", &[("project-reader", scope(tenant))])
}

/// Somebody in a scope with these permissions and no other.
pub(crate) fn somebody(
    scope: Scope,
    permissions: impl IntoIterator<Item = Permission>,
) -> Principal {
    let called = RoleName::new("some").unwrap();
    let role = Role::new(called.clone(), scope.level(), permissions).unwrap();
    let roles = Roles::built_in().with(role).unwrap();
    let actor = Actor::User(ActorName::new("sam").unwrap());
    let binding = Binding::new(called, scope);
    roles.principal(actor, &[binding]).unwrap()
}

/// Whoever may do and see everything.
pub(crate) fn everybody() -> Principal {
    Principal::service(ActorName::new("operator").unwrap(), Permission::all())
}
