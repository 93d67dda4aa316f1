//! Counters, gauges and histograms of calls, through the `metrics` facade.
//!
//! Owns their names and labels. The program installs a recorder of its choice; without one, metrics
//! cost next to nothing. Labels never contain ids, tokens or messages.

use std::{borrow::Cow, collections::BTreeMap, task::Poll};

use futures_util::{StreamExt as _, future::BoxFuture};
use metrics::{Key, Level, Metadata, with_recorder};
use tokio::time::Instant;

use super::{
    Layer, Request,
    metric_keys::{Metric, StaticLabel},
};
use crate::{BoxStream, InstanceId, ListItem, Result};

/// Measures every call.
///
/// All metrics have the labels `provider` and `operation`.
///
/// | name | kind | meaning |
/// | --- | --- | --- |
/// | `fleetwright_calls_total` | counter | calls that ended; `outcome` is `ok`, the error kind, or `dropped` |
/// | `fleetwright_call_duration_seconds` | histogram | how long the caller waited |
/// | `fleetwright_calls_in_flight` | gauge | calls in flight |
/// | `fleetwright_batch_items_total` | counter | items of batch calls, by `outcome` |
///
/// The other layers emit these, if they are present:
///
/// | name | kind | meaning |
/// | --- | --- | --- |
/// | `fleetwright_attempts_total` | counter | attempts that [`Retry`](super::Retry) sent |
/// | `fleetwright_retries_total` | counter | attempts that were retries, by the `kind` of the error before |
/// | `fleetwright_retries_denied_total` | counter | retries that the empty retry budget prevented |
/// | `fleetwright_limit_wait_seconds` | histogram | how long calls waited for a permit |
/// | `fleetwright_limit_calls_per_second` | gauge | the rate limit, set whenever it changes |
/// | `fleetwright_coalesced_batch_size` | histogram | instances in one call of [`Coalesce`](super::Coalesce) |
/// | `fleetwright_fallbacks_total` | counter | alternatives that were skipped; `reason` is `no_capacity` or `no_quota`, or `no_capacity_recently` if no call was sent |
///
/// ```
/// use fleetwright::layer::{Layered, Metrics};
/// use fleetwright_memory::MemoryCloud;
///
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), Metrics);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Metrics;

impl Layer for Metrics {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let mut measurement = Measurement::start(request);
            let result = send().await;
            measurement.outcome = outcome(&result);
            result
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let mut measurement = Measurement::start(request.clone());
            let results = send(Cow::Borrowed(request.ids)).await;
            let failed = results.iter().find(|result| result.is_err());
            measurement.outcome = failed.map_or("ok", outcome);
            count_items(&request, &results);
            results
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let mut measurement = Some(Measurement::start(request));
        let mut items = open();
        let items = futures_util::stream::poll_fn(move |context| {
            let item = items.poll_next_unpin(context);
            let end = match &item {
                Poll::Ready(Some(Err(error))) => Some(error.kind().as_str()),
                Poll::Ready(None) => Some("ok"),
                Poll::Ready(Some(Ok(_))) | Poll::Pending => None,
            };
            if let Some(outcome) = end {
                // The call has ended, although the caller may keep the stream.
                if let Some(mut measurement) = measurement.take() {
                    measurement.outcome = outcome;
                }
            }
            item
        });
        items.boxed()
    }
}

/// Counts the items of a batch, those of one outcome together.
fn count_items<T>(request: &Request<'_>, results: &[Result<T>]) {
    static ITEMS: Metric = Metric::usually("fleetwright_batch_items_total", ("outcome", "ok"));
    let mut counts = BTreeMap::new();
    for result in results {
        *counts.entry(outcome(result)).or_insert(0) += 1;
    }
    for (outcome, items) in counts {
        count(&ITEMS, request, Some(("outcome", outcome)), items);
    }
}

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The outcome of a call that was dropped before it returned.
const DROPPED: &str = "dropped";

fn outcome<T>(result: &Result<T>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.kind().as_str(),
    }
}

/// A call in flight. Dropping it records the end of the call, also if the call was dropped.
struct Measurement<'a> {
    request: Request<'a>,
    started: Instant,
    outcome: &'static str,
}

impl<'a> Measurement<'a> {
    fn start(request: Request<'a>) -> Self {
        in_flight(&request).increment(1);
        Self {
            request,
            started: Instant::now(),
            outcome: DROPPED,
        }
    }
}

impl Drop for Measurement<'_> {
    fn drop(&mut self) {
        static CALLS: Metric = Metric::usually("fleetwright_calls_total", ("outcome", "ok"));
        static DURATION: Metric = Metric::new("fleetwright_call_duration_seconds");
        let request = &self.request;
        in_flight(request).decrement(1);
        count(&CALLS, request, Some(("outcome", self.outcome)), 1);
        let duration = self.started.elapsed().as_secs_f64();
        record_histogram(&DURATION, request, duration);
    }
}

fn in_flight(request: &Request<'_>) -> metrics::Gauge {
    static METRIC: Metric = Metric::new("fleetwright_calls_in_flight");
    gauge(&METRIC, request)
}

/// Adds `value` to a counter.
pub(super) fn count(
    metric: &Metric,
    request: &Request<'_>,
    label: Option<StaticLabel>,
    value: u64,
) {
    let register = |key: &Key| with_recorder(|to| to.register_counter(key, &METADATA));
    metric.with_key(request, label, register).increment(value);
}

/// Adds `value` to a histogram.
pub(super) fn record_histogram(metric: &Metric, request: &Request<'_>, value: f64) {
    let register = |key: &Key| with_recorder(|to| to.register_histogram(key, &METADATA));
    metric.with_key(request, None, register).record(value);
}

/// Returns a gauge.
pub(super) fn gauge(metric: &Metric, request: &Request<'_>) -> metrics::Gauge {
    let register = |key: &Key| with_recorder(|to| to.register_gauge(key, &METADATA));
    metric.with_key(request, None, register)
}
