//! What layers tell of what they do between a caller and a cloud, as events and metrics.
//!
//! Owns the names of both but for those of whole calls, which [`Trace`](super::Trace) and
//! [`Metrics`](super::Metrics) tell. Without their features nothing is told and nothing is lost.

#![cfg_attr(
    not(all(feature = "metrics", feature = "trace")),
    expect(unused_variables, reason = "what nobody listens to")
)]

use std::time::Duration;

use super::Request;
use crate::{LaunchRecord, ListItem, ProvisionError, Result};

/// One attempt of a call.
pub(super) async fn attempt<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    count_attempt(request);
    #[cfg(feature = "trace")]
    return super::trace::attempt(request, number, sent, |answer| answer.as_ref().err()).await;
    #[cfg(not(feature = "trace"))]
    return sent.await;
}

/// One attempt of a batch; its first error stands for it.
pub(super) async fn attempt_batch<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = Vec<Result<T>>> + Send,
) -> Vec<Result<T>> {
    count_attempt(request);
    #[cfg(feature = "trace")]
    return super::trace::attempt(request, number, sent, |answers| {
        answers.iter().find_map(|answer| answer.as_ref().err())
    })
    .await;
    #[cfg(not(feature = "trace"))]
    return sent.await;
}

/// One attempt of a stream, as far as its first item.
pub(super) async fn attempt_stream(
    request: &Request<'_>,
    number: u32,
    first: impl Future<Output = Option<Result<ListItem>>> + Send,
) -> Option<Result<ListItem>> {
    count_attempt(request);
    #[cfg(feature = "trace")]
    return super::trace::attempt(request, number, first, |item| {
        item.as_ref().and_then(|item| item.as_ref().err())
    })
    .await;
    #[cfg(not(feature = "trace"))]
    return first.await;
}

/// The look-up of a launch that was given up.
pub(super) async fn look_up(
    request: &Request<'_>,
    looked: impl Future<Output = Result<LaunchRecord>> + Send,
) -> Result<LaunchRecord> {
    #[cfg(feature = "trace")]
    return super::trace::look_up(request, looked).await;
    #[cfg(not(feature = "trace"))]
    return looked.await;
}

fn count_attempt(request: &Request<'_>) {
    #[cfg(feature = "metrics")]
    super::metrics::count("fleetwright_attempts_total", request, &[]);
}

/// A call failed and is sent again as attempt `next` after `delay`.
pub(super) fn repeats(request: &Request<'_>, error: &ProvisionError, next: u32, delay: Duration) {
    #[cfg(feature = "metrics")]
    super::metrics::count(
        "fleetwright_retries_total",
        request,
        &[("kind", error.kind().as_str())],
    );
    #[cfg(feature = "trace")]
    {
        super::trace::note_attempt(next);
        tracing::debug!(
            target: "fleetwright",
            operation = request.operation().as_str(),
            attempt = next,
            delay_ms = super::trace::millis(delay),
            kind = error.kind().as_str(),
            effect = super::trace::effect(error),
            request_id = error.request_id(),
            "repeats a call",
        );
    }
}

/// A call that might be repeated is not, because the budget is spent.
pub(super) fn budget_is_spent(request: &Request<'_>) {
    #[cfg(feature = "metrics")]
    super::metrics::count("fleetwright_retries_denied_total", request, &[]);
    #[cfg(feature = "trace")]
    tracing::warn!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        "gives a call up: the retry budget is spent",
    );
}

/// A call has waited for its turn.
#[cfg(feature = "limit")]
pub(super) fn waited(request: &Request<'_>, waited: Duration) {
    #[cfg(feature = "metrics")]
    super::metrics::measure(
        "fleetwright_limit_wait_seconds",
        request,
        waited.as_secs_f64(),
    );
}

/// The rate of an operation is another from now on.
#[cfg(feature = "limit")]
pub(super) fn rate_is(request: &Request<'_>, per_second: f64) {
    #[cfg(feature = "metrics")]
    super::metrics::show("fleetwright_limit_rate", request, per_second);
    #[cfg(feature = "trace")]
    tracing::debug!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        per_second,
        "changes its rate",
    );
}

/// One call is about `size` instances.
pub(super) fn coalesced(request: &Request<'_>, size: usize) {
    #[cfg(feature = "metrics")]
    #[expect(clippy::cast_precision_loss, reason = "no batch has 2^52 instances")]
    super::metrics::measure("fleetwright_coalesced_calls", request, size as f64);
}

/// An alternative was left for the next one: `why` is `capacity`, or `remembered` without a call.
pub(super) fn falls_back(request: &Request<'_>, alternative: &str, why: &'static str) {
    #[cfg(feature = "metrics")]
    super::metrics::count("fleetwright_fallbacks_total", request, &[("why", why)]);
    #[cfg(feature = "trace")]
    tracing::info!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        alternative,
        why,
        "leaves an offering without capacity",
    );
}
