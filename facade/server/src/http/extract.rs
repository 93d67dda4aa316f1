//! Reading what a request has: a body, parameters, ids, conditions. Whatever is malformed is refused with its name.

use std::{fmt::Display, str::FromStr, time::Duration};

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{failure::Failure, service::Service};

/// A body of JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Service> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Service) -> Result<Self, Failure> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let detail = "Content-Type: expected application/json";
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                detail,
            ));
        }
        let bytes = read(request.into_body(), service).await?;
        let parsed =
            serde_json::from_slice(&bytes).map_err(|error| Failure::invalid("body", error))?;
        Ok(Self(parsed))
    }
}

/// Reads a body, up to the limits of size and time.
pub(crate) async fn read(body: axum::body::Body, service: &Service) -> Result<Bytes, Failure> {
    let limit = service.limits.body;
    let read = axum::body::to_bytes(body, limit);
    match tokio::time::timeout(service.limits.body_time, read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let detail = format!(
                "the body is larger than {limit} bytes, or was cut off: send a smaller one"
            );
            Err(Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "request_entity_too_large",
                detail,
            ))
        }
        Err(_) => {
            let detail = "the body did not arrive in time: send it faster";
            Err(Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                "request_timeout",
                detail,
            ))
        }
    }
}

/// The parameters of the query. Unknown ones are refused.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Service> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, Failure> {
        let query = parts.uri.query().unwrap_or_default();
        // Otherwise a filter without a value would be none, and the list would be of everything.
        let empty = query
            .split('&')
            .find_map(|pair| match pair.split_once('=') {
                Some((name, "")) => Some(name),
                Some(_) => None,
                None => Some(pair).filter(|pair| !pair.is_empty()),
            });
        if let Some(name) = empty {
            let name: String = name.chars().take(80).collect();
            return Err(Failure::invalid(
                "query",
                format!("{name:?} has no value: give it one, or leave it out"),
            ));
        }
        let parsed = serde_html_form::from_str(query);
        parsed
            .map(Self)
            .map_err(|error| Failure::invalid("query", error))
    }
}

/// For operations without parameters.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

/// The variable parts of the path, by name.
pub(crate) struct Path(Vec<(String, String)>);

impl Path {
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Failure> {
        let found = self.0.iter().find(|(known, _)| known == name);
        let text = found.map(|(_, text)| text.as_str()).unwrap_or_default();
        text.parse().map_err(|error| Failure::invalid(name, error))
    }
}

impl FromRequestParts<Service> for Path {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, Failure> {
        let params = RawPathParams::from_request_parts(parts, service).await;
        let params = params.map_err(|_| Failure::invalid("path", "expected UTF-8"))?;
        let params = params
            .iter()
            .map(|(name, text)| (name.to_owned(), text.to_owned()));
        Ok(Self(params.collect()))
    }
}

/// A position in a list. Its text is opaque to callers.
pub(crate) fn limit(limit: Option<u32>) -> Result<u32, Failure> {
    match limit.unwrap_or(100) {
        limit @ 1..=500 => Ok(limit),
        _ => Err(Failure::invalid("limit", "expected 1 to 500")),
    }
}

/// Whether `If-Match` permits a write of a record with this tag.
pub(crate) fn check_if_match(headers: &HeaderMap, etag: &str) -> Result<(), Failure> {
    let mut values = headers.get_all(header::IF_MATCH).iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    if tags.map(str::trim).any(|tag| tag == "*" || tag == etag) {
        return Ok(());
    }
    let detail = "If-Match: it was changed since it was read: read it again";
    Err(Failure::new(
        StatusCode::PRECONDITION_FAILED,
        "precondition_failed",
        detail,
    ))
}

/// Refuses `If-Match` where it would be ignored.
pub(crate) fn no_if_match(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key(header::IF_MATCH) {
        return Err(Failure::invalid(
            "If-Match",
            "this operation has no condition: leave it out",
        ));
    }
    Ok(())
}

/// A JSON response with a status.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    (status, Json(body)).into_response()
}

/// Adds a header.
pub(crate) fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// A duration of a parameter in whole seconds.
pub(crate) fn seconds(name: &str, seconds: Option<u64>, most: u64) -> Result<Duration, Failure> {
    match seconds.unwrap_or(most) {
        seconds if seconds <= most => Ok(Duration::from_secs(seconds)),
        _ => Err(Failure::invalid(
            name,
            format!("expected 0 to {most} seconds"),
        )),
    }
}
