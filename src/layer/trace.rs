//! One span per call, and one child span per attempt.
//!
//! Owns the names of the spans and their fields. It never records a config, user data or a result,
//! and of a launch token only a digest.

use std::{borrow::Cow, task::Poll, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture};
use tracing::{Instrument as _, Span, field::Empty};

use super::{Layer, Request};
use crate::{
    BoxStream, Effect, ErrorKind, InstanceId, LaunchRecord, ListItem, ProvisionError, Result,
};

/// Creates a span `fleetwright.call` for every call, with level info and target `fleetwright`.
///
/// | field | value |
/// | --- | --- |
/// | `otel.name`, `otel.kind` | the provider and the operation; `client` |
/// | `provider`, `operation` | the same as in errors |
/// | `instance` | the instance of the call; the first one of a batch |
/// | `instances` | the number of instances of a batch or a launch |
/// | `token_hash` | a digest of the launch token, the same in every process |
/// | `attempt` | the number of attempts, if more than one; of callers that share a call, only on the span of the one that was polled |
/// | `otel.status_code` | `OK` or `ERROR` |
/// | `kind`, `effect`, `native_code`, `request_id`, `error` | from the error; from the first one of a batch |
/// | `failed` | the number of failed items of a batch |
///
/// Each attempt has a span `fleetwright.attempt` with level debug and the same fields. If a launch
/// ends with an unknown outcome, a span `fleetwright.settle_launch` contains the attempts to look it
/// up. Callers that share a call share its attempts, whose spans are children of the span of the
/// caller that was polled.
///
/// ```
/// use fleetwright::layer::{Layered, Trace};
/// use fleetwright_memory::MemoryCloud;
///
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), Trace);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

/// Creates a span with the fields above. A macro, because name and level must be constants.
macro_rules! span {
    ($level:ident, $name:literal, $request:expr) => {{
        let request = $request;
        let (operation, provider) = (request.operation().as_str(), request.call.provider());
        tracing::span!(
            target: "fleetwright",
            tracing::Level::$level,
            $name,
            otel.name = format_args!("{provider} {operation}"),
            otel.kind = "client",
            otel.status_code = Empty,
            provider,
            operation,
            instance = request.ids.first().map(InstanceId::as_str),
            instances = instances(request),
            token_hash = token_hash(request),
            attempt = Empty,
            kind = Empty,
            effect = Empty,
            native_code = Empty,
            request_id = Empty,
            error = Empty,
            failed = Empty,
        )
    }};
}

impl Layer for Trace {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let span = span!(INFO, "fleetwright.call", &request);
            let result = async { send().await }.instrument(span.clone()).await;
            record(&span, &request, result.as_ref().err());
            result
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let span = span!(INFO, "fleetwright.call", &request);
            let results = async { send(Cow::Borrowed(request.ids)).await };
            let results = results.instrument(span.clone()).await;
            let first_error = results.iter().find_map(|result| result.as_ref().err());
            record(&span, &request, first_error);
            let failed = results.iter().filter(|result| result.is_err()).count();
            span.record("failed", failed);
            results
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let span = span!(INFO, "fleetwright.call", &request);
        let mut items = span.in_scope(open);
        let mut ended = false;
        let items = futures_util::stream::poll_fn(move |context| {
            let item = span.in_scope(|| items.poll_next_unpin(context));
            let end = match &item {
                Poll::Ready(Some(Err(error))) => Some(Some(error)),
                Poll::Ready(None) => Some(None),
                Poll::Ready(Some(Ok(_))) | Poll::Pending => None,
            };
            if let (Some(error), false) = (end, ended) {
                ended = true;
                record(&span, &request, error);
            }
            item
        });
        items.boxed()
    }
}

/// Runs one attempt in its own span.
pub(super) async fn attempt<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = T> + Send,
    error: impl Fn(&T) -> Option<&ProvisionError> + Send,
) -> T {
    let span = span!(DEBUG, "fleetwright.attempt", request);
    span.record("attempt", number);
    let result = sent.instrument(span.clone()).await;
    record(&span, request, error(&result));
    result
}

/// Runs the look-up of a launch whose outcome is unknown in its own span.
pub(super) async fn settle_launch(
    request: &Request<'_>,
    lookup: impl Future<Output = Result<LaunchRecord>> + Send,
) -> Result<LaunchRecord> {
    let span = span!(INFO, "fleetwright.settle_launch", request);
    let result = lookup.instrument(span.clone()).await;
    record(&span, request, result.as_ref().err());
    result
}

/// Records the attempt number on the span of the call.
pub(super) fn record_attempt(number: u32) {
    let span = Span::current();
    // Without a `Trace` layer, the current span belongs to the caller.
    if span
        .metadata()
        .is_some_and(|metadata| metadata.target() == "fleetwright")
    {
        span.record("attempt", number);
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn effect(error: &ProvisionError) -> &'static str {
    match error.effect() {
        Effect::None => "none",
        Effect::Done => "done",
        Effect::Unknown => "unknown",
    }
}

fn record(span: &Span, request: &Request<'_>, error: Option<&ProvisionError>) {
    let Some(error) = error else {
        span.record("otel.status_code", "OK");
        return;
    };
    span.record("otel.status_code", "ERROR");
    span.record("kind", error.kind().as_str());
    span.record("effect", effect(error));
    span.record("error", &*message(request, error));
    if let Some(code) = error.native_code() {
        span.record("native_code", code);
    }
    if let Some(id) = error.request_id() {
        span.record("request_id", id);
    }
}

/// Returns the error's message with the launch token replaced by its digest.
fn message<'a>(request: &Request<'_>, error: &'a ProvisionError) -> Cow<'a, str> {
    let (kind, message) = (error.kind(), error.message());
    if matches!(kind, ErrorKind::TokenConflict | ErrorKind::TokenSpent) {
        // Their messages contain the token, or that of an item of a batch.
        return Cow::Borrowed(kind.as_str());
    }
    match (request.token, token_hash(request)) {
        (Some(token), Some(hash)) if message.contains(token.as_str()) => {
            Cow::Owned(message.replace(token.as_str(), &hash))
        }
        _ => Cow::Borrowed(message),
    }
}

fn instances(request: &Request<'_>) -> usize {
    let launched = usize::try_from(request.count.get()).unwrap_or(usize::MAX);
    request.ids.len().max(launched)
}

fn token_hash(request: &Request<'_>) -> Option<String> {
    let digest = request.token?.derive("trace").simple().to_string();
    Some(digest[..16].to_owned())
}
