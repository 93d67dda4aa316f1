//! Long-running operations: polled until they end, or until a timeout.
//!
//! Owns how often an operation is polled. It decides nothing: the caller knows what a failure
//! means.
//!
//! An operation has a link, `Azure-AsyncOperation`, which expires after a while. That is not a
//! failure: the machine's own state shows the result. Links to another host are never followed,
//! because the request would carry the token.

use std::time::Duration;

use fleetwright_provider_support::poll::{deadline_after, poll_delays};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    client::{AzureClient, Progress},
    error::{AzureFailure as _, Failure},
    machine::StartedOperation,
};

/// How an operation ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It succeeded.
    Succeeded,
    /// It failed or was cancelled.
    Failed(Box<Failure>),
    /// It still runs, or its link has expired. A read of the machine shows the result.
    Unknown,
}

/// Polls an operation until it ends, and retries polls that fail.
///
/// The first poll does not wait for `Retry-After`, because the failures that a caller waits for come
/// early. After that, the pause is the one that Azure requests, but at most `interval`. A link to another
/// host is not followed.
///
/// Microsoft's "Compute throttling limits" allow 15 polls of operations per machine and minute, and 45
/// at once.
pub(crate) async fn await_operation(
    client: &AzureClient,
    operation: &StartedOperation,
    interval: Duration,
    timeout: Duration,
) -> Outcome {
    let Some(url) = &operation.url else {
        return Outcome::Unknown;
    };
    let deadline = deadline_after(timeout);
    let mut retry_after = Duration::ZERO;
    for pause in poll_delays(interval) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Outcome::Unknown;
        }
        sleep(pause.max(retry_after.min(interval)).min(left)).await;
        match timeout_at(deadline + interval, client.progress(url)).await {
            Ok(Ok(Progress::Done)) => return Outcome::Succeeded,
            Ok(Ok(Progress::Failed(failure))) => return Outcome::Failed(Box::new(failure)),
            Ok(Ok(Progress::Running(after))) => retry_after = after.unwrap_or_default(),
            // An earlier request would be throttled too, and would count.
            Ok(Err(failure)) if failure.may_pass() => {
                let left = deadline.saturating_duration_since(Instant::now());
                sleep(failure.retry_after.unwrap_or_default().min(left)).await;
            }
            // The link has expired, or leads to another host.
            Ok(Err(_)) | Err(_) => return Outcome::Unknown,
        }
    }
    Outcome::Unknown
}

/// Polls an operation once.
pub(crate) async fn poll_once(client: &AzureClient, operation: &StartedOperation) -> Outcome {
    let Some(url) = &operation.url else {
        return Outcome::Unknown;
    };
    match client.progress(url).await {
        Ok(Progress::Done) => Outcome::Succeeded,
        Ok(Progress::Failed(failure)) => Outcome::Failed(Box::new(failure)),
        Ok(Progress::Running(_)) | Err(_) => Outcome::Unknown,
    }
}
