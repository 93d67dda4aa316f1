//! Disks, images, interfaces and public addresses: create, get, list and delete.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{Context, list::ListScope, tasks::StartedOperation};
use crate::{
    azure::{
        engine::{
            Engine,
            resource_table::{ResourceTable, Scope},
        },
        error::Refusal,
        shapes::parts,
        wire::{
            body::{self, DiskBody, ImageBody, IpBody, NicBody},
            id::{Id, Kind},
            response::ApiResponse,
        },
    },
    cloud::page::{Page, PageRequest},
};

pub(super) fn put_disk(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let wanted: DiskBody = body::read(context.request)?;
    let id = context.request.id(Kind::Disk);
    let started = context.engine.put_disk(&id, &wanted)?;
    Ok(put_response(context, &id, started))
}

pub(super) fn put_image(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let wanted: ImageBody = body::read(context.request)?;
    let id = context.request.id(Kind::Image);
    let started = context.engine.put_image(&id, &wanted)?;
    Ok(put_response(context, &id, started))
}

pub(super) fn put_nic(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let wanted: NicBody = body::read(context.request)?;
    let id = context.request.id(Kind::Nic);
    let started = context.engine.put_nic(&id, &wanted)?;
    Ok(put_response(context, &id, started))
}

pub(super) fn put_ip(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let wanted: IpBody = body::read(context.request)?;
    let id = context.request.id(Kind::PublicIp);
    let started = context.engine.put_ip(&id, &wanted)?;
    Ok(put_response(context, &id, started))
}

/// The answer to a call that has begun to make or to change something.
fn put_response(context: &mut Context<'_>, id: &Id, (task, new): (u64, bool)) -> ApiResponse {
    let now = context.engine.now();
    let document = render(context.engine, id, Some(now), Expand::Nothing).unwrap_or(Value::Null);
    let status = match (id.kind, new) {
        // A disk is not said to be made before it is.
        (Kind::Disk, _) => 202,
        (_, true) => 201,
        (_, false) => 200,
    };
    context.operation_response(task, StartedOperation::Document(status), &document)
}

/// What is shown of what something refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expand {
    Nothing,
    PublicAddresses,
}

/// Shows one.
pub(super) fn get(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(kind);
    context.engine.check_group(&id.group)?;
    context.engine.core.records_read += 1;
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
    let moment = context.engine.moment(context.context.read_lag);
    let document = render(context.engine, &id, moment, expand);
    let document = document.ok_or_else(|| id.not_found())?;
    Ok(ApiResponse::document(&document))
}

fn render(engine: &Engine, id: &Id, moment: Option<Duration>, expand: Expand) -> Option<Value> {
    Some(match id.kind {
        Kind::Disk => parts::disk(engine, &*engine.disks.version_at(id, moment)?),
        Kind::Image => parts::image(&*engine.images.version_at(id, moment)?),
        Kind::PublicIp => parts::public_ip(&*engine.ips.version_at(id, moment)?),
        Kind::Nic => {
            let nic = engine.nics.version_at(id, moment)?;
            let publics = (expand == Expand::PublicAddresses).then_some((engine, moment));
            parts::nic(&nic, publics)
        }
        Kind::VirtualMachine => return None,
    })
}

/// Begins to delete one; what is not there is deleted.
pub(super) fn delete(
    context: &mut Context<'_>,
    kind: Kind,
    begin: impl FnOnce(&mut Engine, &Id) -> Result<Option<u64>, Refusal>,
) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(kind);
    context.engine.core.records_read += 1;
    Ok(match begin(context.engine, &id)? {
        None => ApiResponse::bare(204),
        Some(task) => context.operation_response(task, StartedOperation::Accepted, &Value::Null),
    })
}

/// A page of all there are.
pub(super) fn list(
    context: &mut Context<'_>,
    kind: Kind,
    list_scope: ListScope,
) -> Result<ApiResponse, Refusal> {
    let (scope, paging) = (context.scope(list_scope)?, context.paging()?);
    let moment = context.engine.moment(context.context.read_lag);
    let engine = &*context.engine;
    let read = ListRead {
        scope: &scope,
        paging: &paging,
        moment,
    };
    let (page, records_read) = match kind {
        Kind::Disk => read.page(&engine.disks, |disk| parts::disk(engine, disk)),
        Kind::Image => read.page(&engine.images, parts::image),
        Kind::PublicIp => read.page(&engine.ips, parts::public_ip),
        Kind::Nic => read.page(&engine.nics, |nic| parts::nic(nic, None)),
        Kind::VirtualMachine => return Err(Refusal::internal()),
    };
    context.engine.core.records_read += records_read;
    Ok(context.page(&page.items, page.next))
}

/// The part of a list that is asked for.
struct ListRead<'a> {
    scope: &'a Scope,
    paging: &'a PageRequest,
    moment: Option<Duration>,
}

impl ListRead<'_> {
    fn page<T: Clone>(
        &self,
        resource_table: &ResourceTable<T>,
        render: impl Fn(&T) -> Value,
    ) -> (Page<Value>, u64) {
        let (page, records_read) = resource_table.page(self.scope, self.paging, self.moment);
        let items = page
            .items
            .iter()
            .map(|item: &Arc<T>| render(item))
            .collect();
        let next = page.next;
        (Page { items, next }, records_read)
    }
}
