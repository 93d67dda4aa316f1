//! `disks`: delete, get, list, aggregatedList.

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, Listing, Of},
};
use crate::{
    cloud::strike::Served,
    gcp::{engine::World, error::Refusal, views, wire::route::Scope},
};

const DISKS: Of = Of {
    kind: "disk",
    collection: "disks",
    fields: &[
        "architecture",
        "creationTimestamp",
        "description",
        "id",
        "labels",
        "name",
        "selfLink",
        "sizeGb",
        "sourceImage",
        "sourceImageId",
        "status",
        "type",
        "users",
        "zone",
    ],
};

pub(super) fn delete(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    call.once_or_fail(world, &served.doom, |world| world.delete_disk(&call.target))
}

pub(super) fn get(call: &Call, world: &World) -> Result<Value, Refusal> {
    let Scope::Zone(zone) = &call.target.scope else {
        return Err(Refusal::no_such_path());
    };
    match world.disk(&call.target.project, zone, &call.target.name) {
        Some((_, disk)) => Ok(views::disk(world, disk)),
        None => Err(Refusal::not_found(&call.target.path("disks"))),
    }
}

pub(super) fn list(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    let listing = Listing::read(call, world, served, &DISKS)?;
    let shown = shown(call, world);
    Ok(listing.document(call, &DISKS, listing.page(shown)))
}

pub(super) fn aggregated(
    call: &Call,
    world: &mut World,
    served: &Served,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, world, served, &DISKS)?;
    listing.check_all(call, world)?;
    let page = listing.page(shown(call, world));
    let zones = list::zones(world);
    Ok(listing.aggregate(call, world, &DISKS, &zones, page))
}

fn shown(call: &Call, world: &mut World) -> Vec<Item> {
    let target = &call.target;
    let mut shown = Vec::new();
    for disk in world.disks.values() {
        let scope = Scope::Zone(disk.zone.clone());
        let here = target.scope == Scope::Global || target.scope == scope;
        if disk.project == target.project && here && !list::is_silent(world, &scope) {
            shown.push((scope, views::disk(world, disk)));
        }
    }
    world.touched += shown.len() as u64;
    shown
}
