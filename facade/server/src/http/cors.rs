//! Pages of other origins. Without named origins the service sends no header for them, so browsers refuse.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember what is permitted.
const REMEMBER: Duration = Duration::from_secs(600);

/// The layer for named origins, or `None` if there are none. Cookies are never permitted: tokens are sent in a header.
pub(crate) fn layer(origins: Vec<HeaderValue>) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let name = HeaderName::from_static;
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
        ])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_MATCH,
            name("idempotency-key"),
            name("last-event-id"),
            name("traceparent"),
        ])
        .expose_headers([
            header::ETAG,
            header::LOCATION,
            header::RETRY_AFTER,
            name("idempotency-replayed"),
            name("x-trace-id"),
        ])
        .max_age(REMEMBER);
    Some(cors)
}
