//! Security groups.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_region::ids::SecurityGroupId;

use super::{Answer, page::RecordParameters};
use crate::{
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Lists security groups.
#[utoipa::path(get, path = "/api/v2/securitygroups", tag = "networks", operation_id = "listSecurityGroups",
    params(RecordParameters), responses((status = 200, body = api::SecurityGroupPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<RecordParameters>,
) -> Answer {
    let list = service
        .facade
        .security_groups
        .list(&caller, &parameters.filter()?)
        .await?;
    let (items, next) = parameters.page(&list, wire::network::group)?;
    Ok(extract::json(
        StatusCode::OK,
        &api::SecurityGroupPage { items, next },
    ))
}

/// Creates a security group.
#[utoipa::path(post, path = "/api/v2/securitygroups", tag = "networks", operation_id = "createSecurityGroup",
    request_body = api::SecurityGroupCreate, responses((status = 201, body = api::SecurityGroup)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::SecurityGroupCreate>,
) -> Answer {
    let new = wire::network::parse_group(&new)?;
    let created = service.facade.security_groups.create(&caller, &new).await?;
    let location = format!("/api/v2/securitygroups/{}", created.value.id);
    let etag = service
        .keys
        .etag(&format!("groups/{}", created.key), created.revision);
    let response = extract::json(StatusCode::CREATED, &wire::network::group(&created.value));
    Ok(with(
        with(response, header::ETAG, &etag),
        header::LOCATION,
        &location,
    ))
}

/// Reads a security group.
#[utoipa::path(get, path = "/api/v2/securitygroups/{securityGroupId}", tag = "networks", operation_id = "readSecurityGroup",
    params(("securityGroupId" = String, Path, format = "uuid")), responses((status = 200, body = api::SecurityGroup)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: SecurityGroupId = path.parse("securityGroupId")?;
    let found = service.facade.security_groups.show(&caller, id).await?;
    let etag = service
        .keys
        .etag(&format!("groups/{}", found.key), found.revision);
    let response = extract::json(StatusCode::OK, &wire::network::group(&found.value));
    Ok(with(response, header::ETAG, &etag))
}

/// Replaces the rules of a security group.
///
/// Rules are stored and not enforced: see the documentation of regions.
#[utoipa::path(put, path = "/api/v2/securitygroups/{securityGroupId}", tag = "networks", operation_id = "updateSecurityGroup",
    params(("securityGroupId" = String, Path, format = "uuid")), request_body = api::SecurityGroupUpdate, responses((status = 200, body = api::SecurityGroup)))]
pub(crate) async fn update(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
    Body(update): Body<api::SecurityGroupUpdate>,
) -> Answer {
    let id: SecurityGroupId = path.parse("securityGroupId")?;
    extract::no_if_match(&headers)?;
    let rules = wire::network::parse_rules(&update.rules)?;
    let updated = service
        .facade
        .security_groups
        .set_rules(&caller, id, &rules)
        .await?;
    let etag = service
        .keys
        .etag(&format!("groups/{}", updated.key), updated.revision);
    let response = extract::json(StatusCode::OK, &wire::network::group(&updated.value));
    Ok(with(response, header::ETAG, &etag))
}

/// Deletes a security group that no instance uses.
#[utoipa::path(delete, path = "/api/v2/securitygroups/{securityGroupId}", tag = "networks", operation_id = "deleteSecurityGroup",
    params(("securityGroupId" = String, Path, format = "uuid")), responses((status = 204)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: SecurityGroupId = path.parse("securityGroupId")?;
    extract::no_if_match(&headers)?;
    service.facade.security_groups.delete(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
