//! Counters and histograms of calls, through the `metrics` facade.
//!
//! Owns their names and labels. Which program collects them, and how, is the business of whoever
//! installs a recorder; without one they cost next to nothing.

use std::task::Poll;

use futures_util::{StreamExt as _, future::BoxFuture};
use metrics::{Label, SharedString};
use tokio::time::Instant;

use super::{Layer, Request};
use crate::{BoxStream, InstanceId, ListItem, Result};

/// Measures every call.
///
/// All have the labels `provider` and `operation`.
///
/// | name | kind | what |
/// | --- | --- | --- |
/// | `fleetwright_calls_total` | counter | calls that ended; `outcome` is `ok`, the kind of the error, or `dropped` |
/// | `fleetwright_call_duration_seconds` | histogram | how long its caller waited for it |
/// | `fleetwright_calls_in_flight` | gauge | calls under way |
/// | `fleetwright_batch_items_total` | counter | items of batches, by `outcome` |
///
/// The other layers tell, where they are:
///
/// | name | kind | what |
/// | --- | --- | --- |
/// | `fleetwright_attempts_total` | counter | calls that [`Retry`](super::Retry) sent down |
/// | `fleetwright_retries_total` | counter | how many of them were repetitions, by the `kind` of the error before |
/// | `fleetwright_retries_denied_total` | counter | repetitions for which the budget had nothing left |
/// | `fleetwright_limit_wait_seconds` | histogram | how long calls waited for their turn |
/// | `fleetwright_limit_rate` | gauge | calls a second that are let through, whenever that changes |
/// | `fleetwright_coalesced_calls` | histogram | how many instances a call of [`Coalesce`](super::Coalesce) was about |
/// | `fleetwright_fallbacks_total` | counter | alternatives that were left; `why` is `capacity`, or `remembered` |
#[derive(Clone, Copy, Debug, Default)]
pub struct Metrics;

impl Layer for Metrics {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let mut watch = Watch::begin(request);
            let answer = send().await;
            watch.outcome = outcome(&answer);
            answer
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let mut watch = Watch::begin(request.clone());
            let answers = send(request.ids.to_vec()).await;
            let failed = answers.iter().find(|answer| answer.is_err());
            watch.outcome = failed.map_or("ok", outcome);
            for answer in &answers {
                let label = [("outcome", outcome(answer))];
                count("fleetwright_batch_items_total", &request, &label);
            }
            answers
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let mut watch = Some(Watch::begin(request));
        let mut items = open();
        let items = futures_util::stream::poll_fn(move |context| {
            let item = items.poll_next_unpin(context);
            let end = match &item {
                Poll::Ready(Some(Err(error))) => Some(error.kind().as_str()),
                Poll::Ready(None) => Some("ok"),
                Poll::Ready(Some(Ok(_))) | Poll::Pending => None,
            };
            if let Some(outcome) = end {
                // It has ended, although the stream may be kept.
                if let Some(mut watch) = watch.take() {
                    watch.outcome = outcome;
                }
            }
            item
        });
        items.boxed()
    }
}

/// The outcome of a call that nobody waits for any more.
const DROPPED: &str = "dropped";

fn outcome<T>(answer: &Result<T>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(error) => error.kind().as_str(),
    }
}

/// A call under way; its end is told when this is dropped, whatever the end was.
struct Watch<'a> {
    request: Request<'a>,
    began: Instant,
    outcome: &'static str,
}

impl<'a> Watch<'a> {
    fn begin(request: Request<'a>) -> Self {
        in_flight(&request).increment(1);
        Self {
            request,
            began: Instant::now(),
            outcome: DROPPED,
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let (request, label) = (&self.request, [("outcome", self.outcome)]);
        in_flight(request).decrement(1);
        count("fleetwright_calls_total", request, &label);
        let waited = self.began.elapsed().as_secs_f64();
        measure("fleetwright_call_duration_seconds", request, waited);
    }
}

fn in_flight(request: &Request<'_>) -> metrics::Gauge {
    metrics::gauge!("fleetwright_calls_in_flight", labels(request, &[]))
}

/// Counts one of `name`.
pub(super) fn count(
    name: &'static str,
    request: &Request<'_>,
    more: &[(&'static str, &'static str)],
) {
    metrics::counter!(name, labels(request, more)).increment(1);
}

/// Adds `value` to the histogram `name`.
pub(super) fn measure(name: &'static str, request: &Request<'_>, value: f64) {
    metrics::histogram!(name, labels(request, &[])).record(value);
}

/// Shows `value` as the gauge `name`.
#[cfg(feature = "limit")]
pub(super) fn show(name: &'static str, request: &Request<'_>, value: f64) {
    metrics::gauge!(name, labels(request, &[])).set(value);
}

fn labels(request: &Request<'_>, more: &[(&'static str, &'static str)]) -> Vec<Label> {
    let provider = SharedString::from(request.call.provider().to_owned());
    let mut labels = vec![
        Label::new("provider", provider),
        Label::from_static_parts("operation", request.operation().as_str()),
    ];
    labels.extend(
        more.iter()
            .map(|(key, value)| Label::from_static_parts(key, value)),
    );
    labels
}
