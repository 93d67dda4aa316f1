//! Instances: create, list, read, update, delete, events.

use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_compute::{
    instance::InstanceId,
    prelude::{Consent, Phase, Provisioning, Tags},
    service::{InstanceView, ListInstances},
};
use fleetwright_identity::Principal;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use super::Answer;
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// The longest long poll, in seconds. It is shorter than a request may take.
const MAX_WAIT: u64 = 25;
/// The delay between two reads of a long poll.
const READ_EVERY: Duration = Duration::from_millis(250);

/// The filters of a list. An instance is listed if it matches every filter.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParameters {
    /// Instances with this tag, as `name=value`. Repeated: with all of them.
    #[serde(default)]
    #[param(style = Form, explode, pattern = r"^[^=\u0000-\u001f\u007f-\u009f]+=[^\u0000-\u001f\u007f-\u009f]*$")]
    tag: Vec<String>,
    /// Instances of these organizations.
    #[serde(default)]
    #[param(format = "uuid")]
    organization_id: Vec<String>,
    /// Instances of these projects.
    #[serde(default)]
    #[param(format = "uuid")]
    project_id: Vec<String>,
    /// Instances in these regions.
    #[serde(default)]
    #[param(max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")]
    region_id: Vec<String>,
    /// Instances in these networks.
    #[serde(default)]
    #[param(format = "uuid")]
    network_id: Vec<String>,
    /// Instances in these power states.
    #[serde(default)]
    power_state: Vec<api::PowerState>,
    /// Instances with this progress.
    #[serde(default)]
    provisioning_status: Vec<api::ProvisioningStatus>,
    /// The size of the page.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The `next` of the last page.
    #[param(format = "uuid")]
    after: Option<String>,
}

impl ListParameters {
    fn parse(self) -> Result<ListInstances, Failure> {
        let mut wanted = ListInstances::default();
        let mut tags = Tags::new();
        for tag in &self.tag {
            let parts = tag.split_once('=');
            let (name, value) =
                parts.ok_or_else(|| Failure::invalid("tag", "expected name=value"))?;
            let before = tags
                .insert(name, value)
                .map_err(|error| Failure::invalid("tag", error))?;
            if before.is_some_and(|before| before != value) {
                return Err(Failure::impossible(
                    "tag",
                    format!("{name} has two values: an instance has one"),
                ));
            }
        }
        wanted.tags = tags;
        wanted.organizations = ids("organizationId", &self.organization_id)?;
        wanted.projects = ids("projectId", &self.project_id)?;
        wanted.regions = ids("regionId", &self.region_id)?;
        wanted.networks = ids("networkId", &self.network_id)?;
        wanted.phases = self
            .power_state
            .into_iter()
            .map(wire::instance::parse_phase)
            .collect();
        let progress = self.provisioning_status.into_iter();
        wanted.provisioning = progress.map(wire::instance::parse_provisioning).collect();
        wanted.limit = extract::limit(self.limit)?;
        let after = self
            .after
            .as_deref()
            .map(|after| wire::parse("after", after));
        wanted.after = after.transpose()?;
        Ok(wanted)
    }
}

fn ids<T: std::str::FromStr<Err: std::fmt::Display> + Ord>(
    name: &str,
    texts: &[String],
) -> Result<std::collections::BTreeSet<T>, Failure> {
    texts.iter().map(|text| wire::parse(name, text)).collect()
}

/// Lists instances.
///
/// A list returns what the caller may list, in the order of the ids, without user data and events.
#[utoipa::path(get, path = "/api/v2/instances", tag = "instances", operation_id = "listInstances",
    params(ListParameters), responses((status = 200, body = api::InstancePage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<ListParameters>,
) -> Answer {
    let wanted = parameters.parse()?;
    // Read before the list, so that a watch from there misses nothing.
    let head = service.facade.store.head().await?;
    let page = service.facade.instances.list(&caller, &wanted).await?;
    let watch_from = service.keys.seal(head);
    let page = api::InstancePage {
        items: page
            .instances
            .into_iter()
            .map(wire::instance::row)
            .collect(),
        next: page.next.map(|id| id.to_string()),
        watch_from: watch_from.ok_or_else(|| Failure::internal("no position can be sealed"))?,
    };
    Ok(extract::json(StatusCode::OK, &page))
}

/// Creates an instance.
///
/// The response has no user data. The id is derived from the network and the name: a repeated request finds the same instance, as
/// `existingId` of the problem.
#[utoipa::path(post, path = "/api/v2/instances", tag = "instances", operation_id = "createInstance",
    request_body = api::InstanceCreate, responses((status = 201, body = api::Instance)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::InstanceCreate>,
) -> Answer {
    let wanted = wire::instance::parse_new(&new)?;
    let view = service.facade.instances.create(&caller, &wanted).await?;
    let etag = etag(&service, &view);
    let location = format!("/api/v2/instances/{}", view.instance.id);
    let body = wire::instance::without_user_data(view);
    let response = extract::json(StatusCode::CREATED, &body);
    Ok(with(
        with(response, header::ETAG, &etag),
        header::LOCATION,
        &location,
    ))
}

/// What a read waits for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Goal {
    /// The machine runs.
    Running,
    /// The machine is stopped.
    Stopped,
    /// The desired state is applied.
    Provisioned,
    /// The record is gone: the response is then 404.
    Deleted,
}

