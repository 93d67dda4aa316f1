//! Virtual machines: create, change, get, list, power, delete.

use serde_json::Value;

use super::{Context, list::ListScope, tasks::StartedOperation};
use crate::{
    azure::{
        catalog::normalize_location,
        engine::{Engine, vm::Vm},
        error::Refusal,
        shapes::vm::{Detail, VmRenderer},
        wire::{
            body,
            id::{Id, Kind},
            response::ApiResponse,
            vm_body::VmBody,
        },
    },
    cloud::index::Seq,
};

impl Context<'_> {
    /// Returns the id of the virtual machine that the path names.
    fn vm_id(&self) -> Id {
        self.request.id(Kind::VirtualMachine)
    }

    /// Returns a virtual machine as a document.
    fn render(&self, vm: &Vm, detail: Detail) -> Value {
        let renderer = VmRenderer {
            engine: self.engine,
            detail,
            state: self.injected.state.as_deref(),
        };
        renderer.vm(vm)
    }

    /// Returns the current document of a virtual machine that the call has just changed, without
    /// lag.
    fn render_current(&self, seq: Seq) -> Value {
        let vm = self.engine.vms.get(seq);
        vm.map_or(Value::Null, |vm| self.render(vm, Detail::Plain))
    }

    /// Returns the detail that `$expand` requests. Unknown values are refused with 400
    /// `InvalidParameter`.
    fn detail(&self) -> Result<Detail, Refusal> {
        match self.request.param("$expand").map(str::to_ascii_lowercase) {
            None => Ok(Detail::Plain),
            Some(expand) if expand.is_empty() => Ok(Detail::Plain),
            Some(expand) if expand == "instanceview" => Ok(Detail::InstanceView),
            Some(expand) if expand == "userdata" => Ok(Detail::UserData),
            Some(other) => {
                let message = format!("The expand query parameter value '{other}' is not valid.");
                Err(Refusal::invalid("$expand", message))
            }
        }
    }
}

/// Creates a virtual machine (201), or changes the existing one (200). Both begin an operation.
///
/// # Errors
///
/// 412 `PreconditionFailed`, 404 `NotFound` shortly after a deletion, 404 `ResourceGroupNotFound`, and
/// those of [`Engine::create_vm`] and [`Engine::replace_vm`].
pub(super) fn put(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.vm_id();
    let vm_body: VmBody = body::read(context.request)?;
    context.engine.check_group(&id.subscription, &id.group)?;
    context.engine.check_group_shown(&id.group)?;
    context.engine.core.records_read += 1;
    let existing = context.engine.vms.seq(&id);
    check_preconditions(context, existing)?;
    let (task, status) = match existing {
        None => {
            context.engine.check_recreation(&id)?;
            (context.engine.create_vm(&id, &vm_body, false)?, 201)
        }
        Some(seq) => (context.engine.replace_vm(seq, &vm_body)?, 200),
    };
    let seq = context.engine.vms.seq(&id).unwrap_or_default();
    let document = context.render_current(seq);
    Ok(context.operation_response(task, StartedOperation::Document(status), &document))
}

/// Checks `If-None-Match: *` (the resource must not exist) and `If-Match` (it must have this
/// version).
///
/// # Errors
///
/// 412 `PreconditionFailed`.
fn check_preconditions(context: &Context<'_>, existing: Option<Seq>) -> Result<(), Refusal> {
    if context.request.if_none_match.as_deref() == Some("*") && existing.is_some() {
        return Err(Refusal::precondition(
            "The condition 'If-None-Match' is not satisfied: the resource exists.",
        ));
    }
    let Some(expected) = context.request.if_match.as_deref() else {
        return Ok(());
    };
    let version = existing.and_then(|seq| context.engine.vms.get(seq));
    let matches =
        version.is_some_and(|vm| expected == "*" || expected == format!("\"{}\"", vm.version));
    if matches {
        return Ok(());
    }
    Err(Refusal::precondition(
        "The condition 'If-Match' is not satisfied: the resource has another version.",
    ))
}

/// Changes tags, size and other mutable properties (200), and begins an operation.
pub(super) fn patch(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.vm_id();
    let change: VmBody = body::read(context.request)?;
    let seq = context.engine.find_vm(&id)?;
    check_preconditions(context, Some(seq))?;
    let task = context.engine.update_vm(seq, &change)?;
    let document = context.render_current(seq);
    Ok(context.operation_response(task, StartedOperation::Document(200), &document))
}

/// Returns a virtual machine as of the time that the call reads, which lags with the knobs.
fn read_vm(context: &mut Context<'_>) -> Result<std::sync::Arc<Vm>, Refusal> {
    let id = context.vm_id();
    context.engine.check_group(&id.subscription, &id.group)?;
    context.engine.core.records_read += 1;
    context.check_shown(&id)?;
    let moment = context.engine.read_time(context.injected.read_lag);
    let vm = context.engine.vms.version_at(&id, moment);
    vm.ok_or_else(|| context.engine.vm_not_found(&id))
}

/// Returns a virtual machine.
pub(super) fn get(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let detail = context.detail()?;
    let vm = read_vm(context)?;
    Ok(ApiResponse::document(&context.render(&vm, detail)))
}

