//! The catalog: resource groups, locations, sizes, quotas, networks. All of it comes from the
//! knobs.

use serde_json::Value;

use super::{
    Context,
    list::{ListScope, unknown_filter},
};
use crate::azure::{
    catalog::{ResourceGroup, normalize_location, same},
    error::Refusal,
    shapes::catalog as shapes,
    wire::response::ApiResponse,
};

/// The type of virtual networks, for the message of a 404.
const NETWORKS: &str = "Microsoft.Network/virtualNetworks";
/// The type of network security groups, for the message of a 404.
const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";

/// Lists the resource groups.
pub(super) fn groups(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let groups = context.engine.core.knobs.resource_groups.iter();
    let items = groups.map(|it| shapes::group(context.request.subscription(), it));
    let items = items.collect();
    context.paginate(items)
}

/// Returns a resource group.
pub(super) fn group(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    let group = known_group(context)?;
    let document = shapes::group(context.request.subscription(), group);
    Ok(ApiResponse::document(&document))
}

/// Returns 204 if the resource group exists, otherwise 404 `ResourceGroupNotFound`.
pub(super) fn group_exists(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    known_group(context).map(|_| ApiResponse::bare(204))
}

/// Finds the resource group that the path names.
fn known_group<'a>(context: &'a Context<'_>) -> Result<&'a ResourceGroup, Refusal> {
    let name = context.request.name(1);
    let mut groups = context.engine.core.knobs.resource_groups.iter();
    let known = groups.find(|group| same(&group.name, name));
    known.ok_or_else(|| Refusal::group_not_found(name))
}

/// Lists the locations.
pub(super) fn locations(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let places = context.engine.core.knobs.locations.iter();
    let items = places.map(|it| shapes::location(context.request.subscription(), it));
    let items = items.collect();
    context.paginate(items)
}

/// Returns a resource provider. Unknown ones are 404 `InvalidResourceNamespace`.
pub(super) fn provider(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    let (subscription, name) = (context.request.subscription(), context.request.name(1));
    let document = shapes::provider(subscription, name, &context.engine.core.knobs);
    let document = document.ok_or_else(|| {
        let message = format!("The resource namespace '{name}' is invalid.");
        Refusal::new(404, "InvalidResourceNamespace", message)
    })?;
    Ok(ApiResponse::document(&document))
}

/// Lists the sizes of a location, without restricted ones.
pub(super) fn sizes(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.engine.location(Some(context.request.name(1)))?;
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

/// Returns a virtual network.
pub(super) fn network(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    known_network(context).map(|document| ApiResponse::document(&document))
}

/// Returns the document of the virtual network that the path names, or 404 `ResourceNotFound`.
fn known_network(context: &Context<'_>) -> Result<Value, Refusal> {
    let (group, name) = (context.request.name(1), context.request.name(2));
    context.engine.check_group(group)?;
    let known = context.engine.network(group, name);
    let known = known.ok_or_else(|| Refusal::manager_not_found(NETWORKS, name, group))?;
    Ok(shapes::network(context.request.subscription(), known))
}

/// Lists the virtual networks of a resource group or of a subscription.
pub(super) fn networks(
    context: &mut Context<'_>,
    list_scope: ListScope,
) -> Result<ApiResponse, Refusal> {
    context.scope(list_scope)?;
    let group = context.request.name(1);
    let known = context.engine.core.knobs.virtual_networks.iter();
    let known =
        known.filter(|it| list_scope == ListScope::Subscription || same(&it.resource_group, group));
    let items = known.map(|it| shapes::network(context.request.subscription(), it));
    let items = items.collect();
    context.paginate(items)
}

/// Lists the subnets of a virtual network.
pub(super) fn subnets(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let items = subnets_of(known_network(context)?);
    context.paginate(items)
}

/// Returns a subnet, or 404 `NotFound`.
pub(super) fn subnet(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    let subnets = subnets_of(known_network(context)?);
    let name = context.request.name(3);
    let matches = |subnet: &&Value| subnet["name"].as_str().is_some_and(|it| same(it, name));
    let found = subnets.iter().find(matches).ok_or_else(|| {
        let message = format!("Resource {} not found.", context.request.path);
        Refusal::new(404, "NotFound", message)
    })?;
    Ok(ApiResponse::document(found))
}

/// Takes the subnets out of the document of a virtual network.
fn subnets_of(mut network: Value) -> Vec<Value> {
    match network.pointer_mut("/properties/subnets").map(Value::take) {
        Some(Value::Array(subnets)) => subnets,
        Some(_) | None => Vec::new(),
    }
}

/// Lists the network security groups of a resource group.
pub(super) fn security_groups(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.scope(ListScope::Group)?;
    let known = context.engine.core.knobs.network_security_groups.iter();
    let known = known.filter(|it| same(&it.resource_group, context.request.name(1)));
    let items = known.map(|it| shapes::security_group(context.request.subscription(), it));
    let items = items.collect();
    context.paginate(items)
}

/// Returns a network security group, or 404 `ResourceNotFound`.
pub(super) fn security_group(context: &Context<'_>) -> Result<ApiResponse, Refusal> {
    let (group, name) = (context.request.name(1), context.request.name(2));
    context.engine.check_group(group)?;
    let mut known = context.engine.core.knobs.network_security_groups.iter();
    let found = known.find(|it| same(&it.resource_group, group) && same(&it.name, name));
    let found = found.ok_or_else(|| Refusal::manager_not_found(SECURITY_GROUPS, name, group))?;
    let document = shapes::security_group(context.request.subscription(), found);
    Ok(ApiResponse::document(&document))
}
