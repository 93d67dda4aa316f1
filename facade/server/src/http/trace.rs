//! The trace id, the log line and the headers of every response. It also turns failures and panics into problems.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use tracing::Instrument as _;

use super::caller::LoggedActor;
use crate::{failure::Failure, keys, traces, wire};

/// The header with the trace id.
const TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

/// The outermost layer.
pub(crate) async fn record(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let span = traces::span(&request, &route);
    let trace_id = traces::id(&span).unwrap_or_else(|| trace_id(&request));
    let actor = LoggedActor::default();
    request.extensions_mut().insert(actor.clone());
    let ran = AssertUnwindSafe(next.run(request)).catch_unwind();
    let ran = ran.instrument(span.clone()).await;
    let mut response =
        ran.unwrap_or_else(|_| Failure::internal("the handler panicked").into_response());
    let failure = response.extensions_mut().remove::<Failure>();
    let actor = actor.0.get().map(wire::actor);
    let (code, cause) = match failure {
        Some(failure) => {
            let (code, cause) = (failure.code, failure.cause.clone());
            let before = std::mem::replace(&mut response, failure.render(&trace_id));
            let kept = before.headers().iter().filter(|(name, _)| is_kept(name));
            for (name, value) in kept {
                response.headers_mut().append(name, value.clone());
            }
            (code, cause)
        }
        None => ("ok", None),
    };
    if method == Method::HEAD {
        *response.body_mut() = axum::body::Body::empty();
    }
    finish_headers(&mut response, &trace_id);
    let seconds = started.elapsed().as_secs_f64();
    let status = response.status().as_u16();
    traces::finish(&span, response.status());
    let labels = [
        ("method", method_label(&method).to_owned()),
        ("route", route),
        ("status", status.to_string()),
    ];
    metrics::counter!("fleetwright_http_requests_total", &labels).increment(1);
    metrics::histogram!("fleetwright_http_request_seconds", &labels[..2]).record(seconds);
    let actor = actor.as_deref().unwrap_or("-");
    match cause {
        Some(cause) => {
            tracing::warn!(%trace_id, %method, path, status, code, actor, seconds, cause, "request failed");
        }
        None => tracing::info!(%trace_id, %method, path, status, code, actor, seconds, "request"),
    }
    response
}

/// Whether a header of a failed response stays: those that layers within this one set.
fn is_kept(name: &HeaderName) -> bool {
    *name == header::ALLOW || *name == header::VARY || name.as_str().starts_with("access-control-")
}

/// The method as a label of metrics. A caller can invent methods without end, and each value of a label takes memory.
fn method_label(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    if known.contains(method) {
        method.as_str()
    } else {
        "other"
    }
}

/// The caller's trace id, if it sends a valid `traceparent` (W3C Trace Context), or a new one.
fn trace_id(request: &Request) -> String {
    let parent = request
        .headers()
        .get("traceparent")
        .and_then(|value| value.to_str().ok());
    let sent = parent.and_then(|parent| parent.split('-').nth(1));
    let is_valid = |id: &&str| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        id.len() == 32 && id.bytes().all(is_hex) && id.bytes().any(|byte| byte != b'0')
    };
    if let Some(id) = sent.filter(is_valid) {
        return id.to_owned();
    }
    let bytes: [u8; 16] = keys::random().unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn finish_headers(response: &mut Response, trace_id: &str) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(trace_id) {
        headers.insert(TRACE_ID, value);
    }
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in fixed {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}
