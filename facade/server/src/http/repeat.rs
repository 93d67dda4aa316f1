//! Carries out a request with an idempotency key once, and repeats its response.

use std::{collections::BTreeSet, sync::OnceLock};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{caller::Caller, extract};
use crate::{
    document,
    failure::Failure,
    idempotency::{self, Claim, Stored},
    router,
    service::Service,
};

/// The headers of a response that are repeated.
const KEPT: [HeaderName; 3] = [header::CONTENT_TYPE, header::ETAG, header::LOCATION];
/// Marks a repeated response.
const REPEATED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The layer around every handler. Requests without a key pass.
pub(crate) async fn once(
    State(service): State<Service>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    match run(&service, &caller, request, next).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

/// Whether the address of a request has its method.
fn is_declared(request: &Request) -> bool {
    static DECLARED: OnceLock<BTreeSet<(String, String)>> = OnceLock::new();
    let declared = DECLARED.get_or_init(|| document::methods(&router::document()));
    let address = request.extensions().get::<MatchedPath>();
    address.is_some_and(|address| {
        let wanted = (address.as_str().to_owned(), request.method().to_string());
        declared.contains(&wanted)
    })
}

async fn run(
    service: &Service,
    caller: &Caller,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    // What the address does not have is refused as such, whatever the headers say.
    if !is_declared(&request) {
        return Ok(next.run(request).await);
    }
    let Some(key) = idempotency::key_of(request.headers())? else {
        return Ok(next.run(request).await);
    };
    if request.method() != Method::POST {
        let problem = "only creates and verbs, which are POST requests, have a key: leave it out";
        return Err(Failure::invalid("Idempotency-Key", problem));
    }
    let (parts, body) = request.into_parts();
    let bytes = extract::read(body, service).await?;
    let target = parts
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let fingerprint = idempotency::fingerprint(parts.method.as_str(), target, &bytes);
    match service
        .idempotency
        .claim(caller.0.actor(), &key, fingerprint)
        .await?
    {
        Claim::Repeat(stored) => Ok(repeat(stored)),
        Claim::Run(claimed) => {
            let response = next
                .run(Request::from_parts(parts, Body::from(bytes)))
                .await;
            let (response, stored) = keep(response).await?;
            if let Err(error) = service.idempotency.finish(&claimed, stored).await {
                tracing::warn!(%error, "the response to a request with an idempotency key is not recorded; a repeated request is carried out again");
            }
            Ok(response)
        }
    }
}

/// Reads a response, so that it can be stored. One that failed is not stored: nothing was changed, and a retry may succeed.
async fn keep(response: Response) -> Result<(Response, Option<Stored>), Failure> {
    if !response.status().is_success() {
        return Ok((response, None));
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|error| Failure::internal(error.to_string()))?;
    let headers = KEPT.iter().filter_map(|name| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.to_string(), value.to_owned()))
    });
    let stored = Stored {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&bytes).into_owned(),
    };
    Ok((Response::from_parts(parts, Body::from(bytes)), Some(stored)))
}

fn repeat(stored: Stored) -> Response {
    let status = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK);
    let mut response = (status, stored.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in stored.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPEATED, HeaderValue::from_static("true"));
    response
}
