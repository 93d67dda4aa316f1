//! Access to the machine of an instance: console, SSH key, snapshot.

use std::num::NonZeroUsize;

use axum::{extract::State, http::StatusCode};
use fleetwright_api as api;
use fleetwright_compute::instance::InstanceId;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Answer;
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query},
    },
    service::Service,
    wire,
};

/// Reads the private SSH key of an instance.
#[utoipa::path(get, path = "/api/v2/instances/{instanceId}/sshkey", tag = "instances", operation_id = "readInstanceSshKey",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 200, body = api::SshKey)))]
pub(crate) async fn ssh_key(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let key = service.facade.instances.ssh_key(&caller, id).await?;
    let text = key
        .expose_text()
        .ok_or_else(|| Failure::internal("an SSH key is not text"))?;
    let private_key = text.to_owned();
    Ok(extract::json(StatusCode::OK, &api::SshKey { private_key }))
}

/// Opens a session on the console of an instance.
#[utoipa::path(get, path = "/api/v2/instances/{instanceId}/consolesession", tag = "instances", operation_id = "openInstanceConsole",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 200, body = api::ConsoleSession)))]
pub(crate) async fn console_session(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let session = service
        .facade
        .instances
        .console_session(&caller, id)
        .await?;
    let session = api::ConsoleSession {
        url: session.url,
        expires_at: session.expires_at,
    };
    Ok(extract::json(StatusCode::OK, &session))
}

/// How much of the output.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputParameters {
    /// How many lines. Default: all that the cloud keeps.
    #[param(value_type = Option<u64>, minimum = 1)]
    length: Option<NonZeroUsize>,
}

/// Reads the console output of an instance.
#[utoipa::path(get, path = "/api/v2/instances/{instanceId}/consoleoutput", tag = "instances", operation_id = "readInstanceConsole",
    params(("instanceId" = String, Path, format = "uuid"), OutputParameters), responses((status = 200, body = api::ConsoleOutput)))]
pub(crate) async fn console_output(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<OutputParameters>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let output = service
        .facade
        .instances
        .console_output(&caller, id, parameters.length)
        .await?;
    let output = api::ConsoleOutput {
        contents: output.text,
        captured_at: output.captured_at,
    };
    Ok(extract::json(StatusCode::OK, &output))
}

/// Creates an image of the disk of an instance.
#[utoipa::path(post, path = "/api/v2/instances/{instanceId}/snapshot", tag = "instances", operation_id = "snapshotInstance",
    params(("instanceId" = String, Path, format = "uuid")), request_body = api::SnapshotCreate, responses((status = 201, body = api::Image)))]
pub(crate) async fn snapshot(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::SnapshotCreate>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let new = wire::instance::parse_snapshot(&new)?;
    let image = service.facade.instances.snapshot(&caller, id, &new).await?;
    Ok(extract::json(
        StatusCode::CREATED,
        &wire::catalog::image(&image),
    ))
}