/// Whether a read waits.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadParameters {
    /// Responds when the instance has reached this, needs a decision, or the time is over: look at the response.
    #[param(inline)]
    wait_for: Option<Goal>,
    /// How many seconds to wait at most. Default: 25.
    #[param(minimum = 0, maximum = 25)]
    timeout: Option<u64>,
}

/// Reads an instance.
///
/// With `waitFor` it is a long poll.
#[utoipa::path(get, path = "/api/v2/instances/{instanceId}", tag = "instances", operation_id = "readInstance",
    params(("instanceId" = String, Path, format = "uuid"), ReadParameters), responses((status = 200, body = api::Instance)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<ReadParameters>,
) -> Answer {
    let id = path.parse("instanceId")?;
    let view = match parameters.wait_for {
        None => service.facade.instances.read(&caller, id).await?,
        Some(goal) => {
            let timeout = extract::seconds("timeout", parameters.timeout, MAX_WAIT)?;
            wait(&service, &caller, id, goal, timeout).await?
        }
    };
    let etag = etag(&service, &view);
    let body = wire::instance::with_user_data(view);
    Ok(with(
        extract::json(StatusCode::OK, &body),
        header::ETAG,
        &etag,
    ))
}

async fn wait(
    service: &Service,
    caller: &Principal,
    id: InstanceId,
    goal: Goal,
    timeout: Duration,
) -> Result<InstanceView, Failure> {
    let deadline = Instant::now() + timeout;
    let mut stopping = service.stopping.clone();
    loop {
        let view = service.facade.instances.read(caller, id).await?;
        if is_reached(&view, goal) || Instant::now() >= deadline {
            return Ok(view);
        }
        tokio::select! {
            () = tokio::time::sleep_until(deadline.min(Instant::now() + READ_EVERY)) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(view),
        }
    }
}

/// Whether the goal is reached, or waiting is useless.
fn is_reached(view: &InstanceView, goal: Goal) -> bool {
    let phase = view.instance.status.phase;
    let is_applied = view.provisioning == Provisioning::Provisioned;
    let is_stuck = view.provisioning == Provisioning::Error;
    match goal {
        Goal::Running => is_stuck || phase == Phase::Running && is_applied,
        Goal::Stopped => is_stuck || phase == Phase::Stopped && is_applied,
        Goal::Provisioned => is_stuck || is_applied,
        Goal::Deleted => false,
    }
}

/// How an update is made.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UpdateParameters {
    /// Returns the plan, and changes nothing.
    #[serde(default)]
    dry_run: bool,
    /// Consents to the loss that the plan names.
    #[serde(default)]
    allow_replace: bool,
}

/// Updates an instance.
///
/// It replaces description, tags and spec. A change that loses data or addresses needs `allowReplace=true`; without it the problem has the
/// plan. The response to `dryRun=true` is the plan.
#[utoipa::path(put, path = "/api/v2/instances/{instanceId}", tag = "instances", operation_id = "updateInstance",
    params(("instanceId" = String, Path, format = "uuid"), UpdateParameters, ("If-Match" = Option<String>, Header, description = "The ETag of the read that the update is based on")),
    request_body = api::InstanceUpdate,
    responses((status = 202, body = api::Instance), (status = 200, body = api::Plan, description = "With dryRun")))]
pub(crate) async fn update(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(parameters): Query<UpdateParameters>,
    headers: HeaderMap,
    Body(update): Body<api::InstanceUpdate>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let mut wanted = wire::instance::parse_update(&update)?;
    let instances = &service.facade.instances;
    if headers.contains_key(header::IF_MATCH) {
        let view = instances.read(&caller, id).await?;
        extract::check_if_match(&headers, &etag(&service, &view))?;
        wanted.if_revision = Some(view.revision);
    }
    if parameters.dry_run {
        let plan = instances.plan_update(&caller, id, &wanted).await?;
        return Ok(extract::json(
            StatusCode::OK,
            &wire::instance::plan(&plan, None),
        ));
    }
    if parameters.allow_replace {
        wanted.consent = Consent::Destroy;
    }
    let (view, _) = instances.update(&caller, id, &wanted).await?;
    let etag = etag(&service, &view);
    let response = extract::json(
        StatusCode::ACCEPTED,
        &wire::instance::without_user_data(view),
    );
    Ok(with(response, header::ETAG, &etag))
}

/// Deletes an instance.
///
/// Its record disappears when its machine is gone. Deleting it again is no error.
#[utoipa::path(delete, path = "/api/v2/instances/{instanceId}", tag = "instances", operation_id = "deleteInstance",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 202)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    extract::no_if_match(&headers)?;
    service.facade.instances.delete(&caller, id).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Lists the events of an instance.
#[utoipa::path(get, path = "/api/v2/instances/{instanceId}/events", tag = "instances", operation_id = "listInstanceEvents",
    params(("instanceId" = String, Path, format = "uuid")), responses((status = 200, body = api::EventList)))]
pub(crate) async fn events(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: InstanceId = path.parse("instanceId")?;
    let events = service.facade.instances.events(&caller, id).await?;
    let items = events.iter().map(wire::instance::event).collect();
    Ok(extract::json(StatusCode::OK, &api::EventList { items }))
}

fn etag(service: &Service, view: &InstanceView) -> String {
    let record = format!("instance/{}", view.instance.id);
    service.keys.etag(&record, view.revision)
}
