//! `disks`: delete, get, list, aggregatedList.
//!
//! Disks are created with instances only; `disks.insert` is not emulated.

use serde_json::Value;

use super::{
    Call,
    list::{self, Item, ListKind, Listing, Order},
};
use crate::{
    cloud::{index::Seq, inject::CallContext, page::Page},
    gcp::{
        engine::{Engine, disk::Disk},
        error::Refusal,
        views,
        wire::route::Scope,
    },
};

/// The lists of disks.
const DISKS: ListKind = ListKind {
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

/// `disks.delete`.
///
/// # Errors
///
/// 404 for a missing disk, 400 `resourceInUseByAnotherResource` for an attached one.
pub(super) fn delete(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.delete_disk(&call.target)
    })
}

/// `disks.get`
pub(super) fn get(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    let Scope::Zone(zone) = &call.target.scope else {
        return Err(Refusal::no_such_path());
    };
    match engine.disk(&call.target.project, zone, &call.target.name) {
        Some((_, disk)) => Ok(views::disk(engine, disk)),
        None => Err(Refusal::not_found(&call.target.path("disks"))),
    }
}

/// `disks.list`
pub(super) fn list(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &DISKS)?;
    let page = page(call, engine, &listing);
    Ok(listing.document(call, &DISKS, page))
}

/// `disks.aggregatedList`
pub(super) fn aggregated(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &DISKS)?;
    listing.check_all(call, engine)?;
    let page = page(call, engine, &listing);
    let zones = list::zones(engine);
    Ok(listing.aggregate(call, engine, &DISKS, &zones, page))
}

/// Returns a page of the disks of the call's scope.
///
/// In the order of creation it reads only the disks of the page; otherwise all disks, to sort
/// them.
fn page(call: &Call, engine: &mut Engine, listing: &Listing) -> Page<Item> {
    let target = &call.target;
    let to_item = |(seq, disk): (&Seq, &Disk)| {
        let scope = Scope::Zone(disk.zone.clone());
        let listed = target.scope == Scope::Global || target.scope == scope;
        let listed =
            disk.project == target.project && listed && !list::is_unreachable(engine, &scope);
        listed.then(|| (*seq, (scope, views::disk(engine, disk))))
    };
    let (page, records_read) = if listing.order == Order::Creation {
        let after = listing.paging.position.after.saturating_add(1);
        listing.take(engine.disks.range(after..).filter_map(to_item))
    } else {
        let all: Vec<_> = engine.disks.iter().filter_map(to_item).collect();
        let records_read = all.len() as u64;
        let all = all.into_iter().map(|(_, item)| item);
        (listing.page(all.collect()), records_read)
    };
    engine.core.records_read += records_read;
    page
}
