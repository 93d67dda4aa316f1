//! Subscriptions, tenants, providers, the cloud's endpoints, and images of the marketplace.

use serde_json::Value;

use super::Context;
use crate::azure::{
    catalog::{MarketplaceImage, same},
    error::Refusal,
    shapes::directory as shapes,
    wire::response::ApiResponse,
};

/// Lists the subscriptions: those of the knobs, or one that stands for any.
pub(super) fn subscriptions(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let known = &context.engine.core.knobs.subscriptions;
    let items = if known.is_empty() {
        vec![shapes::subscription(shapes::SUBSCRIPTION)]
    } else {
        known.iter().map(|id| shapes::subscription(id)).collect()
    };
    context.paginate(items)
}

/// Returns a subscription.
pub(super) fn subscription(context: &Context<'_>) -> ApiResponse {
    ApiResponse::document(&shapes::subscription(context.request.subscription()))
}

/// Lists the only tenant.
pub(super) fn tenants(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.paginate(vec![shapes::tenant()])
}

/// Returns the endpoints of the cloud.
pub(super) fn endpoints(context: &Context<'_>) -> ApiResponse {
    let version = context.request.version();
    ApiResponse::document(&shapes::endpoints(&context.request.origin, version))
}

/// Lists the resource providers.
pub(super) fn providers(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let knobs = &context.engine.core.knobs;
    let items = shapes::providers(context.request.subscription(), knobs);
    context.paginate(items)
}

/// Returns a resource provider, also after its registration, which changes nothing. Unknown ones
/// are 404 `InvalidResourceNamespace`.
pub(super) fn provider(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    let (subscription, name) = (context.request.subscription(), context.request.name(1));
    let document = shapes::provider(subscription, name, &context.engine.core.knobs);
    let document = document.ok_or_else(|| {
        let message = format!("The resource namespace '{name}' is invalid.");
        Refusal::new(404, "InvalidResourceNamespace", message)
    })?;
    Ok(ApiResponse::document(&document))
}

/// The names in the path of a list of images, from the publisher on.
fn wanted<'a>(context: &'a Context<'_>) -> Vec<&'a str> {
    context
        .request
        .names
        .iter()
        .skip(2)
        .map(String::as_str)
        .collect()
}

/// Returns the names of an image: publisher, offer, SKU and version.
fn names(image: &MarketplaceImage) -> [&str; 4] {
    [&image.publisher, &image.offer, &image.sku, &image.version]
}

/// Lists the publishers, the offers of a publisher, the SKUs of an offer or the versions of a SKU:
/// what comes behind the names in the path. Versions have the parameters `$filter`, `$top` and
/// `$orderby`.
///
/// # Errors
///
/// 400 for an unknown location, 404 `NotFound` if no image has these names.
pub(super) fn images(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let location = context.engine.location(Some(context.request.name(1)))?;
    let wanted = wanted(context);
    let knobs = &context.engine.core.knobs;
    let matching = |image: &&MarketplaceImage| {
        wanted
            .iter()
            .zip(names(image))
            .all(|(one, other)| same(one, other))
    };
    let mut found: Vec<&str> = Vec::new();
    for image in knobs.images.iter().filter(matching) {
        found.extend(names(image).get(wanted.len()).copied());
    }
    if found.is_empty() && !wanted.is_empty() {
        return Err(not_found(&wanted));
    }
    found.sort_unstable();
    found.dedup();
    if wanted.len() == 3 {
        select(context, &mut found)?;
    }
    let subscription = context.request.subscription();
    let entries = found.into_iter().map(|name| {
        let mut path: Vec<&str> = wanted.clone();
        path.push(name);
        shapes::image_entry(subscription, &location, &image_path(&path))
    });
    // Unlike other lists this one is an array, without pages.
    let entries: Vec<Value> = entries.collect();
    context.engine.core.records_read += entries.len() as u64;
    Ok(ApiResponse::document(&Value::Array(entries)))
}

/// Applies the parameters of a list of versions.
fn select(context: &Context<'_>, found: &mut Vec<&str>) -> Result<(), Refusal> {
    if let Some(filter) = context.request.param("$filter") {
        let start = filter.trim().strip_prefix("startswith(name,");
        let start = start.and_then(|rest| rest.trim().strip_prefix('\'')?.strip_suffix("')"));
        let start = start.ok_or_else(|| super::list::unknown_filter(filter))?;
        found.retain(|name| name.starts_with(start));
    }
    if context
        .request
        .param("$orderby")
        .is_some_and(|order| order.trim().eq_ignore_ascii_case("name desc"))
    {
        found.reverse();
    }
    if let Some(top) = context.request.param("$top") {
        let Ok(top) = top.parse() else {
            let message = format!("The value '{top}' of parameter '$top' is not valid.");
            return Err(Refusal::invalid("$top", message));
        };
        found.truncate(top);
    }
    Ok(())
}

/// Returns a version of an image, or 404 `NotFound`.
pub(super) fn image(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let location = context.engine.location(Some(context.request.name(1)))?;
    let wanted = wanted(context);
    let mut known = context.engine.core.knobs.images.iter();
    let found = known.find(|image| {
        wanted
            .iter()
            .zip(names(image))
            .all(|(one, other)| same(one, other))
    });
    let image = found.ok_or_else(|| not_found(&wanted))?;
    let path = image_path(&names(image));
    let entry = shapes::image_entry(context.request.subscription(), &location, &path);
    Ok(ApiResponse::document(&shapes::image_version(entry, image)))
}

/// Returns the path of an entry behind the location, from its names.
fn image_path(names: &[&str]) -> String {
    let labels = ["", "/ArtifactTypes/VMImage/Offers/", "/Skus/", "/Versions/"];
    labels
        .iter()
        .zip(names)
        .map(|(label, name)| format!("{label}{name}"))
        .collect()
}

/// Returns 404 `NotFound` for names that no image has.
fn not_found(names: &[&str]) -> Refusal {
    let message = format!("Artifact: VMImage was not found: {}.", names.join(":"));
    Refusal::new(404, "NotFound", message)
}
