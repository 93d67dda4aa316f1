//! `disks`: delete, get, list, aggregatedList.

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, Listing, Of, Order},
};
use crate::{
    cloud::{index::Seq, page::Page, strike::Served},
    gcp::{
        engine::{World, disk::Disk},
        error::Refusal,
        views,
        wire::route::Scope,
    },
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
    let page = page(call, world, &listing);
    Ok(listing.document(call, &DISKS, page))
}

pub(super) fn aggregated(
    call: &Call,
    world: &mut World,
    served: &Served,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, world, served, &DISKS)?;
    listing.check_all(call, world)?;
    let page = page(call, world, &listing);
    let zones = list::zones(world);
    Ok(listing.aggregate(call, world, &DISKS, &zones, page))
}

fn page(call: &Call, world: &mut World, listing: &Listing) -> Page<Item> {
    let target = &call.target;
    let shown = |(seq, disk): (&Seq, &Disk)| {
        let scope = Scope::Zone(disk.zone.clone());
        let here = target.scope == Scope::Global || target.scope == scope;
        let here = disk.project == target.project && here && !list::is_silent(world, &scope);
        here.then(|| (*seq, (scope, views::disk(world, disk))))
    };
    let (page, touched) = if listing.order == Order::Made {
        let after = listing.paging.place.after.saturating_add(1);
        listing.take(world.disks.range(after..).filter_map(shown))
    } else {
        let all: Vec<_> = world.disks.iter().filter_map(shown).collect();
        let touched = all.len() as u64;
        let all = all.into_iter().map(|(_, item)| item);
        (listing.page(all.collect()), touched)
    };
    world.touched += touched;
    page
}
