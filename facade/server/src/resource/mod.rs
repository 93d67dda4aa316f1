//! The operations, one file for each resource. A handler parses, makes one call of the façade, and converts its result.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod authorities;
pub(crate) mod bindings;
pub(crate) mod catalog;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod images;
pub(crate) mod instances;
pub(crate) mod networks;
pub(crate) mod operator;
pub(crate) mod organizations;
pub(crate) mod page;
pub(crate) mod projects;
pub(crate) mod quotas;
pub(crate) mod verbs;
pub(crate) mod watch;

use axum::response::Response;

use fleetwright_identity::{OrganizationId, Principal, Resource, Scope, Verb};

use crate::{failure::Failure, service::Service};

/// Fails if an organization does not exist. Only a caller who may read every organization can name one that does not: the others are refused before.
pub(crate) async fn check_organization(
    service: &Service,
    caller: &Principal,
    organization: OrganizationId,
) -> Result<(), Failure> {
    let reads_all = caller.authorize(Verb::Read, Resource::Organizations, &Scope::Global);
    if reads_all.is_ok() {
        let tenancy = &service.facade.tenancy;
        tenancy.show_organization(caller, organization).await?;
    }
    Ok(())
}

/// What a handler returns.
pub(crate) type Answer = Result<Response, Failure>;
