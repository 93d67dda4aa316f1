//! The catalog: locations, sizes, quotas. All of it comes from the knobs.

use super::{Context, list::unknown_filter};
use crate::azure::{
    catalog::normalize_location, error::Refusal, shapes::catalog as shapes,
    wire::response::ApiResponse,
};

/// Lists the locations.
pub(super) fn locations(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let places = context.engine.core.knobs.locations.iter();
    let items = places.map(|it| shapes::location(context.request.subscription(), it));
    let items = items.collect();
    context.paginate(items)
}

/// Lists the sizes of a location, without restricted ones.
pub(super) fn sizes(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.engine.location(Some(context.request.name(1)))?;
    available_sizes(context)
}

/// Lists the sizes without restricted ones.
pub(super) fn available_sizes(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let sizes = context.engine.core.knobs.sizes.iter();
    let items = sizes.filter(|size| !size.restricted).map(shapes::size);
    let items = items.collect();
    context.paginate(items)
}

/// Lists the quotas of a location with their usage.
pub(super) fn usages(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let location = context.engine.location(Some(context.request.name(1)))?;
    let items = shapes::usages(context.engine, &location);
    context.paginate(items)
}

/// Lists the sizes with the locations that offer them. The only filter is `location eq '…'`; others
/// are refused with 400 `InvalidFilterInQueryString`.
pub(super) fn skus(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let requested = match context.request.param("$filter") {
        None => None,
        Some(filter) => {
            let place = filter.trim().strip_prefix("location eq '");
            let place = place.and_then(|rest| rest.strip_suffix('\''));
            let place = place.ok_or_else(|| unknown_filter(filter))?;
            Some(normalize_location(place))
        }
    };
    let knobs = &context.engine.core.knobs;
    let mut items = Vec::new();
    for location in &knobs.locations {
        if requested.as_ref().is_none_or(|it| *it == location.name) {
            items.extend(knobs.sizes.iter().map(|size| shapes::sku(size, location)));
        }
    }
    context.paginate(items)
}
