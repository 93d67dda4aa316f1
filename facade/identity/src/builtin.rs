//! The built-in roles.

use crate::{Level, Permission, Resource, Role, Verb};

/// Resources that tenants own and change.
const TENANT_RESOURCES: [Resource; 4] = [
    Resource::Instances,
    Resource::Networks,
    Resource::SecurityGroups,
    Resource::SshCertificateAuthorities,
];
/// Resources that are offered to tenants.
const CATALOG: [Resource; 3] = [Resource::Regions, Resource::Flavors, Resource::Images];
/// Resources that an administrator of an organization manages.
const ADMINISTERED: [Resource; 3] = [
    Resource::Projects,
    Resource::RoleBindings,
    Resource::ProjectQuotas,
];
/// Accounting that tenants can read.
const ACCOUNTING: [Resource; 2] = [Resource::Quotas, Resource::Allocations];

const READ_VERBS: [Verb; 2] = [Verb::Read, Verb::List];

pub(crate) fn roles() -> Vec<Role> {
    let built_in = [
        (
            "platform-administrator",
            Level::Global,
            platform_administrator as Set,
        ),
        (
            "organization-administrator",
            Level::Organization,
            organization_administrator,
        ),
        (
            "organization-auditor",
            Level::Organization,
            organization_auditor,
        ),
        ("project-user", Level::Project, project_user),
        ("project-reader", Level::Project, project_reader),
    ];
    let roles = built_in.map(|(name, level, set)| Role::from_static(name, level, set()));
    roles.into()
}

type Set = fn() -> Vec<Permission>;

fn platform_administrator() -> Vec<Permission> {
    Permission::all()
        .filter(|permission| !permission.is_internal())
        .collect()
}

fn organization_administrator() -> Vec<Permission> {
    let mut set = full_access(&TENANT_RESOURCES);
    set.extend(full_access(&ADMINISTERED));
    set.extend(read_access(&CATALOG));
    set.extend(read_access(&ACCOUNTING));
    set.extend(read_access(&[Resource::Organizations, Resource::AuditLog]));
    // Images of the organization. Those of the catalog are outside its scope.
    set.extend(permissions(
        &[Resource::Images],
        &[Verb::Create, Verb::Update, Verb::Delete],
    ));
    set
}

fn organization_auditor() -> Vec<Permission> {
    let mut set = read_access(&TENANT_RESOURCES);
    set.extend(read_access(&ADMINISTERED));
    set.extend(read_access(&CATALOG));
    set.extend(read_access(&ACCOUNTING));
    set.extend(read_access(&[Resource::Organizations, Resource::AuditLog]));
    set
}

fn project_user() -> Vec<Permission> {
    let mut set = full_access(&TENANT_RESOURCES);
    set.extend(project_reader());
    // Images of the project, which its snapshots create and its quota pays.
    set.extend(permissions(&[Resource::Images], &[Verb::Delete]));
    set
}

fn project_reader() -> Vec<Permission> {
    let mut set = read_access(&TENANT_RESOURCES);
    set.extend(read_access(&CATALOG));
    set.extend(read_access(&[
        Resource::ProjectQuotas,
        Resource::Allocations,
    ]));
    set.extend(permissions(&[Resource::Projects], &[Verb::Read]));
    set
}

fn read_access(resources: &[Resource]) -> Vec<Permission> {
    permissions(resources, &READ_VERBS)
}

fn full_access(resources: &[Resource]) -> Vec<Permission> {
    permissions(resources, &Verb::ALL)
}

/// Returns the existing permissions with one of these verbs on one of these resources.
fn permissions(resources: &[Resource], verbs: &[Verb]) -> Vec<Permission> {
    Permission::all()
        .filter(|permission| {
            resources.contains(&permission.resource()) && verbs.contains(&permission.verb())
        })
        .collect()
}
