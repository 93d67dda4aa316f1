//! The roles that every installation has.

use crate::{Level, Permission, Resource, Role, Verb};

/// What tenants have of their own and change.
const TENANTS: [Resource; 4] = [
    Resource::Instances,
    Resource::Networks,
    Resource::SecurityGroups,
    Resource::SshCertificateAuthorities,
];
/// What is offered to tenants.
const CATALOG: [Resource; 3] = [Resource::Regions, Resource::Flavors, Resource::Images];
/// What an administrator of an organization decides in it.
const GOVERNED: [Resource; 3] = [
    Resource::Projects,
    Resource::RoleBindings,
    Resource::ProjectQuotas,
];
/// What tenants are shown of the accounts that are kept of them.
const ACCOUNTS: [Resource; 2] = [Resource::Quotas, Resource::Allocations];

const LOOK: [Verb; 2] = [Verb::Read, Verb::List];

pub(crate) fn roles() -> Vec<Role> {
    let built_in = [
        ("platform-administrator", Level::Global, everything as Set),
        (
            "organization-administrator",
            Level::Organization,
            administration,
        ),
        ("organization-auditor", Level::Organization, audit),
        ("project-user", Level::Project, use_of_a_project),
        ("project-reader", Level::Project, reading_of_a_project),
    ];
    let made = built_in.map(|(name, level, set)| Role::known(name, level, set()));
    made.into()
}

type Set = fn() -> Vec<Permission>;

fn everything() -> Vec<Permission> {
    Permission::all().collect()
}

fn administration() -> Vec<Permission> {
    let mut set = all_of(&TENANTS);
    set.extend(all_of(&GOVERNED));
    set.extend(looking_at(&CATALOG));
    set.extend(looking_at(&ACCOUNTS));
    set.extend(looking_at(&[Resource::Organizations]));
    // Images of the organization: those of the catalog are not in its scope.
    set.extend(some_of(
        &[Resource::Images],
        &[Verb::Create, Verb::Update, Verb::Delete],
    ));
    set
}

fn audit() -> Vec<Permission> {
    let mut set = looking_at(&TENANTS);
    set.extend(looking_at(&GOVERNED));
    set.extend(looking_at(&CATALOG));
    set.extend(looking_at(&ACCOUNTS));
    set.extend(looking_at(&[Resource::Organizations]));
    set
}

fn use_of_a_project() -> Vec<Permission> {
    let mut set = all_of(&TENANTS);
    set.extend(reading_of_a_project());
    set
}

fn reading_of_a_project() -> Vec<Permission> {
    let mut set = looking_at(&TENANTS);
    set.extend(looking_at(&CATALOG));
    set.extend(looking_at(&[
        Resource::ProjectQuotas,
        Resource::Allocations,
    ]));
    set.extend(some_of(&[Resource::Projects], &[Verb::Read]));
    set
}

fn looking_at(resources: &[Resource]) -> Vec<Permission> {
    some_of(resources, &LOOK)
}

fn all_of(resources: &[Resource]) -> Vec<Permission> {
    some_of(resources, &Verb::ALL)
}

/// The permissions that exist for these resources and are of these verbs.
fn some_of(resources: &[Resource], verbs: &[Verb]) -> Vec<Permission> {
    Permission::all()
        .filter(|permission| {
            resources.contains(&permission.resource()) && verbs.contains(&permission.verb())
        })
        .collect()
}
