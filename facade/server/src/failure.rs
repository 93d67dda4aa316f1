//! Why a request fails, as the caller learns it: a status, a code, a sentence. Nothing internal is ever put into one.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use fleetwright_api::{Plan, Problem};

/// A request that failed. [`render`](Self::render) turns it into a response once the request's trace id is known.
#[derive(Clone, Debug)]
pub(crate) struct Failure(Box<Parts>);

/// What a failure has. In a box, so that results stay small.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) plan: Option<Plan>,
    pub(crate) existing: Option<String>,
    /// Whether the request may have been carried out although it failed.
    pub(crate) may_be_done: bool,
    /// For the log alone.
    pub(crate) cause: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            code,
            detail: detail.into(),
            retry_after: None,
            plan: None,
            existing: None,
            may_be_done: false,
            cause: None,
            headers: Vec::new(),
        }))
    }

    /// A malformed field, parameter or header.
    pub(crate) fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        let detail = format!("{field}: {problem}");
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    /// A field that fits the schema, with a value that is not possible.
    pub(crate) fn impossible(field: &str, problem: impl std::fmt::Display) -> Self {
        let detail = format!("{field}: {problem}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "unprocessable_content", detail)
    }

    /// Nobody is authenticated. The text is the same whatever is wrong with the token.
    pub(crate) fn unauthenticated() -> Self {
        let detail = "the request has no valid bearer token: send `Authorization: Bearer` with one that is not expired";
        Self::new(StatusCode::UNAUTHORIZED, "access_denied", detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// A token that is refused. The reason is only logged.
    pub(crate) fn refused_token(reason: &str) -> Self {
        let mut failure = Self::unauthenticated();
        failure.cause = Some(format!("the token is refused: {reason}"));
        failure
    }

    /// Too many requests, or too much at once.
    pub(crate) fn busy(status: StatusCode, detail: &str, retry_after: Duration) -> Self {
        let code = if status == StatusCode::TOO_MANY_REQUESTS {
            "too_many_requests"
        } else {
            "unavailable"
        };
        Self::new(status, code, detail).retry_after(retry_after)
    }

    /// A fault of this system. `cause` is only logged.
    pub(crate) fn internal(cause: impl Into<String>) -> Self {
        let detail = "the request failed inside this system; ask an operator, whose log has the cause under the trace id";
        let mut failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", detail);
        failure.cause = Some(cause.into());
        failure
    }

    /// The request was given up, or its last commit has no known outcome. Without advice to retry, which says that nothing was changed.
    pub(crate) fn may_be_done() -> Self {
        let detail = "the request may or may not have been carried out: read what it changes, then decide whether to send it again";
        let mut failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        failure.may_be_done = true;
        failure
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The delay in whole seconds, at least one.
    fn retry_seconds(&self) -> Option<u64> {
        let delay = self.retry_after?;
        Some(delay.as_secs() + u64::from(delay.subsec_nanos() > 0)).map(|seconds| seconds.max(1))
    }

    /// The response, with the trace id of its request.
    pub(crate) fn render(self, trace_id: &str) -> Response {
        let retry_after = self.retry_seconds();
        let parts = *self.0;
        let problem = Problem {
            r#type: format!("/docs#{}", parts.code),
            title: title(parts.code).to_owned(),
            status: parts.status.as_u16(),
            code: parts.code.to_owned(),
            detail: parts.detail,
            trace_id: trace_id.to_owned(),
            retry_after,
            plan: parts.plan,
            existing_id: parts.existing,
        };
        let mut response = (parts.status, Json(problem)).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        headers.extend(parts.headers);
        response
    }
}

impl Deref for Failure {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

/// Leaves the failure in the response, for the layer that knows the trace id.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Every code, with its meaning in words.
pub(crate) const CODES: [(&str, &str); 17] = [
    (
        "invalid_request",
        "The request is malformed, or names something that is not offered",
    ),
    ("access_denied", "The request has no valid token"),
    (
        "forbidden",
        "A permission is missing, or a quota would be exceeded",
    ),
    (
        "not_found",
        "It does not exist, or is not visible to the caller",
    ),
    (
        "method_not_allowed",
        "The address does not have this method",
    ),
    ("conflict", "The present state does not permit it"),
    (
        "consent_needed",
        "The change loses data or addresses, and the caller did not consent",
    ),
    (
        "precondition_failed",
        "It was changed since the caller read it",
    ),
    ("gone", "The changes since then are no longer kept"),
    ("request_entity_too_large", "The body is too large"),
    ("unsupported_media_type", "The body is not JSON"),
    (
        "unprocessable_content",
        "The request is well-formed, but not possible",
    ),
    ("too_many_requests", "The caller sends too many requests"),
    ("request_timeout", "The body did not arrive in time"),
    ("server_error", "A fault of this system"),
    (
        "not_implemented",
        "The cloud of the region does not support it",
    ),
    ("unavailable", "Not possible now; retry"),
];

fn title(code: &str) -> &'static str {
    let found = CODES.iter().find(|(known, _)| *known == code);
    found.map_or("The request failed", |(_, title)| title)
}
