//! Tenants, and the principals that make the calls of tests.

use fleetwright_identity::{
    Actor, ActorName, Binding, NewOrganization, NewProject, OrganizationId, Permission, Principal,
    ProjectId, Role, RoleName, Roles, Scope, Tenancy, TenantName,
};
use uuid::Uuid;

/// An organization and one of its projects.
pub type Tenant = (OrganizationId, ProjectId);

/// A tenant by two numbers. Most tests use `tenant(1, 1)`.
pub fn tenant(organization: u128, project: u128) -> Tenant {
    let [organization, project] = [organization, project].map(Uuid::from_u128);
    (organization.into(), project.into())
}

/// Creates the organization and the project of a tenant, unless they exist. They are named after their ids.
pub async fn create_tenant(tenancy: &Tenancy, tenant: Tenant) {
    let named = |prefix: &str, id: Uuid| TenantName::new(format!("{prefix}-{id}")).unwrap();
    let (organization, project) = tenant;
    let new = NewOrganization::new(named("org", organization.as_uuid())).with_id(organization);
    tenancy
        .create_organization(&operator(), &new)
        .await
        .unwrap();
    let new = NewProject::new(organization, named("project", project.as_uuid())).with_id(project);
    tenancy.create_project(&operator(), &new).await.unwrap();
}

/// The scope of a tenant's project.
pub fn scope(tenant: Tenant) -> Scope {
    Scope::Project(tenant.0, tenant.1)
}

/// A user with built-in roles.
pub fn with_roles(called: &str, roles: &[(&str, Scope)]) -> Principal {
    let bindings = roles
        .iter()
        .map(|(role, scope)| Binding::new(RoleName::new(role).unwrap(), *scope));
    let bindings: Vec<_> = bindings.collect();
    let actor = Actor::User(ActorName::new(called).unwrap());
    Roles::built_in().principal(actor, &bindings).unwrap()
}

/// The user `alice`, who works in a project.
pub fn project_user(tenant: Tenant) -> Principal {
    with_roles("alice", &[("project-user", scope(tenant))])
}

/// The user `rita`, who may only read in a project.
pub fn project_reader(tenant: Tenant) -> Principal {
    with_roles("rita", &[("project-reader", scope(tenant))])
}

/// The user `sam`, with these permissions in a scope and no other.
pub fn user_with(scope: Scope, permissions: impl IntoIterator<Item = Permission>) -> Principal {
    let called = RoleName::new("some").unwrap();
    let role = Role::new(called.clone(), scope.level(), permissions).unwrap();
    let roles = Roles::built_in().with(role).unwrap();
    let actor = Actor::User(ActorName::new("sam").unwrap());
    let binding = Binding::new(called, scope);
    roles.principal(actor, &[binding]).unwrap()
}

/// A service with every permission everywhere.
pub fn operator() -> Principal {
    Principal::service(ActorName::new("operator").unwrap(), Permission::all())
}
