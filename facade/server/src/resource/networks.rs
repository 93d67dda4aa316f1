//! Networks.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_region::ids::NetworkId;
use fleetwright_region::network::{Deletion, IfUsed};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Answer, page::RecordParameters};
use crate::{
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Lists networks.
#[utoipa::path(get, path = "/api/v2/networks", tag = "networks", operation_id = "listNetworks",
    params(RecordParameters), responses((status = 200, body = api::NetworkPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<RecordParameters>,
) -> Answer {
    let list = service
        .facade
        .networks
        .list(&caller, &parameters.filter()?)
        .await?;
    let (items, next) = parameters.page(&list, wire::network::network)?;
    Ok(extract::json(
        StatusCode::OK,
        &api::NetworkPage { items, next },
    ))
}

/// Creates a network.
#[utoipa::path(post, path = "/api/v2/networks", tag = "networks", operation_id = "createNetwork",
    request_body = api::NetworkCreate, responses((status = 201, body = api::Network)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::NetworkCreate>,
) -> Answer {
    let new = wire::network::parse_new(&new)?;
    let created = service.facade.networks.create(&caller, &new).await?;
    let location = format!("/api/v2/networks/{}", created.value.id);
    let etag = service
        .keys
        .etag(&format!("networks/{}", created.key), created.revision);
    let response = extract::json(StatusCode::CREATED, &wire::network::network(&created.value));
    Ok(with(
        with(response, header::ETAG, &etag),
        header::LOCATION,
        &location,
    ))
}

/// Reads a network.
#[utoipa::path(get, path = "/api/v2/networks/{networkId}", tag = "networks", operation_id = "readNetwork",
    params(("networkId" = String, Path, format = "uuid")), responses((status = 200, body = api::Network)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: NetworkId = path.parse("networkId")?;
    let found = service.facade.networks.show(&caller, id).await?;
    let etag = service
        .keys
        .etag(&format!("networks/{}", found.key), found.revision);
    let response = extract::json(StatusCode::OK, &wire::network::network(&found.value));
    Ok(with(response, header::ETAG, &etag))
}

/// What happens to the instances of a network.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParameters {
    /// Deletes the instances of the network first. Without it, a network with instances is not deleted.
    #[serde(default)]
    delete_instances: bool,
}

/// Deletes a network.
///
/// The response is 204 if it is gone, and 202 if it is gone as soon as its instances are.
#[utoipa::path(delete, path = "/api/v2/networks/{networkId}", tag = "networks", operation_id = "deleteNetwork",
    params(("networkId" = String, Path, format = "uuid"), DeleteParameters), responses((status = 204), (status = 202)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<DeleteParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: NetworkId = path.parse("networkId")?;
    extract::no_if_match(&headers)?;
    let if_used = if parameters.delete_instances {
        IfUsed::DeleteFirst
    } else {
        IfUsed::Refuse
    };
    let status = match service.facade.networks.delete(&caller, id, if_used).await? {
        Deletion::Deleted => StatusCode::NO_CONTENT,
        Deletion::Waiting => StatusCode::ACCEPTED,
    };
    Ok(status.into_response())
}
