//! The serial console of a machine: its URL and its content.

use serde_json::json;

use super::Context;
use crate::azure::{
    error::Refusal,
    wire::{id::Kind, response::ApiResponse},
};

/// The suffix of the name of a console's blob.
const CONSOLE: &str = ".serialconsole.log";

/// Returns the URLs of the console and the screenshot. They need no token, like a URL with a shared
/// access signature. The screenshot does not exist.
///
/// # Errors
///
/// 409 `OperationNotAllowed` if boot diagnostics are disabled.
pub(super) fn retrieve(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let id = context.request.id(Kind::VirtualMachine);
    let seq = context.engine.find_vm(&id)?;
    let vm = context.engine.vms.get(seq);
    let vm = vm.ok_or_else(|| id.not_found())?;
    if !vm.diagnostics {
        let message = format!("Boot diagnostics are not enabled on VM '{}'.", vm.id.name);
        return Err(Refusal::not_allowed(message));
    }
    let at = |name: &str| {
        let origin = &context.request.origin;
        format!(
            "{origin}/bootdiagnostics/{}/{seq}{name}?sr=b&sp=r",
            vm.vm_id
        )
    };
    Ok(ApiResponse::document(&json!({
        "consoleScreenshotBlobUri": at(".screenshot.bmp"),
        "serialConsoleLogBlobUri": at(CONSOLE),
    })))
}

/// Returns the console of a machine as text, or 404 `BlobNotFound`.
pub(super) fn blob(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    let (vm_id, name) = (context.request.name(0), context.request.name(1));
    let seq = name.strip_suffix(CONSOLE).and_then(|seq| seq.parse().ok());
    let vm = seq.and_then(|seq| context.engine.vms.get(seq));
    let Some(vm) = vm.filter(|vm| vm.vm_id == vm_id && vm.diagnostics) else {
        let message = "The specified blob does not exist.";
        return Err(Refusal::new(404, "BlobNotFound", message));
    };
    context.engine.core.records_read += 1;
    let mut text = vm.console.join("\r\n");
    text.push_str("\r\n");
    Ok(ApiResponse::text(text))
}
