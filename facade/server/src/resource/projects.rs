//! Projects of organizations.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_identity::{NewProject, OrganizationId, ProjectId, TenantName};

use super::{Answer, check_organization, page::PageParameters};
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Lists the projects of an organization.
#[utoipa::path(get, path = "/api/v2/organizations/{organizationId}/projects", tag = "tenancy", operation_id = "listProjects",
    params(("organizationId" = String, Path, format = "uuid"), PageParameters), responses((status = 200, body = api::ProjectPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<PageParameters>,
) -> Answer {
    let organization: OrganizationId = path.parse("organizationId")?;
    let request = parameters.request()?;
    check_organization(&service, &caller, organization).await?;
    let page = service
        .facade
        .tenancy
        .projects(&caller, organization, &request)
        .await?;
    let newer = page.newer.iter().map(|shown| &shown.value);
    let items = page.items.iter().chain(newer).map(wire::tenancy::project);
    let page = api::ProjectPage {
        items: items.collect(),
        next: page.next,
    };
    Ok(extract::json(StatusCode::OK, &page))
}

/// Creates a project.
#[utoipa::path(post, path = "/api/v2/organizations/{organizationId}/projects", tag = "tenancy", operation_id = "createProject",
    params(("organizationId" = String, Path, format = "uuid")), request_body = api::ProjectCreate, responses((status = 201, body = api::Project)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::ProjectCreate>,
) -> Answer {
    let organization: OrganizationId = path.parse("organizationId")?;
    let name = TenantName::new(&new.name).map_err(|error| Failure::invalid("name", error))?;
    let new = NewProject::new(organization, name);
    let created = service.facade.tenancy.create_project(&caller, &new).await?;
    let location = format!(
        "/api/v2/organizations/{organization}/projects/{}",
        created.id
    );
    let response = extract::json(StatusCode::CREATED, &wire::tenancy::project(&created));
    Ok(with(response, header::LOCATION, &location))
}

/// Reads a project.
#[utoipa::path(get, path = "/api/v2/organizations/{organizationId}/projects/{projectId}", tag = "tenancy", operation_id = "readProject",
    params(("organizationId" = String, Path, format = "uuid"), ("projectId" = String, Path, format = "uuid")), responses((status = 200, body = api::Project)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let organization: OrganizationId = path.parse("organizationId")?;
    let id: ProjectId = path.parse("projectId")?;
    let found = service
        .facade
        .tenancy
        .show_project(&caller, organization, id)
        .await?;
    Ok(extract::json(
        StatusCode::OK,
        &wire::tenancy::project(&found.value),
    ))
}

/// Deletes a project that is empty.
#[utoipa::path(delete, path = "/api/v2/organizations/{organizationId}/projects/{projectId}", tag = "tenancy", operation_id = "deleteProject",
    params(("organizationId" = String, Path, format = "uuid"), ("projectId" = String, Path, format = "uuid")), responses((status = 204)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let organization: OrganizationId = path.parse("organizationId")?;
    let id: ProjectId = path.parse("projectId")?;
    extract::no_if_match(&headers)?;
    service
        .facade
        .tenancy
        .delete_project(&caller, organization, id)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
