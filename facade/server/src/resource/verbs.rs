//! Verbs of instances: start, stop, reboot, replace.

use axum::{extract::State, http::HeaderMap, http::StatusCode};
use fleetwright_api as api;
use fleetwright_compute::{instance::InstanceId, prelude::Reboot, service::Accepted};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::{
    http::{
        caller::Caller,
        extract::{self, NoParameters, Path, Query},
    },
    service::Service,
};

/// Starts an instance. The request holds for later machines too.
#[utoipa::path(post, path = "/api/v2/instances/{instanceId}/start", tag = "instances", operation_id = "startInstance",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 202, body = api::Accepted)))]
pub(crate) async fn start(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    extract::no_if_match(&headers)?;
    Ok(accepted(service.facade.instances.start(&caller, id).await?))
}

/// Stops an instance. It keeps its disk and its quota.
#[utoipa::path(post, path = "/api/v2/instances/{instanceId}/stop", tag = "instances", operation_id = "stopInstance",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 202, body = api::Accepted)))]
pub(crate) async fn stop(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    extract::no_if_match(&headers)?;
    Ok(accepted(service.facade.instances.stop(&caller, id).await?))
}

/// How to reboot.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RebootParameters {
    /// Without asking the operating system.
    #[serde(default)]
    hard: bool,
}

/// Reboots an instance.
#[utoipa::path(post, path = "/api/v2/instances/{instanceId}/reboot", tag = "instances", operation_id = "rebootInstance",
    params(("instanceId" = String, Path, format = "uuid"), RebootParameters), responses((status = 202, body = api::Accepted)))]
pub(crate) async fn reboot(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<RebootParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    extract::no_if_match(&headers)?;
    let how = if parameters.hard {
        Reboot::Hard
    } else {
        Reboot::Soft
    };
    Ok(accepted(
        service.facade.instances.reboot(&caller, id, how).await?,
    ))
}

/// Replaces the machine of an instance. The data on its root disk and its addresses are lost.
#[utoipa::path(post, path = "/api/v2/instances/{instanceId}/replace", tag = "instances", operation_id = "replaceInstance",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 202, body = api::Accepted)))]
pub(crate) async fn replace(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    extract::no_if_match(&headers)?;
    Ok(accepted(
        service.facade.instances.replace(&caller, id).await?,
    ))
}

fn accepted(accepted: Accepted) -> axum::response::Response {
    let generation = accepted.generation;
    extract::json(StatusCode::ACCEPTED, &api::Accepted { generation })
}
