//! The catalog: zones, regions, machine types, disk types, networks, addresses.
//!
//! Everything here comes from the knobs and never changes by a call. Gets of unknown names are
//! refused with 404 `notFound`.

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, ListKind, Listing},
};
use crate::{
    cloud::inject::CallContext,
    gcp::{
        catalog::{DISK_TYPES, MachineType, Subnetwork},
        engine::Engine,
        error::Refusal,
        views,
        wire::route::Scope,
    },
};

/// The lists of machine types.
const MACHINE_TYPES: ListKind = ListKind {
    kind: "machineType",
    collection: "machineTypes",
    fields: &[
        "architecture",
        "guestCpus",
        "id",
        "isSharedCpu",
        "memoryMb",
        "name",
        "selfLink",
        "zone",
    ],
};

/// The lists of disk types.
const DISK_TYPES_LIST: ListKind = ListKind {
    kind: "diskType",
    collection: "diskTypes",
    fields: &["id", "name", "selfLink", "zone"],
};

/// The list of zones.
const ZONES: ListKind = ListKind {
    kind: "zone",
    collection: "zones",
    fields: &["id", "name", "region", "selfLink", "status"],
};

/// The list of regions.
const REGIONS: ListKind = ListKind {
    kind: "region",
    collection: "regions",
    fields: &["id", "name", "selfLink", "status"],
};

/// The list of networks.
const NETWORKS: ListKind = ListKind {
    kind: "network",
    collection: "networks",
    fields: &["autoCreateSubnetworks", "id", "name", "selfLink"],
};

/// The lists of subnetworks.
const SUBNETWORKS: ListKind = ListKind {
    kind: "subnetwork",
    collection: "subnetworks",
    fields: &["id", "ipCidrRange", "name", "network", "region", "selfLink"],
};

/// The lists of static addresses, which are always empty.
const ADDRESSES: ListKind = ListKind {
    kind: "address",
    collection: "addresses",
    fields: &["address", "id", "name", "region", "status"],
};

/// Returns the name of the zone or region of a call; empty for a global one.
fn scope_name(call: &Call) -> &str {
    match &call.target.scope {
        Scope::Zone(name) | Scope::Region(name) => name,
        Scope::Global => "",
    }
}

/// `zones.get`. The caller has checked that the zone exists. An unreachable zone is `DOWN`.
pub(super) fn zone(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    Ok(views::zone(engine, &call.target.project, scope_name(call)))
}

/// `zones.list`
pub(super) fn zones(call: &Call, engine: &Engine, context: &CallContext) -> Result<Value, Refusal> {
    let zones = engine.core.knobs.zones.iter();
    let items = zones.map(|zone| views::zone(engine, &call.target.project, zone));
    list_of_project(call, engine, context, &ZONES, items)
}

/// `regions.get`, with the quotas and their usage. The caller has checked that the region exists.
pub(super) fn region(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    Ok(views::region(
        engine,
        &call.target.project,
        scope_name(call),
    ))
}

/// `regions.list`
pub(super) fn regions(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let regions = engine.regions();
    let regions = regions.iter();
    let items = regions.map(|region| views::region(engine, &call.target.project, region));
    list_of_project(call, engine, context, &REGIONS, items)
}

/// `networks.get`. A network exists if it has a subnetwork.
pub(super) fn network(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let (project, name) = (&call.target.project, &call.target.name);
    if engine.networks().iter().any(|known| known == name) {
        return Ok(views::network(engine, project, name));
    }
    Err(Refusal::not_found(&call.target.path("networks")))
}

/// `networks.list`
pub(super) fn networks(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let networks = engine.networks();
    let networks = networks.iter();
    let items = networks.map(|name| views::network(engine, &call.target.project, name));
    list_of_project(call, engine, context, &NETWORKS, items)
}

/// Lists items that do not belong to a zone or region.
fn list_of_project(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
    list_kind: &ListKind,
    items: impl Iterator<Item = Value>,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, list_kind)?;
    let page = listing.page(items.map(|item| (Scope::Global, item)).collect());
    Ok(listing.document(call, list_kind, page))
}

/// `machineTypes.get`. A type is not found in a zone that does not offer it.
pub(super) fn machine_type(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let (zone, name) = (scope_name(call), &call.target.name);
    match engine.machine_type(name).filter(|spec| spec.is_in(zone)) {
        Some(spec) => Ok(views::machine_type(&call.target.project, zone, spec)),
        None => Err(Refusal::not_found(&call.target.path("machineTypes"))),
    }
}

/// `machineTypes.list`
pub(super) fn machine_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &MACHINE_TYPES)?;
    let page = listing.page(types_in(call, engine, scope_name(call)));
    Ok(listing.document(call, &MACHINE_TYPES, page))
}

