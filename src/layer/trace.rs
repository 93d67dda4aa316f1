//! One span for each call, and below it one for each attempt.
//!
//! Owns the names of the spans' fields. Nothing of a config, of user data or of an answer is
//! recorded, and of a launch token only a digest.

use std::{borrow::Cow, task::Poll, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture};
use tracing::{Instrument as _, Span, field::Empty};

use super::{Layer, Request};
use crate::{
    BoxStream, Effect, ErrorKind, InstanceId, LaunchRecord, ListItem, ProvisionError, Result,
};

/// Puts every call into a span `fleetwright.call` of level info, with the target `fleetwright`.
///
/// | field | what |
/// | --- | --- |
/// | `otel.name`, `otel.kind` | provider and operation; `client` |
/// | `provider`, `operation` | as errors name them |
/// | `instance` | the instance that the call is about; of a batch, the first |
/// | `instances` | how many it is about, or how many a launch asks for |
/// | `token_hash` | a digest of the launch token, the same in every process |
/// | `attempt` | how many times the call was sent, if more than once; of callers that share one call, for whoever carried it on |
/// | `otel.status_code` | `OK` or `ERROR` |
/// | `kind`, `effect`, `native_code`, `request_id`, `error` | of the error; of a batch, of its first |
/// | `failed` | how many items of a batch failed |
///
/// Each attempt is a span `fleetwright.attempt` of level debug with the same fields of its own, and
/// the look-up of a launch that was given up a span `fleetwright.look_up` around its attempts.
/// Callers that share one call share its attempts: those are children of the span of whoever
/// carried the call on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

/// Makes a span of the fields above; the name and the level must be written where it is made.
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
            let answer = send().instrument(span.clone()).await;
            record(&span, &request, answer.as_ref().err());
            answer
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let span = span!(INFO, "fleetwright.call", &request);
            let answers = send(request.ids.to_vec()).instrument(span.clone()).await;
            record(
                &span,
                &request,
                answers.iter().find_map(|answer| answer.as_ref().err()),
            );
            span.record(
                "failed",
                answers.iter().filter(|answer| answer.is_err()).count(),
            );
            answers
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

/// Puts one attempt into a span of its own.
pub(super) async fn attempt<T>(
    request: &Request<'_>,
    number: u32,
    sent: impl Future<Output = T> + Send,
    error: impl Fn(&T) -> Option<&ProvisionError> + Send,
) -> T {
    let span = span!(DEBUG, "fleetwright.attempt", request);
    span.record("attempt", number);
    let answer = sent.instrument(span.clone()).await;
    record(&span, request, error(&answer));
    answer
}

/// Puts the look-up of a launch that was given up into a span of its own, which counts its attempts.
pub(super) async fn look_up(
    request: &Request<'_>,
    looked: impl Future<Output = Result<LaunchRecord>> + Send,
) -> Result<LaunchRecord> {
    let span = span!(INFO, "fleetwright.look_up", request);
    let answer = looked.instrument(span.clone()).await;
    record(&span, request, answer.as_ref().err());
    answer
}

/// Tells the call's own span which attempt it is at.
pub(super) fn note_attempt(number: u32) {
    let span = Span::current();
    // Without a layer of this kind it is a span of somebody else's.
    if span
        .metadata()
        .is_some_and(|of| of.target() == "fleetwright")
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

/// What happened, without a launch token.
fn message<'a>(request: &Request<'_>, error: &'a ProvisionError) -> Cow<'a, str> {
    let (kind, message) = (error.kind(), error.message());
    if matches!(kind, ErrorKind::TokenConflict | ErrorKind::TokenSpent) {
        // They name it, or that of an item of a batch.
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
    let asked = usize::try_from(request.count.get()).unwrap_or(usize::MAX);
    request.ids.len().max(asked)
}

fn token_hash(request: &Request<'_>) -> Option<String> {
    let digest = request.token?.derive("trace").simple().to_string();
    Some(digest[..16].to_owned())
}
