//! Events and metrics of what the layers do between a caller and a cloud.
//!
//! Owns their names, except those of whole calls, which [`Trace`](super::Trace) and
//! [`Metrics`](super::Metrics) emit. Without the features `trace` and `metrics` these functions do
//! nothing. They never change a result.
//!
//! | event | level | when |
//! | --- | --- | --- |
//! | `retrying call` | debug | a call failed and is sent again |
//! | `call not retried: the retry budget is empty` | warn | a retry was allowed by all other limits |
//! | `rate limit changed` | debug | the cloud throttled, or the rate recovered |
//! | `alternative skipped` | info | a launch continues with the next alternative, for the field `reason` |
//!
//! All events have the target `fleetwright` and the field `operation`.

#![cfg_attr(
    not(all(feature = "metrics", feature = "trace")),
    expect(unused_variables, reason = "only used by disabled features")
)]

use std::time::Duration;

use super::Request;
#[cfg(feature = "metrics")]
use super::metric_keys::Metric;
use crate::{LaunchRecord, ListItem, ProvisionError, Result};

/// Runs one attempt of a call.
pub(super) async fn attempt<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    count_attempt(request);
    #[cfg(feature = "trace")]
    return super::trace::attempt(request, number, sent, |result| result.as_ref().err()).await;
    #[cfg(not(feature = "trace"))]
    return sent.await;
}

/// Runs one attempt of a batch. Its span records the first error.
pub(super) async fn attempt_batch<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = Vec<Result<T>>> + Send,
) -> Vec<Result<T>> {
    count_attempt(request);
    #[cfg(feature = "trace")]
    return super::trace::attempt(request, number, sent, |results| {
        results.iter().find_map(|result| result.as_ref().err())
    })
    .await;
    #[cfg(not(feature = "trace"))]
    return sent.await;
}

/// Runs one attempt of a stream, up to its first item.
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

/// Runs the look-up of a launch whose outcome is unknown after its last attempt.
pub(super) async fn settle_launch(
    request: &Request<'_>,
    lookup: impl Future<Output = Result<LaunchRecord>> + Send,
) -> Result<LaunchRecord> {
    #[cfg(feature = "trace")]
    return super::trace::settle_launch(request, lookup).await;
    #[cfg(not(feature = "trace"))]
    return lookup.await;
}

fn count_attempt(request: &Request<'_>) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_attempts_total");
        super::metrics::count(&METRIC, request, None, 1);
    }
}

/// Reports that a call failed and is sent again as attempt `next` after `delay`.
pub(super) fn retrying(request: &Request<'_>, error: &ProvisionError, next: u32, delay: Duration) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_retries_total");
        let kind = ("kind", error.kind().as_str());
        super::metrics::count(&METRIC, request, Some(kind), 1);
    }
    #[cfg(feature = "trace")]
    {
        super::trace::record_attempt(next);
        tracing::debug!(
            target: "fleetwright",
            operation = request.operation().as_str(),
            attempt = next,
            delay_ms = super::trace::millis(delay),
            kind = error.kind().as_str(),
            effect = super::trace::effect(error),
            request_id = error.request_id(),
            "retrying call",
        );
    }
}

/// Reports that a call is not retried because the retry budget is empty.
pub(super) fn retry_budget_empty(request: &Request<'_>) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_retries_denied_total");
        super::metrics::count(&METRIC, request, None, 1);
    }
    #[cfg(feature = "trace")]
    tracing::warn!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        "call not retried: the retry budget is empty",
    );
}

/// Reports how long a call waited for its permit.
#[cfg(feature = "limit")]
pub(super) fn limit_wait(request: &Request<'_>, waited: Duration) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_limit_wait_seconds");
        super::metrics::record_histogram(&METRIC, request, waited.as_secs_f64());
    }
}

/// Reports the new rate of an operation.
#[cfg(feature = "limit")]
pub(super) fn rate_changed(request: &Request<'_>, calls_per_second: f64) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_limit_calls_per_second");
        super::metrics::gauge(&METRIC, request).set(calls_per_second);
    }
    #[cfg(feature = "trace")]
    tracing::debug!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        calls_per_second,
        "rate limit changed",
    );
}

/// Reports that one call is sent for `size` instances.
pub(super) fn batch_sent(request: &Request<'_>, size: usize) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_coalesced_batch_size");
        #[expect(clippy::cast_precision_loss, reason = "no batch has 2^52 instances")]
        super::metrics::record_histogram(&METRIC, request, size as f64);
    }
}

/// Why a launch continues with the next alternative.
#[derive(Clone, Copy)]
pub(super) enum FallbackReason {
    /// The cloud refused the launch for lack of capacity.
    Capacity,
    /// The cloud refused the launch because of a quota that another alternative may not need.
    Quota,
    /// A recent launch found no capacity or quota there, so none was sent.
    RecentShortage,
}

impl FallbackReason {
    #[cfg(any(feature = "metrics", feature = "trace"))]
    const fn as_str(self) -> &'static str {
        match self {
            Self::Capacity => "no_capacity",
            Self::Quota => "no_quota",
            Self::RecentShortage => "no_capacity_recently",
        }
    }
}

/// Reports that `alternative` was skipped.
pub(super) fn fallback(request: &Request<'_>, alternative: &str, reason: FallbackReason) {
    #[cfg(feature = "metrics")]
    {
        static METRIC: Metric = Metric::new("fleetwright_fallbacks_total");
        super::metrics::count(&METRIC, request, Some(("reason", reason.as_str())), 1);
    }
    #[cfg(feature = "trace")]
    tracing::info!(
        target: "fleetwright",
        operation = request.operation().as_str(),
        alternative,
        reason = reason.as_str(),
        "alternative skipped",
    );
}