/// `machineTypes.aggregatedList`
pub(super) fn all_machine_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    list_of_all_zones(call, engine, context, &MACHINE_TYPES, |zone| {
        types_in(call, engine, zone)
    })
}

/// Lists the items of every reachable zone.
///
/// # Errors
///
/// 503 if a zone is unreachable and a partial result is not allowed.
fn list_of_all_zones(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
    list_kind: &ListKind,
    items_in: impl Fn(&str) -> Vec<Item>,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, list_kind)?;
    listing.check_all(call, engine)?;
    let zones = engine.core.knobs.zones.iter();
    let zones = zones.filter(|zone| !engine.core.knobs.unreachable_zones.contains(*zone));
    let all = zones.flat_map(|zone| items_in(zone)).collect();
    let scopes = list::zones(engine);
    Ok(listing.aggregate(call, engine, list_kind, &scopes, listing.page(all)))
}

/// Returns the machine types that a zone offers.
fn types_in(call: &Call, engine: &Engine, zone: &str) -> Vec<Item> {
    let types = engine.core.knobs.machine_types.iter();
    let items = types
        .filter(|spec| spec.is_in(zone))
        .map(|spec: &MachineType| {
            let item = views::machine_type(&call.target.project, zone, spec);
            (Scope::Zone(zone.to_owned()), item)
        });
    items.collect()
}

/// `diskTypes.get`
pub(super) fn disk_type(call: &Call) -> Result<Value, Refusal> {
    let name = &*call.target.name;
    if DISK_TYPES.contains(&name) {
        return Ok(views::disk_type(
            &call.target.project,
            scope_name(call),
            name,
        ));
    }
    Err(Refusal::not_found(&call.target.path("diskTypes")))
}

/// `diskTypes.list`
pub(super) fn disk_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &DISK_TYPES_LIST)?;
    let page = listing.page(disk_types_in(call, scope_name(call)));
    Ok(listing.document(call, &DISK_TYPES_LIST, page))
}

/// `diskTypes.aggregatedList`
pub(super) fn all_disk_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    list_of_all_zones(call, engine, context, &DISK_TYPES_LIST, |zone| {
        disk_types_in(call, zone)
    })
}

/// Returns the disk types of a zone; every zone has all of them.
fn disk_types_in(call: &Call, zone: &str) -> Vec<Item> {
    let items = DISK_TYPES.map(|name| {
        let item = views::disk_type(&call.target.project, zone, name);
        (Scope::Zone(zone.to_owned()), item)
    });
    items.into()
}

/// `subnetworks.get`
pub(super) fn subnetwork(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let mut found = subnetworks_in(call, engine, Some(scope_name(call))).into_iter();
    let found = found.find(|(_, item)| item["name"] == *call.target.name);
    match found {
        Some((_, item)) => Ok(item),
        None => Err(Refusal::not_found(&call.target.path("subnetworks"))),
    }
}

/// `subnetworks.list`
pub(super) fn subnetworks(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &SUBNETWORKS)?;
    let page = listing.page(subnetworks_in(call, engine, Some(scope_name(call))));
    Ok(listing.document(call, &SUBNETWORKS, page))
}

/// `subnetworks.aggregatedList`
pub(super) fn all_subnetworks(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &SUBNETWORKS)?;
    let page = listing.page(subnetworks_in(call, engine, None));
    let scopes = regions_as_scopes(engine);
    Ok(listing.aggregate(call, engine, &SUBNETWORKS, &scopes, page))
}

/// Returns the subnetworks of a region, or of all regions that exist.
fn subnetworks_in(call: &Call, engine: &Engine, region: Option<&str>) -> Vec<Item> {
    let in_region = |known: &&Subnetwork| region.is_none_or(|region| region == known.region);
    let known = engine.core.knobs.subnetworks.iter().filter(in_region);
    let known = known.filter(|known| engine.has_region(&known.region));
    let items = known.map(|known| {
        let item = views::subnetwork(&call.target.project, known);
        (Scope::Region(known.region.clone()), item)
    });
    items.collect()
}

/// Returns every region as a scope.
fn regions_as_scopes(engine: &Engine) -> Vec<Scope> {
    engine.regions().into_iter().map(Scope::Region).collect()
}

/// `addresses.list`: always empty, because the emulator has no static addresses.
pub(super) fn addresses(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    list_of_project(call, engine, context, &ADDRESSES, std::iter::empty())
}

/// `addresses.aggregatedList`: every scope is empty.
pub(super) fn all_addresses(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &ADDRESSES)?;
    let page = listing.page(Vec::new());
    let scopes: Vec<_> = std::iter::once(Scope::Global)
        .chain(regions_as_scopes(engine))
        .collect();
    Ok(listing.aggregate(call, engine, &ADDRESSES, &scopes, page))
}
