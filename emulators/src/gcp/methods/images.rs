//! `images`: insert, delete, get, getFromFamily, list.

use serde_json::Value;

use super::{
    Call,
    list::{ListKind, Listing},
};
use crate::{
    cloud::inject::CallContext,
    gcp::{
        engine::{Engine, image::ImageSpec, rules},
        error::Refusal,
        views,
        wire::{
            body::Fields as _,
            link::ResourceLink,
            route::{Scope, is_name},
            schema,
        },
    },
};

/// The list of images.
const IMAGES: ListKind = ListKind {
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

/// `images.insert`, from a disk of any project.
///
/// # Errors
///
/// 400 for a missing or invalid name, label or `sourceDisk`; 404, 409 or 400 as the engine says.
pub(super) fn insert(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
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
    let parsed = ResourceLink::parse(link).ok_or_else(malformed)?;
    let ["zones", zone, "disks", disk] = *parsed.parts() else {
        return Err(malformed());
    };
    let project = &call.target.project;
    let disk_project = parsed.project.as_ref().unwrap_or(project);
    let spec = ImageSpec {
        project: project.clone(),
        name: name.to_owned(),
        family: body.text("family").map(str::to_owned),
        description: body.text("description").map(str::to_owned),
        labels,
        disk: (disk_project.clone(), zone.to_owned(), disk.to_owned()),
        force: call.query.flag("forceCreate")?,
    };
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.insert_image(&spec)
    })
}

/// `images.delete`.
///
/// # Errors
///
/// 404 for a missing image, 403 for one of a public project.
pub(super) fn delete(
    call: &Call,
    engine: &mut Engine,
    context: &CallContext,
) -> Result<Value, Refusal> {
    call.begin_once_or_fail(engine, &context.planned_failures, |engine| {
        engine.delete_image(&call.target)
    })
}

/// `images.get`
pub(super) fn get(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    match engine.image(&call.target.project, &call.target.name) {
        Some((_, image)) => Ok(views::image(engine, image)),
        None => Err(Refusal::not_found(&call.target.path("images"))),
    }
}

/// `images.getFromFamily`: the newest image of a family, whether it is ready or not.
pub(super) fn get_from_family(call: &Call, engine: &Engine) -> Result<Value, Refusal> {
    match engine.image_of_family(&call.target.project, &call.target.name) {
        Some(image) => Ok(views::image(engine, image)),
        None => Err(Refusal::not_found(&call.target.path("images/family"))),
    }
}

/// `images.list`
pub(super) fn list(call: &Call, engine: &Engine, context: &CallContext) -> Result<Value, Refusal> {
    let listing = Listing::read(call, engine, context, &IMAGES)?;
    let images = engine.images.values();
    let of_project = images.filter(|image| image.project == call.target.project);
    let items = of_project.map(|image| (Scope::Global, views::image(engine, image)));
    let page = listing.page(items.collect());
    Ok(listing.document(call, &IMAGES, page))
}
