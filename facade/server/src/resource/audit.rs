//! The audit log.

use axum::{extract::State, http::StatusCode};
use chrono::{DateTime, Utc};
use fleetwright_api as api;
use fleetwright_identity::{AuditError, AuditQuery, Resource};
use fleetwright_store::StoreError;
use serde::Deserialize;
use utoipa::{
    IntoParams,
    openapi::{ObjectBuilder, Type},
};

use super::{Answer, page};
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Query},
    },
    service::Service,
    wire,
};

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditParameters {
    /// The organization. Default: the whole platform.
    #[param(format = "uuid")]
    organization_id: Option<String>,
    /// The project, with its organization.
    #[param(format = "uuid")]
    project_id: Option<String>,
    /// Only what this actor did: `user:` and a name.
    #[param(pattern = r"^(?:user|service):[^\u0000-\u001f\u007f-\u009f]{1,256}$")]
    actor: Option<String>,
    /// Only what was done to records of this resource: `instances` and others.
    #[param(schema_with = resources)]
    resource: Option<String>,
    /// Only what was done to this record.
    record: Option<String>,
    /// Only from this date on.
    from: Option<DateTime<Utc>>,
    /// Only before this date.
    until: Option<DateTime<Utc>>,
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

/// The names of the resources.
fn resources() -> ObjectBuilder {
    let names = Resource::ALL.map(Resource::as_str);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
}

/// Lists entries of the audit log, oldest first.
#[utoipa::path(get, path = "/api/v2/auditlog", tag = "tenancy", operation_id = "listAuditLog",
    params(AuditParameters), responses((status = 200, body = api::AuditPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<AuditParameters>,
) -> Answer {
    let (organization, project) = (&parameters.organization_id, &parameters.project_id);
    let scope = wire::tenancy::parse_scope(organization.as_deref(), project.as_deref(), "")?;
    let mut query = AuditQuery::within(scope);
    let actor = parameters
        .actor
        .as_deref()
        .map(|actor| wire::parse_actor("actor", actor));
    query.actor = actor.transpose()?;
    let resource = parameters.resource.map(|name| {
        let parsed: Result<Resource, _> = serde_json::from_value(serde_json::Value::String(name));
        parsed.map_err(|error| Failure::invalid("resource", error))
    });
    query.resource = resource.transpose()?;
    query.record = parameters.record;
    query.from = parameters.from;
    query.until = parameters.until;
    query.page = page::request(parameters.limit, parameters.after)?;
    let page = service.facade.audit.list(&caller, &query).await;
    let has_position = query.page.after.is_some();
    let page = page.map_err(|error| {
        if has_position && matches!(error, AuditError::Store(StoreError::Invalid(_))) {
            return page::not_a_position();
        }
        error.into()
    })?;
    let newer = page.newer.iter().map(|shown| &shown.value);
    let items = page.items.iter().chain(newer).map(wire::tenancy::entry);
    let page = api::AuditPage {
        items: items.collect(),
        next: page.next,
    };
    Ok(extract::json(StatusCode::OK, &page))
}
