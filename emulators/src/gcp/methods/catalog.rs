//! The catalog: zones, regions, machine types, networks, addresses.

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, Listing, Of},
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

const MACHINE_TYPES: Of = Of {
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

const DISK_TYPES_LIST: Of = Of {
    kind: "diskType",
    collection: "diskTypes",
    fields: &["id", "name", "selfLink", "zone"],
};

const ZONES: Of = Of {
    kind: "zone",
    collection: "zones",
    fields: &["id", "name", "region", "selfLink", "status"],
};

const REGIONS: Of = Of {
    kind: "region",
    collection: "regions",
    fields: &["id", "name", "selfLink", "status"],
};

const NETWORKS: Of = Of {
    kind: "network",
    collection: "networks",
    fields: &["autoCreateSubnetworks", "id", "name", "selfLink"],
};

const SUBNETWORKS: Of = Of {
    kind: "subnetwork",
    collection: "subnetworks",
    fields: &["id", "ipCidrRange", "name", "network", "region", "selfLink"],
};

const ADDRESSES: Of = Of {
    kind: "address",
    collection: "addresses",
    fields: &["address", "id", "name", "region", "status"],
};

/// The name of the zone or region of a call, or nothing.
fn place(call: &Call) -> &str {
    match &call.target.scope {
        Scope::Zone(name) | Scope::Region(name) => name,
        Scope::Global => "",
    }
}

pub(super) fn zone(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    Ok(views::zone(engine, &call.target.project, place(call)))
}

pub(super) fn zones(call: &Call, engine: &Engine, context: &CallContext) -> Result<Value, Refusal> {
    let zones = engine.core.knobs.zones.iter();
    let shown = zones.map(|zone| views::zone(engine, &call.target.project, zone));
    of_project(call, engine, context, &ZONES, shown)
}

pub(super) fn region(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    Ok(views::region(engine, &call.target.project, place(call)))
}

pub(super) fn regions(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let regions = engine.regions();
    let regions = regions.iter();
    let shown = regions.map(|region| views::region(engine, &call.target.project, region));
    of_project(call, engine, context, &REGIONS, shown)
}

pub(super) fn network(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let (project, name) = (&call.target.project, &call.target.name);
    if engine.networks().iter().any(|known| known == name) {
        return Ok(views::network(engine, project, name));
    }
    Err(Refusal::not_found(&call.target.path("networks")))
}

pub(super) fn networks(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let networks = engine.networks();
    let networks = networks.iter();
    let shown = networks.map(|name| views::network(engine, &call.target.project, name));
    of_project(call, engine, context, &NETWORKS, shown)
}

/// A list that is not of zones or regions one by one.
fn of_project(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
    of: &Of,
    shown: impl Iterator<Item = Value>,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, of)?;
    let page = listing.page(shown.map(|item| (Scope::Global, item)).collect());
    Ok(listing.document(call, of, page))
}

pub(super) fn machine_type(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let (zone, name) = (place(call), &call.target.name);
    match engine.machine_type(name).filter(|spec| spec.is_in(zone)) {
        Some(spec) => Ok(views::machine_type(&call.target.project, zone, spec)),
        None => Err(Refusal::not_found(&call.target.path("machineTypes"))),
    }
}

pub(super) fn machine_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &MACHINE_TYPES)?;
    let page = listing.page(types_in(call, engine, place(call)));
    Ok(listing.document(call, &MACHINE_TYPES, page))
}

pub(super) fn all_machine_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    of_all_zones(call, engine, context, &MACHINE_TYPES, |zone| {
        types_in(call, engine, zone)
    })
}

/// An aggregated list.
fn of_all_zones(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
    of: &Of,
    items_in: impl Fn(&str) -> Vec<Item>,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, of)?;
    listing.check_all(call, engine)?;
    let zones = engine.core.knobs.zones.iter();
    let zones = zones.filter(|zone| !engine.core.knobs.unreachable_zones.contains(*zone));
    let all = zones.flat_map(|zone| items_in(zone)).collect();
    let scopes = list::zones(engine);
    Ok(listing.aggregate(call, engine, of, &scopes, listing.page(all)))
}

fn types_in(call: &Call, engine: &Engine, zone: &str) -> Vec<Item> {
    let types = engine.core.knobs.machine_types.iter();
    let shown = types
        .filter(|spec| spec.is_in(zone))
        .map(|spec: &MachineType| {
            let item = views::machine_type(&call.target.project, zone, spec);
            (Scope::Zone(zone.to_owned()), item)
        });
    shown.collect()
}

pub(super) fn disk_type(call: &Call) -> Result<Value, Refusal> {
    let name = &*call.target.name;
    if DISK_TYPES.contains(&name) {
        return Ok(views::disk_type(&call.target.project, place(call), name));
    }
    Err(Refusal::not_found(&call.target.path("diskTypes")))
}

pub(super) fn disk_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &DISK_TYPES_LIST)?;
    let page = listing.page(disk_types_in(call, place(call)));
    Ok(listing.document(call, &DISK_TYPES_LIST, page))
}

pub(super) fn all_disk_types(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    of_all_zones(call, engine, context, &DISK_TYPES_LIST, |zone| {
        disk_types_in(call, zone)
    })
}

fn disk_types_in(call: &Call, zone: &str) -> Vec<Item> {
    let shown = DISK_TYPES.map(|name| {
        let item = views::disk_type(&call.target.project, zone, name);
        (Scope::Zone(zone.to_owned()), item)
    });
    shown.into()
}

pub(super) fn subnetwork(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let mut found = subnetworks_in(call, engine, Some(place(call))).into_iter();
    let found = found.find(|(_, item)| item["name"] == *call.target.name);
    match found {
        Some((_, item)) => Ok(item),
        None => Err(Refusal::not_found(&call.target.path("subnetworks"))),
    }
}

pub(super) fn subnetworks(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &SUBNETWORKS)?;
    let page = listing.page(subnetworks_in(call, engine, Some(place(call))));
    Ok(listing.document(call, &SUBNETWORKS, page))
}

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

fn subnetworks_in(call: &Call, engine: &Engine, region: Option<&str>) -> Vec<Item> {
    let here = |known: &&Subnetwork| region.is_none_or(|region| region == known.region);
    let known = engine.core.knobs.subnetworks.iter().filter(here);
    let known = known.filter(|known| engine.has_region(&known.region));
    let shown = known.map(|known| {
        let item = views::subnetwork(&call.target.project, known);
        (Scope::Region(known.region.clone()), item)
    });
    shown.collect()
}

fn regions_as_scopes(engine: &Engine) -> Vec<Scope> {
    engine.regions().into_iter().map(Scope::Region).collect()
}

/// There are no static addresses.
pub(super) fn addresses(
    call: &Call,
    engine: &Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    of_project(call, engine, context, &ADDRESSES, std::iter::empty())
}

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
