//! `images`: insert, delete, get, getFromFamily, list.

use serde_json::Value;

use super::{
    Call,
    list::{Listing, Of},
};
use crate::{
    cloud::strike::Served,
    gcp::{
        engine::{World, image::ImageOrder, rules},
        error::Refusal,
        views,
        wire::{
            body::Fields as _,
            link::Named,
            route::{Scope, is_name},
            schema,
        },
    },
};

const IMAGES: Of = Of {
    kind: "image",
    collection: "images",
    fields: &[
        "architecture",
        "creationTimestamp",
        "description",
        "diskSizeGb",
        "family",
        "id",
        "labels",
        "name",
        "selfLink",
        "sourceDisk",
        "sourceDiskId",
        "status",
    ],
};

pub(super) fn insert(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    let body = call.body(schema::IMAGE)?;
    let name = body
        .text("name")
        .ok_or_else(|| Refusal::required("resource.name"))?;
    if !is_name(name) {
        return Err(Refusal::mismatch("resource.name", name));
    }
    let labels = body.texts("labels");
    rules::check_labels("resource.labels", &labels)?;
    let link = body
        .text("sourceDisk")
        .ok_or_else(|| Refusal::required("resource.sourceDisk"))?;
    let malformed = || Refusal::invalid("resource.sourceDisk", link, "The URL is malformed.");
    let named = Named::read(link).ok_or_else(malformed)?;
    let ["zones", zone, "disks", disk] = *named.parts() else {
        return Err(malformed());
    };
    let project = &call.target.project;
    let of = named.project.as_ref().unwrap_or(project);
    let order = ImageOrder {
        project: project.clone(),
        name: name.to_owned(),
        family: body.text("family").map(str::to_owned),
        description: body.text("description").map(str::to_owned),
        labels,
        disk: (of.clone(), zone.to_owned(), disk.to_owned()),
        force: call.query.flag("forceCreate")?,
    };
    call.once_or_fail(world, &served.doom, |world| world.insert_image(&order))
}

pub(super) fn delete(call: &Call, world: &mut World, served: &Served) -> Result<Value, Refusal> {
    call.once_or_fail(world, &served.doom, |world| {
        world.delete_image(&call.target)
    })
}

pub(super) fn get(call: &Call, world: &World) -> Result<Value, Refusal> {
    match world.image(&call.target.project, &call.target.name) {
        Some((_, image)) => Ok(views::image(world, image)),
        None => Err(Refusal::not_found(&call.target.path("images"))),
    }
}

pub(super) fn get_from_family(call: &Call, world: &World) -> Result<Value, Refusal> {
    match world.image_of_family(&call.target.project, &call.target.name) {
        Some(image) => Ok(views::image(world, image)),
        None => Err(Refusal::not_found(&call.target.path("images/family"))),
    }
}

pub(super) fn list(call: &Call, world: &World, served: &Served) -> Result<Value, Refusal> {
    let listing = Listing::read(call, world, served, &IMAGES)?;
    let images = world.images.values();
    let here = images.filter(|image| image.project == call.target.project);
    let shown = here.map(|image| (Scope::Global, views::image(world, image)));
    let page = listing.page(shown.collect());
    Ok(listing.document(call, &IMAGES, page))
}
