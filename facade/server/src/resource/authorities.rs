//! SSH certificate authorities.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use fleetwright_api as api;
use fleetwright_region::ids::SshAuthorityId;

use super::{Answer, page::RecordParameters};
use crate::{
    http::{
        caller::Caller,
        extract::{self, Body, NoParameters, Path, Query, with},
    },
    service::Service,
    wire,
};

/// Lists certificate authorities.
#[utoipa::path(get, path = "/api/v2/sshcertificateauthorities", tag = "networks", operation_id = "listSshAuthorities",
    params(RecordParameters), responses((status = 200, body = api::SshAuthorityPage)))]
pub(crate) async fn list(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(parameters): Query<RecordParameters>,
) -> Answer {
    let list = service
        .facade
        .ssh_authorities
        .list(&caller, &parameters.filter()?)
        .await?;
    let (items, next) = parameters.page(&list, wire::network::authority)?;
    Ok(extract::json(
        StatusCode::OK,
        &api::SshAuthorityPage { items, next },
    ))
}

/// Creates a certificate authority.
#[utoipa::path(post, path = "/api/v2/sshcertificateauthorities", tag = "networks", operation_id = "createSshAuthority",
    request_body = api::SshAuthorityCreate, responses((status = 201, body = api::SshAuthority)))]
pub(crate) async fn create(
    State(service): State<Service>,
    Caller(caller): Caller,
    Query(NoParameters {}): Query<NoParameters>,
    Body(new): Body<api::SshAuthorityCreate>,
) -> Answer {
    let new = wire::network::parse_authority(&new)?;
    let created = service.facade.ssh_authorities.create(&caller, &new).await?;
    let location = format!("/api/v2/sshcertificateauthorities/{}", created.value.id);
    let etag = service
        .keys
        .etag(&format!("authorities/{}", created.key), created.revision);
    let response = extract::json(
        StatusCode::CREATED,
        &wire::network::authority(&created.value),
    );
    Ok(with(
        with(response, header::ETAG, &etag),
        header::LOCATION,
        &location,
    ))
}

/// Reads a certificate authority.
#[utoipa::path(get, path = "/api/v2/sshcertificateauthorities/{sshCertificateAuthorityId}", tag = "networks", operation_id = "readSshAuthority",
    params(("sshCertificateAuthorityId" = String, Path, format = "uuid")), responses((status = 200, body = api::SshAuthority)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: SshAuthorityId = path.parse("sshCertificateAuthorityId")?;
    let found = service.facade.ssh_authorities.show(&caller, id).await?;
    let etag = service
        .keys
        .etag(&format!("authorities/{}", found.key), found.revision);
    let response = extract::json(StatusCode::OK, &wire::network::authority(&found.value));
    Ok(with(response, header::ETAG, &etag))
}

/// Deletes a certificate authority that no instance uses.
#[utoipa::path(delete, path = "/api/v2/sshcertificateauthorities/{sshCertificateAuthorityId}", tag = "networks", operation_id = "deleteSshAuthority",
    params(("sshCertificateAuthorityId" = String, Path, format = "uuid")), responses((status = 204)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: SshAuthorityId = path.parse("sshCertificateAuthorityId")?;
    extract::no_if_match(&headers)?;
    service.facade.ssh_authorities.delete(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
