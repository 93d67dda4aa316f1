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
        shapes::resources,
        wire::{
            body::{self, DiskBody, ImageBody, IpBody, NicBody, TagsBody},
            id::{Id, Kind},
            response::ApiResponse,
        },
    },
    cloud::page::{Page, PageRequest},
};

/// Creates or changes a disk, and begins an operation.
pub(super) fn put_disk(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let requested: DiskBody = body::read(context.request)?;
    let id = context.request.id(Kind::Disk);
    let started = context.engine.put_disk(&id, &requested)?;
    Ok(put_response(context, &id, started))
}

/// Creates or changes an image, and begins an operation.
pub(super) fn put_image(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let requested: ImageBody = body::read(context.request)?;
    let id = context.request.id(Kind::Image);
    let started = context.engine.put_image(&id, &requested)?;
    Ok(put_response(context, &id, started))
}

/// Creates or changes an interface, and begins an operation.
pub(super) fn put_nic(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let requested: NicBody = body::read(context.request)?;
    let id = context.request.id(Kind::Nic);
    let started = context.engine.put_nic(&id, &requested)?;
    Ok(put_response(context, &id, started))
}

/// Creates or changes a public address, and begins an operation.
pub(super) fn put_ip(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let requested: IpBody = body::read(context.request)?;
    let id = context.request.id(Kind::PublicIp);
    let started = context.engine.put_ip(&id, &requested)?;
    Ok(put_response(context, &id, started))
}

/// Replaces the tags of an image, interface or public address.
///
/// # Errors
///
/// 404 for a missing resource, 400 `BadRequest` for any other member than tags.
pub(super) fn patch_tags(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(kind);
    context.engine.check_group(&id.subscription, &id.group)?;
    let change: TagsBody = body::read(context.request)?;
    let now = context.engine.now();
    render(context.engine, &id, Some(now), Expand::Nothing).ok_or_else(|| id.not_found())?;
    if let Some(tags) = &change.tags {
        context.engine.check_tags(Some(tags))?;
        context.engine.set_tags(&id, tags);
    }
    let document = render(context.engine, &id, Some(now), Expand::Nothing).unwrap_or(Value::Null);
    Ok(ApiResponse::document(&document))
}

/// Changes tags, size or SKU of a disk, and begins an operation.
///
/// # Errors
///
/// 404 for a missing disk, and those of a `PUT`.
pub(super) fn patch_disk(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(Kind::Disk);
    context.engine.check_group(&id.subscription, &id.group)?;
    let mut change: DiskBody = body::read(context.request)?;
    let (_, disk) = context
        .engine
        .disks
        .find(&id)
        .ok_or_else(|| id.not_found())?;
    change.location = Some(disk.location.clone());
    if change.tags.is_none() {
        change.tags = Some(disk.tags.clone());
    }
    let started = context.engine.put_disk(&id, &change)?;
    Ok(put_response(context, &id, started))
}

/// Returns the response to a `PUT`: 201 for a new resource, 200 for a changed one, and always 202
/// for a disk.
fn put_response(context: &mut Context<'_>, id: &Id, (task, new): (u64, bool)) -> ApiResponse {
    let now = context.engine.now();
    let document = render(context.engine, id, Some(now), Expand::Nothing).unwrap_or(Value::Null);
    let status = match (id.kind, new) {
        // Disks are created asynchronously, so the response never says that one exists.
        (Kind::Disk, _) => 202,
        (_, true) => 201,
        (_, false) => 200,
    };
    context.operation_response(task, StartedOperation::Document(status), &document)
}

/// Which referenced resources a document contains in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expand {
    /// None: only their ids.
    Nothing,
    /// The public addresses of an interface.
    PublicAddresses,
}

/// Returns a resource as of the time that the call reads.
///
/// # Errors
///
/// 404 `ResourceNotFound` or `ResourceGroupNotFound`; 400 `InvalidParameter` for an unknown
/// `$expand`.
pub(super) fn get(context: &mut Context<'_>, kind: Kind) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(kind);
    context.engine.check_group(&id.subscription, &id.group)?;
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
    context.check_shown(&id)?;
    let moment = context.engine.read_time(context.injected.read_lag);
    let document = render(context.engine, &id, moment, expand);
    let document = document.ok_or_else(|| id.not_found())?;
    Ok(ApiResponse::document(&document))
}

/// Returns the document of a resource as of a time; `None` if it did not exist then.
fn render(engine: &Engine, id: &Id, moment: Option<Duration>, expand: Expand) -> Option<Value> {
    Some(match id.kind {
        Kind::Disk => resources::disk(engine, &*engine.disks.version_at(id, moment)?),
        Kind::Image => resources::image(&*engine.images.version_at(id, moment)?),
        Kind::PublicIp => resources::public_ip(&*engine.ips.version_at(id, moment)?),
        Kind::Nic => {
            let nic = engine.nics.version_at(id, moment)?;
            let publics = (expand == Expand::PublicAddresses).then_some((engine, moment));
            resources::nic(&nic, publics)
        }
        Kind::VirtualMachine
        | Kind::VirtualNetwork
        | Kind::SecurityGroup
        | Kind::Snapshot
        | Kind::SshKey
        | Kind::ResourceGroup => return None,
    })
}

/// Begins to delete a resource (202). A missing one is a success too (204).
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

/// Returns one page of the resources of a kind.
pub(super) fn list(
    context: &mut Context<'_>,
    kind: Kind,
    list_scope: ListScope,
) -> Result<ApiResponse, Refusal> {
    let (scope, paging) = (context.scope(list_scope)?, context.paging()?);
    let moment = context.engine.read_time(context.injected.read_lag);
    let engine = &*context.engine;
    let read = ListRead {
        scope: &scope,
        paging: &paging,
        moment,
    };
    let (page, records_read) = match kind {
        Kind::Disk => read.page(&engine.disks, |disk| resources::disk(engine, disk)),
        Kind::Image => read.page(&engine.images, resources::image),
        Kind::PublicIp => read.page(&engine.ips, resources::public_ip),
        Kind::Nic => read.page(&engine.nics, |nic| resources::nic(nic, None)),
        Kind::VirtualMachine
        | Kind::VirtualNetwork
        | Kind::SecurityGroup
        | Kind::Snapshot
        | Kind::SshKey
        | Kind::ResourceGroup => return Err(Refusal::internal()),
    };
    context.engine.core.records_read += records_read;
    Ok(context.page(&page.items, page.next))
}

/// One read of a list.
struct ListRead<'a> {
    /// The subscription or the resource group.
    scope: &'a Scope,
    /// The requested page.
    paging: &'a PageRequest,
    /// The time that is read.
    moment: Option<Duration>,
}

impl ListRead<'_> {
    /// Returns the page with its documents, and the number of records that it read.
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