/// Returns the instance view of a virtual machine.
pub(super) fn instance_view(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let vm = read_vm(context)?;
    let mut document = context.render(&vm, Detail::InstanceView);
    let view = document.pointer_mut("/properties/instanceView");
    Ok(ApiResponse::document(
        &view.map_or(Value::Null, Value::take),
    ))
}

/// Begins to delete a virtual machine (202). A missing one is a success too (204).
pub(super) fn delete(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    check_flag(context, "forcedeletion")?;
    let id = context.vm_id();
    Ok(match context.engine.delete_vm(&id)? {
        None => ApiResponse::bare(204),
        Some(task) => context.operation_response(task, StartedOperation::Accepted, &Value::Null),
    })
}

/// Begins to start, stop, restart or deallocate a virtual machine (202). Hibernation is refused
/// with 400 `NotSupported`.
pub(super) fn power(
    context: &mut Context<'_>,
    begin: impl FnOnce(&mut Engine, &Id) -> Result<u64, Refusal>,
) -> Result<ApiResponse, Refusal> {
    check_flag(context, "skipshutdown")?;
    check_flag(context, "hibernate")?;
    let hibernate = context.request.param("hibernate");
    if hibernate.is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
        return Err(Refusal::unsupported("hibernate"));
    }
    let id = context.vm_id();
    let task = begin(context.engine, &id)?;
    Ok(context.operation_response(task, StartedOperation::Accepted, &Value::Null))
}

/// Lists the sizes that a virtual machine can have.
pub(super) fn sizes(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    read_vm(context)?;
    super::catalog::available_sizes(context)
}

/// Lists the extensions of a virtual machine: none.
pub(super) fn extensions(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    read_vm(context)?;
    Ok(ApiResponse::document(&serde_json::json!({ "value": [] })))
}

/// Returns 404 `ResourceNotFound`: a virtual machine has no extensions.
pub(super) fn extension(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let vm = read_vm(context)?;
    let kind = "Microsoft.Compute/virtualMachines";
    let name = format!("{}/extensions/{}", vm.id.name, context.request.name(3));
    Err(Refusal::manager_not_found(kind, &name, &vm.id.group))
}

/// Deletes an extension that does not exist, which is a success (204).
pub(super) fn delete_extension(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    read_vm(context)?;
    Ok(ApiResponse::bare(204))
}

/// Marks a virtual machine as generalized, immediately (200).
pub(super) fn generalize(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.vm_id();
    context.engine.generalize_vm(&id)?;
    Ok(ApiResponse::bare(200))
}

/// Evicts a spot machine (204).
pub(super) fn evict(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.vm_id();
    context.engine.evict_vm(&id)?;
    Ok(ApiResponse::bare(204))
}

/// Refuses a query flag that is neither `true` nor `false`, with 400 `InvalidParameter`.
fn check_flag(context: &Context<'_>, name: &str) -> Result<(), Refusal> {
    let flag = context.request.param(name).map(str::to_ascii_lowercase);
    match flag.as_deref() {
        None | Some("true" | "false") => Ok(()),
        Some(other) => {
            let message = format!("The value '{other}' of parameter '{name}' is not valid.");
            Err(Refusal::invalid(name, message))
        }
    }
}

/// Lists the virtual machines of a resource group.
pub(super) fn list_group(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let detail = context.detail()?;
    list(context, ListScope::Group, detail, None)
}

/// Lists the virtual machines of a subscription; with `statusOnly=true` only their states.
pub(super) fn list_all(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    check_flag(context, "statusonly")?;
    let status = context.request.param("statusonly");
    let detail = match status {
        Some(flag) if flag.eq_ignore_ascii_case("true") => Detail::StatusOnly,
        Some(_) | None => context.detail()?,
    };
    list(context, ListScope::Subscription, detail, None)
}

/// Lists the virtual machines of a subscription in one location. The filter is applied to each
/// page, so a page may have fewer items than its size.
pub(super) fn list_by_location(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let location = normalize_location(context.request.name(1));
    list(
        context,
        ListScope::Subscription,
        Detail::Plain,
        Some(&location),
    )
}

/// Returns one page of virtual machines.
fn list(
    context: &mut Context<'_>,
    list_scope: ListScope,
    detail: Detail,
    location: Option<&str>,
) -> Result<ApiResponse, Refusal> {
    let (scope, paging) = (context.scope(list_scope)?, context.paging()?);
    let moment = context.engine.read_time(context.injected.read_lag);
    let (page, records_read) = context.engine.vms.page(&scope, &paging, moment);
    context.engine.core.records_read += records_read;
    let mut listed = page.items;
    // An injected state is shown, so that the fault has an effect.
    if context.injected.state.is_none() {
        let (all, percent) = (listed.len(), context.engine.core.knobs.omissions.lists);
        listed.retain(|_| !context.engine.omits(percent));
        context.engine.omitted += (all - listed.len()) as u64;
    }
    let listed = listed
        .iter()
        .filter(|vm| location.is_none_or(|location| vm.location == location));
    let items: Vec<_> = listed.map(|vm| context.render(vm, detail)).collect();
    Ok(context.page(&items, page.next))
}
