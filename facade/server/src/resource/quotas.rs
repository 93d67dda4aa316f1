//! Quotas of organizations and projects, and what is used of them.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
};
use fleetwright_api as api;
use fleetwright_identity::{Account, LedgerError, Principal, Resource, Scope, Verb};
use fleetwright_store::Transaction;

use super::{Answer, check_organization};
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query},
    },
    service::Service,
    wire,
};

/// Reads the quota of an organization.
#[utoipa::path(get, path = "/api/v2/organizations/{organizationId}/quota", tag = "tenancy", operation_id = "readOrganizationQuota",
    params(("organizationId" = String, Path, format = "uuid")), responses((status = 200, body = api::Quota)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let account = Account::Organization(path.parse("organizationId")?);
    show(&service, &caller, &account).await
}

/// Reads the quota of a project.
#[utoipa::path(get, path = "/api/v2/organizations/{organizationId}/projects/{projectId}/quota", tag = "tenancy", operation_id = "readProjectQuota",
    params(("organizationId" = String, Path, format = "uuid"), ("projectId" = String, Path, format = "uuid")), responses((status = 200, body = api::Quota)))]
pub(crate) async fn read_project(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let account = Account::Project(path.parse("organizationId")?, path.parse("projectId")?);
    show(&service, &caller, &account).await
}

/// Sets limits of an organization.
#[utoipa::path(put, path = "/api/v2/organizations/{organizationId}/quota", tag = "tenancy", operation_id = "updateOrganizationQuota",
    params(("organizationId" = String, Path, format = "uuid")), request_body = api::QuotaUpdate, responses((status = 200, body = api::Quota)))]
pub(crate) async fn update(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
    Body(update): Body<api::QuotaUpdate>,
) -> Answer {
    let account = Account::Organization(path.parse("organizationId")?);
    set(&service, &caller, &account, &headers, &update).await
}

/// Sets limits of a project.
#[utoipa::path(put, path = "/api/v2/organizations/{organizationId}/projects/{projectId}/quota", tag = "tenancy", operation_id = "updateProjectQuota",
    params(("organizationId" = String, Path, format = "uuid"), ("projectId" = String, Path, format = "uuid")), request_body = api::QuotaUpdate, responses((status = 200, body = api::Quota)))]
pub(crate) async fn update_project(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
    Body(update): Body<api::QuotaUpdate>,
) -> Answer {
    let account = Account::Project(path.parse("organizationId")?, path.parse("projectId")?);
    set(&service, &caller, &account, &headers, &update).await
}

async fn show(service: &Service, caller: &Principal, account: &Account) -> Answer {
    check_organization(service, caller, account.organization()).await?;
    if let Account::Project(organization, project) = account {
        let tenancy = &service.facade.tenancy;
        let reads_all = caller.authorize(Verb::Read, Resource::Projects, &Scope::Global);
        if reads_all.is_ok() {
            tenancy
                .show_project(caller, *organization, *project)
                .await?;
        }
    }
    let quota = service.facade.ledger.quota(caller, account).await?;
    Ok(extract::json(StatusCode::OK, &wire::tenancy::quota(&quota)))
}

async fn set(
    service: &Service,
    caller: &Principal,
    account: &Account,
    headers: &HeaderMap,
    update: &api::QuotaUpdate,
) -> Answer {
    extract::no_if_match(headers)?;
    let limits = wire::tenancy::parse_limits(update)?;
    let ledger = &service.facade.ledger;
    let set = ledger.commit(account.organization(), || async {
        ledger
            .set_limits(Transaction::new(), caller, account, &limits)
            .await
    });
    let set: Result<_, LedgerError> = set.await;
    set.map_err(Failure::from)?;
    show(service, caller, account).await
}
