//! Organizations.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_identity::{NewOrganization, OrganizationId, TenantName};

use super::{Answer, page::PageParameters};
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Lists organizations.
#[utoipa::path(get, path = "/api/v2/organizations", tag = "tenancy", operation_id = "listOrganizations",
    params(PageParameters), responses((status = 200, body = api::OrganizationPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<PageParameters>,
) -> Answer {
    let page = service
        .facade
        .tenancy
        .organizations(&caller, &parameters.request()?)
        .await?;
    let newer = page.newer.iter().map(|shown| &shown.value);
    let items = page
        .items
        .iter()
        .chain(newer)
        .map(wire::tenancy::organization);
    let page = api::OrganizationPage {
        items: items.collect(),
        next: page.next,
    };
    Ok(extract::json(StatusCode::OK, &page))
}

/// Creates an organization.
#[utoipa::path(post, path = "/api/v2/organizations", tag = "tenancy", operation_id = "createOrganization",
    request_body = api::OrganizationCreate, responses((status = 201, body = api::Organization)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::OrganizationCreate>,
) -> Answer {
    let name = TenantName::new(&new.name).map_err(|error| Failure::invalid("name", error))?;
    let new = NewOrganization::new(name);
    let created = service
        .facade
        .tenancy
        .create_organization(&caller, &new)
        .await?;
    let location = format!("/api/v2/organizations/{}", created.id);
    let response = extract::json(StatusCode::CREATED, &wire::tenancy::organization(&created));
    Ok(with(response, header::LOCATION, &location))
}

/// Reads an organization.
#[utoipa::path(get, path = "/api/v2/organizations/{organizationId}", tag = "tenancy", operation_id = "readOrganization",
    params(("organizationId" = String, Path, format = "uuid")), responses((status = 200, body = api::Organization)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: OrganizationId = path.parse("organizationId")?;
    let found = service
        .facade
        .tenancy
        .show_organization(&caller, id)
        .await?;
    Ok(extract::json(
        StatusCode::OK,
        &wire::tenancy::organization(&found.value),
    ))
}

/// Deletes an organization that has no projects.
#[utoipa::path(delete, path = "/api/v2/organizations/{organizationId}", tag = "tenancy", operation_id = "deleteOrganization",
    params(("organizationId" = String, Path, format = "uuid")), responses((status = 204)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: OrganizationId = path.parse("organizationId")?;
    extract::no_if_match(&headers)?;
    service
        .facade
        .tenancy
        .delete_organization(&caller, id)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
