//! Images that tenants created as snapshots.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
};
use fleetwright_api as api;
use fleetwright_region::ids::ImageId;

use super::Answer;
use crate::{
    failure::Failure,
    http::{
        caller::Caller,
        extract::{self, NoParameters, Path, Query},
    },
    service::Service,
    wire,
};

/// Reads an image.
#[utoipa::path(get, path = "/api/v2/images/{imageId}", tag = "catalog", operation_id = "readImage",
    params(("imageId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), responses((status = 200, body = api::Image)))]
pub(crate) async fn read(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
) -> Answer {
    let id: ImageId = path.parse("imageId")?;
    let found = service.facade.catalog.show_image(&caller, &id).await?;
    let found = found.ok_or_else(|| {
        let detail = format!("there is no image {id}");
        Failure::new(StatusCode::NOT_FOUND, "not_found", detail)
    })?;
    Ok(extract::json(
        StatusCode::OK,
        &wire::catalog::image(&found.value),
    ))
}

/// Shares an image of a project with its organization.
#[utoipa::path(post, path = "/api/v2/images/{imageId}/share", tag = "catalog", operation_id = "shareImage",
    params(("imageId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), responses((status = 200, body = api::Image)))]
pub(crate) async fn share(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: ImageId = path.parse("imageId")?;
    extract::no_if_match(&headers)?;
    let image = service.facade.catalog.share_image(&caller, &id).await?;
    Ok(extract::json(StatusCode::OK, &wire::catalog::image(&image)))
}

/// Deletes an image that was created as a snapshot. Instances that were booted from it are not affected.
#[utoipa::path(delete, path = "/api/v2/images/{imageId}", tag = "catalog", operation_id = "deleteImage",
    params(("imageId" = String, Path, max_length = 63, pattern = r"^[0-9a-z](?:[0-9a-z._-]{0,61}[0-9a-z])?$")), responses((status = 202, body = api::Image)))]
pub(crate) async fn delete(
    State(service): State<Service>,
    Caller(caller): Caller,
    path: Path,
    Query(NoParameters {}): Query<NoParameters>,
    headers: HeaderMap,
) -> Answer {
    let id: ImageId = path.parse("imageId")?;
    extract::no_if_match(&headers)?;
    let image = service.facade.catalog.delete_image(&caller, &id).await?;
    Ok(extract::json(
        StatusCode::ACCEPTED,
        &wire::catalog::image(&image),
    ))
}
