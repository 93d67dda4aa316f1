//! In whose name compute asks for servers.

use fleetwright_identity::{ActorName, InvalidName, Permission, Principal, Resource, Verb};

/// What the parts of compute may, everywhere: all of it to servers; look at what servers stand on; and see networks that are to go to
/// their end. Nothing of a tenant's instances: those are a tenant's to see, with the tenant's own principal.
pub fn compute_permissions() -> impl Iterator<Item = Permission> {
    Permission::all().filter(|permission| match permission.resource() {
        Resource::Servers => true,
        Resource::Networks => {
            matches!(permission.verb(), Verb::Read | Verb::List | Verb::Delete)
        }
        Resource::SecurityGroups
        | Resource::SshCertificateAuthorities
        | Resource::Flavors
        | Resource::Images => permission.verb() == Verb::Read,
        Resource::Instances
        | Resource::Regions
        | Resource::Organizations
        | Resource::Projects
        | Resource::RoleBindings
        | Resource::Quotas
        | Resource::ProjectQuotas
        | Resource::Allocations => false,
    })
}

/// The service `compute` with [its permissions](compute_permissions), whose name the records of servers keep.
pub fn compute_principal() -> Result<Principal, InvalidName> {
    Ok(Principal::service(
        ActorName::new("compute")?,
        compute_permissions(),
    ))
}
