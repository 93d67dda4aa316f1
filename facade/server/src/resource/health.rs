//! Whether the service lives and is ready, which version it is, and its metrics.

use std::time::Duration;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_identity::{Resource, Scope, Verb};
use fleetwright_runtime::clock::between;
use fleetwright_store::{RecordId, Transaction};
use serde_json::json;

use super::Answer;
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, NoParameters, Query, with},
    },
    keys,
    service::Service,
};

/// How many ticks a region may be unseen.
const TICKS: u32 = 5;

/// Whether the process lives. It needs no token.
#[utoipa::path(get, path = "/healthz", tag = "service", operation_id = "readHealth", responses((status = 204)), security(()))]
pub(crate) async fn health() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Whether the service can serve: the store can be written, and every region was seen lately. It needs no token, and does not say what is
/// wrong: the log does.
#[utoipa::path(get, path = "/readyz", tag = "service", operation_id = "readReadiness", responses((status = 204)), security(()))]
pub(crate) async fn ready(State(service): State<Service>) -> Answer {
    let mut last = service.readiness.lock().await;
    // Everybody may ask, so the answer is kept for a second.
    let known = last.filter(|(at, _)| at.elapsed() < Duration::from_secs(1));
    let is_ready = match known {
        Some((_, is_ready)) => is_ready,
        None => {
            let obstacle = find_obstacle(&service).await;
            if let Some(obstacle) = &obstacle {
                tracing::warn!(obstacle, "not ready");
            }
            *last = Some((tokio::time::Instant::now(), obstacle.is_none()));
            obstacle.is_none()
        }
    };
    if is_ready {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let detail = "the service is not ready: ask an operator, whose log has the reason";
    let wait = Duration::from_secs(2);
    Err(Failure::busy(StatusCode::SERVICE_UNAVAILABLE, detail, wait))
}

async fn find_obstacle(service: &Service) -> Option<String> {
    if *service.stopping.borrow() {
        return Some("the service is stopping".to_owned());
    }
    let id = match RecordId::new(keys::KIND, "readiness") {
        Ok(id) => id,
        Err(error) => return Some(error.to_string()),
    };
    let now = service.facade.clock.now();
    let probe = Transaction::new().put(id, json!({ "at": now }));
    if let Err(error) = service.facade.store.commit(&probe).await {
        return Some(format!("the store cannot be written: {error}"));
    }
    for region in service.facade.regions.iter() {
        match service.facade.servers.region_scan(&region.id).await {
            Ok(Some(scan)) if between(scan.at, now) <= scan.tick * TICKS => {}
            Ok(Some(scan)) => {
                return Some(format!("region {} was seen last at {}", region.id, scan.at));
            }
            Ok(None) => return Some(format!("region {} was never seen", region.id)),
            Err(error) => return Some(format!("region {}: {error}", region.id)),
        }
    }
    None
}

/// Reads the version of the service.
#[utoipa::path(get, path = "/api/version", tag = "service", operation_id = "readVersion", responses((status = 200, body = api::Version)))]
pub(crate) async fn version(_: Caller, Query(NoParameters {}): Query<NoParameters>) -> Answer {
    let version = api::Version {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Ok(extract::json(StatusCode::OK, &version))
}

/// Reads the metrics in the format of Prometheus. It needs the permission to read regions on the whole platform.
#[utoipa::path(get, path = "/metrics", tag = "service", operation_id = "readMetrics", responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    caller.authorize(Verb::Read, Resource::Regions, &Scope::Global)?;
    let text = service.metrics.render();
    Ok(with(
        text.into_response(),
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4",
    ))
}
