//! What is on offer: regions, flavors and images.

use axum::{extract::State, http::StatusCode};
use fleetwright_api as api;
use fleetwright_compute::facade::FacadeRegion;
use fleetwright_identity::{OrganizationId, Principal, Resource, Scope, Verb};
use fleetwright_region::ids::RegionId;

use super::{Answer, check_organization};
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, NoParameters, Path, Query},
    },
    service::Service,
    wire,
};

/// Lists the regions.
#[utoipa::path(get, path = "/api/v1/organizations/{organizationId}/regions", tag = "catalog", operation_id = "listRegions",
    params(("organizationId" = String, Path, format = "uuid")), responses((status = 200, body = api::RegionList)))]
pub(crate) async fn regions(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let organization = path.parse("organizationId")?;
    authorize(&caller, organization, Resource::Regions)?;
    check_organization(&service, &caller, organization).await?;
    let items = service
        .facade
        .regions
        .iter()
        .map(wire::catalog::region)
        .collect();
    Ok(extract::json(StatusCode::OK, &api::RegionList { items }))
}

/// Lists the flavors of a region.
#[utoipa::path(get, path = "/api/v1/organizations/{organizationId}/regions/{regionId}/flavors", tag = "catalog", operation_id = "listFlavors",
    params(("organizationId" = String, Path, format = "uuid"), ("regionId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), responses((status = 200, body = api::FlavorList)))]
pub(crate) async fn flavors(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let organization = path.parse("organizationId")?;
    authorize(&caller, organization, Resource::Flavors)?;
    check_organization(&service, &caller, organization).await?;
    region(&service, &path)?;
    let list = service.facade.catalog.read_flavors(&caller).await?;
    let items = list.items.iter().filter(|flavor| !flavor.retired);
    let items = items.map(wire::catalog::flavor).collect();
    Ok(extract::json(StatusCode::OK, &api::FlavorList { items }))
}

/// Lists the images of a region, with the organization's own.
#[utoipa::path(get, path = "/api/v1/organizations/{organizationId}/regions/{regionId}/images", tag = "catalog", operation_id = "listImages",
    params(("organizationId" = String, Path, format = "uuid"), ("regionId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), responses((status = 200, body = api::ImageList)))]
pub(crate) async fn images(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let organization = path.parse("organizationId")?;
    authorize(&caller, organization, Resource::Images)?;
    check_organization(&service, &caller, organization).await?;
    region(&service, &path)?;
    let list = service.facade.catalog.read_images(&caller).await?;
    let items = list.items.iter().filter(|image| {
        let owner = image.owner();
        !image.retired && owner.is_none_or(|owner| owner.organization == organization)
    });
    let items = items.map(wire::catalog::image).collect();
    Ok(extract::json(StatusCode::OK, &api::ImageList { items }))
}

/// A caller that may list nothing in an organization gets the same response for every organization.
fn authorize(
    caller: &Principal,
    organization: OrganizationId,
    resource: Resource,
) -> Result<(), Failure> {
    let scopes = caller.scopes_for(Verb::List, resource)?;
    let within = Scope::Organization(organization);
    let is_member = caller.organizations().contains(&organization);
    if is_member || scopes.covers(&within) {
        return Ok(());
    }
    let detail = format!("there is no organization {organization}");
    Err(Failure::new(StatusCode::NOT_FOUND, "not_found", detail))
}

fn region<'s>(service: &'s Service, path: &Path) -> Result<&'s FacadeRegion, Failure> {
    let id: RegionId = path.parse("regionId")?;
    let found = service.facade.regions.iter().find(|region| region.id == id);
    found.ok_or_else(|| {
        let detail = format!("there is no region {id}");
        Failure::new(StatusCode::NOT_FOUND, "not_found", detail)
    })
}
