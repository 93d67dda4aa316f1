//! Documents for browsers: pages, scripts and styles that are part of the program, with a policy that lets a page load nothing else.

use std::{borrow::Cow, future::Ready, future::ready};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

/// What a page may do: load its own files and call its own host. No inline script or style, no frame, no form that is sent, and no text that
/// becomes an element (trusted types).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// A document that is the same for everybody.
#[derive(Clone, Debug)]
pub(crate) struct Asset {
    kind: &'static str,
    text: Cow<'static, str>,
}

impl Asset {
    pub(crate) const fn new(kind: &'static str, text: &'static str) -> Self {
        Self {
            kind,
            text: Cow::Borrowed(text),
        }
    }

    /// A document that is written when the service starts.
    pub(crate) fn written(kind: &'static str, text: String) -> Self {
        Self {
            kind,
            text: Cow::Owned(text),
        }
    }

    /// The handler of the document.
    pub(crate) fn served(self) -> impl Fn(HeaderMap) -> Ready<Response> + Clone + Send + Sync {
        let etag = etag(&self.text);
        move |headers: HeaderMap| ready(self.respond(&headers, &etag))
    }

    /// The document, or 304 if the browser has it already. It always asks, so a new program is never used with old files.
    fn respond(&self, headers: &HeaderMap, etag: &HeaderValue) -> Response {
        let fixed = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-cache"),
            (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
            (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        ];
        let mut response = if is_known(headers, etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let kind = [(header::CONTENT_TYPE, self.kind)];
            (kind, self.text.clone()).into_response()
        };
        let sent = response.headers_mut();
        sent.insert(header::ETAG, etag.clone());
        for (name, value) in fixed {
            sent.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

fn etag(text: &str) -> HeaderValue {
    let digest = URL_SAFE_NO_PAD.encode(&Sha256::digest(text)[..16]);
    HeaderValue::from_str(&format!("\"{digest}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Whether `If-None-Match` has the tag. The comparison is weak, because a proxy that compresses weakens the tag (RFC 9110, 13.1.2).
fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|tag| tag == "*" || tag.trim_start_matches("W/").as_bytes() == etag.as_bytes())
}
