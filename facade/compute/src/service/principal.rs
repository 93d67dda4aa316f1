//! The principal of compute's calls to the region.

use fleetwright_identity::{ActorName, InvalidName, Permission, Principal, Resource, Verb};

/// The permissions of compute in every scope: everything on servers, reading what servers refer to, and finishing the deletion of
/// networks. None on instances: those calls are made with the caller's own principal.
///
/// ```
/// use fleetwright_compute::service::compute_permissions;
/// use fleetwright_identity::Resource;
///
/// assert!(compute_permissions().any(|permission| permission.resource() == Resource::Servers));
/// assert!(compute_permissions().all(|permission| permission.resource() != Resource::Instances));
/// ```
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
        | Resource::NativeImages
        | Resource::Regions
        | Resource::Organizations
        | Resource::Projects
        | Resource::RoleBindings
        | Resource::Quotas
        | Resource::ProjectQuotas
        | Resource::Allocations
        | Resource::AuditLog => false,
    })
}

/// The service principal `compute` with [its permissions](compute_permissions). The events of servers name it.
///
/// ```
/// let principal = fleetwright_compute::service::compute_principal()?;
/// assert_eq!(principal.actor().to_string(), "service compute");
/// # Ok::<(), fleetwright_identity::InvalidName>(())
/// ```
///
/// # Errors
///
/// Never in practice: only if `compute` were not a valid name of an actor.
pub fn compute_principal() -> Result<Principal, InvalidName> {
    Ok(Principal::service(
        ActorName::new("compute")?,
        compute_permissions(),
    ))
}
