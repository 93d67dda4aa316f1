//! Long-running operations: how a call starts one, and how a client polls it.
//!
//! The response that starts an operation has an `Azure-AsyncOperation` header, whose URL returns
//! the status. A response without a document also has a `Location` header, whose URL returns 202
//! until the operation ended.

use serde_json::{Value, json};

use super::Context;
use crate::azure::{engine::task::Task, error::Refusal, wire::response::ApiResponse};

/// The response of a call that starts an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartedOperation {
    /// A document with this status; polled by `Azure-AsyncOperation`.
    Document(u16),
    /// 202 without a document; polled by `Azure-AsyncOperation` or `Location`.
    Accepted,
}

impl Context<'_> {
    /// Returns the response of a call that started an operation. Applies the failure that a fault
    /// plans for it.
    pub(super) fn operation_response(
        &mut self,
        task: u64,
        started: StartedOperation,
        document: &Value,
    ) -> ApiResponse {
        if let Some(failure) = self.injected.planned_failures.first() {
            self.engine.plan_failure(task, failure.clone());
        }
        let response = match started {
            StartedOperation::Document(status) => ApiResponse::document(document).status(status),
            StartedOperation::Accepted => ApiResponse::bare(202),
        };
        let Some(task) = self.engine.tasks.get(&task) else {
            return response;
        };
        let response = response.header("azure-asyncoperation", self.url(task, false));
        let response = match started {
            StartedOperation::Document(_) => response,
            StartedOperation::Accepted => response.header("location", self.url(task, true)),
        };
        self.with_poll_delay(response)
    }

    /// Returns the response to the deletion of a resource group (202), which has only a `Location`.
    pub(super) fn group_response(&self, task: u64) -> ApiResponse {
        let response = ApiResponse::bare(202);
        let Some(task) = self.engine.tasks.get(&task) else {
            return response;
        };
        self.with_poll_delay(response.header("location", self.result_url(task)))
    }

    /// Returns the URL of the result of an operation of the resource manager itself.
    fn result_url(&self, task: &Task) -> String {
        let origin = self.engine.core.knobs.polling_origin.as_ref();
        format!(
            "{}/subscriptions/{}/operationresults/{}?api-version={}",
            origin.unwrap_or(&self.request.origin),
            task.subscription,
            task.id,
            self.request.version(),
        )
    }

    /// Returns the URL of an operation: of its status, or with `monitor` of its result.
    fn url(&self, task: &Task, monitor: bool) -> String {
        let origin = self.engine.core.knobs.polling_origin.as_ref();
        let monitor = if monitor { "&monitor=true" } else { "" };
        format!(
            "{}/subscriptions/{}/providers/{}/locations/{}/operations/{}?p={}{monitor}&api-version={}{}",
            origin.unwrap_or(&self.request.origin),
            task.subscription,
            task.provider,
            task.location,
            task.id,
            task.id,
            self.request.version(),
            self.signature(task)
        )
    }

    /// Returns the parameters by which the resource manager signs the URL of an operation: the time in
    /// ticks, a certificate, a signature and a hash, as in the recordings of azure-cli. A client must
    /// send them back and must not read them. Here they are texts without meaning.
    fn signature(&self, task: &Task) -> String {
        // 0001-01-01 to 1970-01-01 in steps of 100 nanoseconds.
        const EPOCH: i64 = 621_355_968_000_000_000;
        let micros = self.engine.date(task.started).timestamp_micros();
        let ticks = micros.saturating_mul(10).saturating_add(EPOCH);
        let opaque = task.id.replace('-', "");
        format!("&t={ticks}&c=MII{opaque}&s={opaque}&h={opaque}")
    }

    /// Adds the `Retry-After` header of [`poll_after_secs`](crate::azure::Knobs).
    fn with_poll_delay(&self, response: ApiResponse) -> ApiResponse {
        match self.engine.core.knobs.poll_after_secs {
            None => response,
            Some(seconds) => response.header("retry-after", seconds.to_string()),
        }
    }
}

/// Polls an operation: `InProgress`, `Succeeded` or `Failed`, with the error of a failed one.
///
/// # Errors
///
/// 404 `NotFound` for an operation that is unknown, has expired, or belongs to another subscription
/// or provider.
pub(super) fn get(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.engine.core.records_read += 1;
    let name = context.request.name(3);
    let task = context.engine.task(name);
    let matches = |task: &&Task| {
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        same(&task.subscription, context.request.subscription())
            && same(task.provider, context.request.name(1))
    };
    let task = task
        .filter(matches)
        .filter(|_| !context.injected.operation_expired);
    let Some(task) = task else {
        let message = format!("The operation '{name}' was not found.");
        return Err(Refusal::new(404, "NotFound", message));
    };
    if context.request.param("monitor") == Some("true") {
        return monitor(context, task);
    }
    let mut document = json!({
        "startTime": context.engine.timestamp(task.started),
        "status": status(task),
        "name": task.id,
    });
    if let Some(ended) = task.ended {
        document["endTime"] = Value::String(context.engine.timestamp(ended));
    }
    if let Some(failure) = &task.failure {
        document["error"] = json!({ "code": failure.code, "message": failure.message });
    }
    let response = ApiResponse::document(&document);
    Ok(match task.ended {
        None => context.with_poll_delay(response),
        Some(_) => response,
    })
}

/// Polls the operation of a resource group by its location: 202 until it ended, then 200.
///
/// # Errors
///
/// 404 `NotFound` for an operation that is unknown, has expired or belongs to another subscription.
pub(super) fn get_result(context: &mut Context<'_>) -> Result<ApiResponse, Refusal> {
    context.engine.core.records_read += 1;
    let name = context.request.name(1);
    let subscription = context.request.subscription();
    let task = context.engine.task(name);
    let task = task.filter(|task| task.subscription.eq_ignore_ascii_case(subscription));
    let Some(task) = task.filter(|_| !context.injected.operation_expired) else {
        let message = format!("The operation '{name}' was not found.");
        return Err(Refusal::new(404, "NotFound", message));
    };
    match (task.ended, &task.failure) {
        (None, _) => {
            let response = ApiResponse::bare(202).header("location", context.result_url(task));
            Ok(context.with_poll_delay(response))
        }
        (Some(_), Some(failure)) => Err(Refusal::new(
            409,
            failure.code.clone(),
            failure.message.clone(),
        )),
        (Some(_), None) => Ok(ApiResponse::bare(200)),
    }
}

/// Returns the status of an operation as documents contain it.
const fn status(task: &Task) -> &'static str {
    match (task.ended, &task.failure) {
        (None, _) => "InProgress",
        (Some(_), None) => "Succeeded",
        (Some(_), Some(_)) => "Failed",
    }
}

/// Returns the result of an operation: 202 while it is in progress, then 200, or 204 after a
/// deletion.
///
/// # Errors
///
/// 409 with the failure's code if the operation failed.
fn monitor(context: &Context<'_>, task: &Task) -> Result<ApiResponse, Refusal> {
    if task.ended.is_none() {
        let response = ApiResponse::bare(202).header("location", context.url(task, true));
        return Ok(context.with_poll_delay(response));
    }
    if let Some(failure) = &task.failure {
        return Err(Refusal::new(
            409,
            failure.code.clone(),
            failure.message.clone(),
        ));
    }
    let status = if task.work.removes() { 204 } else { 200 };
    Ok(ApiResponse::bare(status))
}
