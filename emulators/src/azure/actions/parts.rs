//! Disks, images, interfaces and public addresses: made, shown, listed and deleted, all alike.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{Context, list::Reach, tasks::Begun};
use crate::{
    azure::{
        engine::{
            World,
            shelf::{Scope, Shelf},
        },
        error::Refusal,
        shapes::parts,
        wire::{
            answer::Answer,
            body::{self, DiskBody, ImageBody, IpBody, NicBody},
            id::{Id, Kind},
        },
    },
    cloud::page::{Page, Paging},
};

pub(super) fn put_disk(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let wanted: DiskBody = body::read(context.request)?;
    let id = context.request.id(Kind::Disk);
    let begun = context.world.put_disk(&id, &wanted)?;
    Ok(made(context, &id, begun))
}

pub(super) fn put_image(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let wanted: ImageBody = body::read(context.request)?;
    let id = context.request.id(Kind::Image);
    let begun = context.world.put_image(&id, &wanted)?;
    Ok(made(context, &id, begun))
}

pub(super) fn put_nic(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let wanted: NicBody = body::read(context.request)?;
    let id = context.request.id(Kind::Nic);
    let begun = context.world.put_nic(&id, &wanted)?;
    Ok(made(context, &id, begun))
}

pub(super) fn put_ip(context: &mut Context<'_>) -> Result<Answer, Refusal> {
    let wanted: IpBody = body::read(context.request)?;
    let id = context.request.id(Kind::PublicIp);
    let begun = context.world.put_ip(&id, &wanted)?;
    Ok(made(context, &id, begun))
}

/// The answer to a call that has begun to make or to change something.
fn made(context: &mut Context<'_>, id: &Id, (task, new): (u64, bool)) -> Answer {
    let now = context.world.now();
    let document = show(context.world, id, Some(now), Expand::Nothing).unwrap_or(Value::Null);
    let status = match (id.kind, new) {
        // A disk is not said to be made before it is.
        (Kind::Disk, _) => 202,
        (_, true) => 201,
        (_, false) => 200,
    };
    context.begun(task, Begun::Document(status), &document)
}

/// What is shown of what something refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expand {
    Nothing,
    PublicAddresses,
}

/// Shows one.
pub(super) fn get(context: &mut Context<'_>, kind: Kind) -> Result<Answer, Refusal> {
    let id = context.request.id(kind);
    context.world.check_group(&id.group)?;
    context.world.touched += 1;
    let expand = match context
        .request
        .param("$expand")
        .map(str::to_ascii_lowercase)
    {
        None => Expand::Nothing,
        Some(expand) if expand == "ipconfigurations/publicipaddress" => Expand::PublicAddresses,
        Some(other) => {
            let message = format!("The expand query parameter value '{other}' is not valid.");
            return Err(Refusal::invalid("$expand", message));
        }
    };
    let moment = context.world.moment(context.served.look);
    let document = show(context.world, &id, moment, expand);
    let document = document.ok_or_else(|| id.missing())?;
    Ok(Answer::document(&document))
}

fn show(world: &World, id: &Id, moment: Option<Duration>, expand: Expand) -> Option<Value> {
    Some(match id.kind {
        Kind::Disk => parts::disk(world, &*world.disks.seen(id, moment)?),
        Kind::Image => parts::image(&*world.images.seen(id, moment)?),
        Kind::PublicIp => parts::public_ip(&*world.ips.seen(id, moment)?),
        Kind::Nic => {
            let nic = world.nics.seen(id, moment)?;
            let publics = (expand == Expand::PublicAddresses).then_some((world, moment));
            parts::nic(&nic, publics)
        }
        Kind::VirtualMachine => return None,
    })
}

/// Begins to delete one; what is not there is deleted.
pub(super) fn delete(
    context: &mut Context<'_>,
    kind: Kind,
    begin: impl FnOnce(&mut World, &Id) -> Result<Option<u64>, Refusal>,
) -> Result<Answer, Refusal> {
    let id = context.request.id(kind);
    context.world.touched += 1;
    Ok(match begin(context.world, &id)? {
        None => Answer::bare(204),
        Some(task) => context.begun(task, Begun::Accepted, &Value::Null),
    })
}

/// A page of all there are.
pub(super) fn list(context: &mut Context<'_>, kind: Kind, reach: Reach) -> Result<Answer, Refusal> {
    let (scope, paging) = (context.scope(reach)?, context.paging()?);
    let moment = context.world.moment(context.served.look);
    let world = &*context.world;
    let part = Part {
        scope: &scope,
        paging: &paging,
        moment,
    };
    let (page, touched) = match kind {
        Kind::Disk => part.of(&world.disks, |disk| parts::disk(world, disk)),
        Kind::Image => part.of(&world.images, parts::image),
        Kind::PublicIp => part.of(&world.ips, parts::public_ip),
        Kind::Nic => part.of(&world.nics, |nic| parts::nic(nic, None)),
        Kind::VirtualMachine => return Err(Refusal::internal()),
    };
    context.world.touched += touched;
    Ok(context.page(&page.items, page.next))
}

/// The part of a list that is asked for.
struct Part<'a> {
    scope: &'a Scope,
    paging: &'a Paging,
    moment: Option<Duration>,
}

impl Part<'_> {
    fn of<T: Clone>(&self, shelf: &Shelf<T>, show: impl Fn(&T) -> Value) -> (Page<Value>, u64) {
        let (page, touched) = shelf.page(self.scope, self.paging, self.moment);
        let items = page.items.iter().map(|item: &Arc<T>| show(item)).collect();
        let next = page.next;
        (Page { items, next }, touched)
    }
}
