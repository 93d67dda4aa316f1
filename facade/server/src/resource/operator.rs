//! What operators of the installation see and decide: what is behind an instance, and how the regions are.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use fleetwright::{AccountId, LaunchToken};
use fleetwright_api as api;
use fleetwright_compute::instance::InstanceId;
use fleetwright_identity::{Principal, Resource, Scope, Verb};
use fleetwright_region::{ids::RegionId, server::ServerError};

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

/// Reads an instance with its server and its allocation.
#[utoipa::path(get, path = "/api/v2/operator/instances/{instanceId}", tag = "operator", operation_id = "inspectInstance",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 200, body = api::Inspection)))]
pub(crate) async fn inspect(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let inspection = service.facade.instances.inspect(&caller, id).await?;
    let view = service.facade.instances.read(&caller, id).await?;
    Ok(extract::json(
        StatusCode::OK,
        &wire::operator::inspection(inspection, view),
    ))
}

/// Lists the regions with their last scan, orphans, and why one is frozen.
///
/// A region whose credentials belong to another account is released by correcting them, or by accepting the account. A region that is
/// frozen because too many machines are missing is released when they are seen again, or when their servers are replaced.
#[utoipa::path(get, path = "/api/v2/operator/regions", tag = "operator", operation_id = "listRegionReports",
    responses((status = 200, body = api::RegionReportList)))]
pub(crate) async fn regions(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    caller.authorize(Verb::Read, Resource::Regions, &Scope::Global)?;
    let mut items = Vec::new();
    for region in service.facade.regions.iter() {
        items.push(report(&service, &region.id).await?);
    }
    Ok(extract::json(
        StatusCode::OK,
        &api::RegionReportList { items },
    ))
}

/// Accepts another account for a region. The machines of the recorded account are left as they are.
#[utoipa::path(post, path = "/api/v2/operator/regions/{regionId}/account", tag = "operator", operation_id = "acceptRegionAccount",
    params(("regionId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), request_body = api::AccountAccept, responses((status = 200, body = api::RegionReport)))]
pub(crate) async fn accept_account(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
    Body(accept): Body<api::AccountAccept>,
) -> Answer {
    extract::no_if_match(&headers)?;
    let region = known(&service, &caller, &path)?;
    let expected: AccountId = wire::parse("expected", &accept.expected)?;
    let account: AccountId = wire::parse("account", &accept.account)?;
    service
        .facade
        .accounts
        .accept(&caller, &region, &expected, account)
        .await?;
    let report = report(&service, &region).await?;
    Ok(extract::json(StatusCode::OK, &report))
}

/// Removes a leaked launch from the list, after its machine was terminated at the cloud.
#[utoipa::path(post, path = "/api/v2/operator/regions/{regionId}/leaks", tag = "operator", operation_id = "resolveLeakedLaunch",
    params(("regionId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), request_body = api::LeakResolve, responses((status = 204)))]
pub(crate) async fn resolve_leak(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
    Body(resolve): Body<api::LeakResolve>,
) -> Answer {
    extract::no_if_match(&headers)?;
    let region = known(&service, &caller, &path)?;
    let token =
        LaunchToken::new(&resolve.token).map_err(|error| Failure::invalid("token", error))?;
    service
        .facade
        .accounts
        .resolve_leak(&caller, &region, &token)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The region of a path, for a caller who may change it.
fn known(service: &Service, caller: &Principal, path: &Path) -> Result<RegionId, Failure> {
    caller.authorize(Verb::Update, Resource::Regions, &Scope::Global)?;
    let id: RegionId = path.parse("regionId")?;
    if service.facade.regions.iter().any(|region| region.id == id) {
        return Ok(id);
    }
    let detail = format!("there is no region {id}");
    Err(Failure::new(StatusCode::NOT_FOUND, "not_found", detail))
}

async fn report(service: &Service, region: &RegionId) -> Result<api::RegionReport, Failure> {
    let account = service.facade.accounts.read(region).await?;
    let scan = service.facade.servers.region_scan(region).await;
    let scan =
        scan.map_err(|error: ServerError| Failure::internal(crate::meaning::chain(&error)))?;
    Ok(wire::operator::report(
        region,
        account.as_ref(),
        scan.as_ref(),
    ))
}
