//! Operations: asked after until they are over, or for as long as patience lasts.
//!
//! Owns how often an operation is asked after. It decides nothing: what a failure means is its caller's.

use std::time::Duration;

use fleetwright_provider_support::poll::{deadline_after, poll_delays};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    client::{AzureClient, Progress},
    error::{AzureFailure as _, Failure},
    machine::Begun,
};

/// How an operation ended, as far as we know.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Succeeded,
    Failed(Box<Failure>),
    /// It goes on, or nobody can be asked: what became of it is seen by looking at the machine.
    Unknown,
}

/// Follows an operation to its end, past calls that fail.
///
/// Azure asks to be asked rarely, every ten seconds or more; every `tick` is what others do and get away with.
/// A link that leads to another host is not followed.
pub(crate) async fn followed(
    client: &AzureClient,
    begun: &Begun,
    tick: Duration,
    patience: Duration,
) -> Outcome {
    let Some(url) = &begun.url else {
        return Outcome::Unknown;
    };
    let deadline = deadline_after(patience);
    let mut wished = begun.retry_after.unwrap_or_default();
    for pause in poll_delays(tick) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Outcome::Unknown;
        }
        sleep(pause.max(wished.min(tick)).min(left)).await;
        match timeout_at(deadline + tick, client.progress(url)).await {
            Ok(Ok(Progress::Done)) => return Outcome::Succeeded,
            Ok(Ok(Progress::Failed(failure))) => return Outcome::Failed(Box::new(failure)),
            Ok(Ok(Progress::GoesOn(after))) => wished = after.unwrap_or_default(),
            // Asking again too soon makes it worse.
            Ok(Err(failure)) if failure.may_pass() => {
                let left = deadline.saturating_duration_since(Instant::now());
                sleep(failure.retry_after.unwrap_or_default().min(left)).await;
            }
            // It has expired, or leads elsewhere.
            Ok(Err(_)) | Err(_) => return Outcome::Unknown,
        }
    }
    Outcome::Unknown
}

/// How an operation is just now.
pub(crate) async fn asked(client: &AzureClient, begun: &Begun) -> Outcome {
    let Some(url) = &begun.url else {
        return Outcome::Unknown;
    };
    match client.progress(url).await {
        Ok(Progress::Done) => Outcome::Succeeded,
        Ok(Progress::Failed(failure)) => Outcome::Failed(Box::new(failure)),
        Ok(Progress::GoesOn(_)) | Err(_) => Outcome::Unknown,
    }
}
