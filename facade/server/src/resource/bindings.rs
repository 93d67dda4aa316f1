//! Role bindings, roles, and the caller itself.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_identity::RoleBindingId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Answer, page};
use crate::{
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Where the bindings hold, and the position in the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BindingParameters {
    /// The organization. Default: the whole platform.
    #[param(format = "uuid")]
    organization_id: Option<String>,
    /// The project, with its organization.
    #[param(format = "uuid")]
    project_id: Option<String>,
    /// The size of the page.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The `next` of the last page.
    #[param(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    after: Option<String>,
}

/// Lists the role bindings of a scope.
#[utoipa::path(get, path = "/api/v2/rolebindings", tag = "tenancy", operation_id = "listRoleBindings",
    params(BindingParameters), responses((status = 200, body = api::RoleBindingPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<BindingParameters>,
) -> Answer {
    let (organization, project) = (&parameters.organization_id, &parameters.project_id);
    let scope = wire::tenancy::parse_scope(organization.as_deref(), project.as_deref(), "")?;
    let request = page::request(parameters.limit, parameters.after)?;
    let page = service
        .facade
        .tenancy
        .bindings(&caller, &scope, &request)
        .await?;
    let newer = page.newer.iter().map(|shown| &shown.value);
    let items = page.items.iter().chain(newer).map(wire::tenancy::binding);
    let page = api::RoleBindingPage {
        items: items.collect(),
        next: page.next,
    };
    Ok(extract::json(StatusCode::OK, &page))
}

/// Gives a role to a user. Repeating it is no error.
#[utoipa::path(post, path = "/api/v2/rolebindings", tag = "tenancy", operation_id = "createRoleBinding",
    request_body = api::RoleBindingCreate, responses((status = 201, body = api::RoleBinding)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::RoleBindingCreate>,
) -> Answer {
    let new = wire::tenancy::parse_binding(&new)?;
    let created = service.facade.tenancy.bind(&caller, &new).await?;
    let location = format!("/api/v2/rolebindings/{}", created.id);
    let response = extract::json(StatusCode::CREATED, &wire::tenancy::binding(&created));
    Ok(with(response, header::LOCATION, &location))
}

/// Reads a role binding.
#[utoipa::path(get, path = "/api/v2/rolebindings/{roleBindingId}", tag = "tenancy", operation_id = "readRoleBinding",
    params(("roleBindingId" = String, Path, format = "uuid")), responses((status = 200, body = api::RoleBinding)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: RoleBindingId = path.parse("roleBindingId")?;
    let found = service.facade.tenancy.show_binding(&caller, id).await?;
    Ok(extract::json(
        StatusCode::OK,
        &wire::tenancy::binding(&found.value),
    ))
}

/// Takes a role from a user.
#[utoipa::path(delete, path = "/api/v2/rolebindings/{roleBindingId}", tag = "tenancy", operation_id = "deleteRoleBinding",
    params(("roleBindingId" = String, Path, format = "uuid")), responses((status = 204)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: RoleBindingId = path.parse("roleBindingId")?;
    extract::no_if_match(&headers)?;
    service.facade.tenancy.unbind(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the roles of the installation.
#[utoipa::path(get, path = "/api/v2/roles", tag = "tenancy", operation_id = "listRoles", responses((status = 200, body = api::RoleList)))]
pub(crate) async fn roles(
    State(service): State<Service>,
    _: Caller,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let items = service
        .facade
        .tenancy
        .roles()
        .iter()
        .map(wire::tenancy::role)
        .collect();
    Ok(extract::json(StatusCode::OK, &api::RoleList { items }))
}

/// Reads who the caller is, with its roles.
#[utoipa::path(get, path = "/api/v2/caller", tag = "tenancy", operation_id = "readCaller", responses((status = 200, body = api::Caller)))]
pub(crate) async fn caller(
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    Ok(extract::json(
        StatusCode::OK,
        &wire::tenancy::caller(&caller),
    ))
}
