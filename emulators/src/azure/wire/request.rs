//! Parses a request: authentication, API version, operation, names, query and document.
//!
//! Owns every refusal that happens before a request counts as a call: no token (401), no or an
//! invalid API version (400), an operation that is not emulated (501), and an invalid document
//! (400). Such a request is not counted and cannot have a fault injected.

use std::collections::BTreeMap;

use hyper::header;
use serde_json::Value;

use super::{
    id::{Id, Kind},
    not_emulated::not_emulated,
    operation::Operation,
    route::RouteMatch,
};
use crate::{
    azure::{error::Refusal, knobs::Knobs},
    server::{BodyError, HttpRequest},
};

/// How many levels of a document are recorded in a [`CallRecord`](crate::azure::CallRecord).
const DEPTH: usize = 8;

/// A parsed request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The operation. `None` only in a default value, which tests use.
    pub(crate) operation: Option<Operation>,
    /// Scheme, host and port that the client used, for the URLs of responses.
    pub(crate) origin: String,
    /// The path as it was sent.
    pub(crate) path: String,
    /// The names in the path: the subscription, then the resource group if the path has one, then
    /// the other names.
    pub(crate) names: Vec<String>,
    /// The query parameters. Names are in lower case.
    pub(crate) query: BTreeMap<String, String>,
    /// The `If-Match` header.
    pub(crate) if_match: Option<String>,
    /// The `If-None-Match` header.
    pub(crate) if_none_match: Option<String>,
    /// The JSON document, if the request has a body that is not blank.
    pub(crate) body: Option<Value>,
}

impl Request {
    /// Parses a request.
    ///
    /// The checks run in this order: token, API version, path and method, subscription, document.
    /// The console blobs and the cloud's endpoints need no token, no version and no subscription.
    ///
    /// # Errors
    ///
    /// Returns the refusal of the first check that fails; see the functions below for the codes.
    pub(crate) fn read(request: &HttpRequest, knobs: &Knobs) -> Result<Self, Refusal> {
        let path = request.uri.path();
        // Empty segments do not count: az sends paths with two slashes in a row.
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(percent_decode)
            .collect();
        let found = Operation::route(request.method.as_str(), &segments);
        let public = matches!(&found, RouteMatch::Operation(operation, _) if operation.is_public());
        if !public {
            check_token(request, knobs)?;
        }
        let query = read_query(request.uri.query().unwrap_or_default());
        if !public {
            check_version(query.get("api-version").map(String::as_str))?;
        }
        let (operation, names) = match found {
            RouteMatch::Operation(operation, names) => (operation, names),
            RouteMatch::NotFound => {
                return Err(not_emulated(request.method.as_str(), &segments));
            }
        };
        if operation.has_subscription() {
            check_subscription(names.first().map_or("", String::as_str), knobs)?;
        }
        let text = |name| {
            let value = request.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        Ok(Self {
            operation: Some(operation),
            origin: format!("http://{}", text(header::HOST).unwrap_or_default()),
            path: path.to_owned(),
            names,
            query,
            if_match: text(header::IF_MATCH),
            if_none_match: text(header::IF_NONE_MATCH),
            body: read_body(request)?,
        })
    }

    /// Returns the subscription, which is the first name of the path.
    pub(crate) fn subscription(&self) -> &str {
        self.name(0)
    }

    /// Returns a name of the path by its index, or an empty text.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }

    /// Returns the id of the resource of this kind that the path names.
    pub(crate) fn id(&self, kind: Kind) -> Id {
        Id::new(kind, self.name(0), self.name(1), self.name(2))
    }

    /// Returns a query parameter. `name` is in lower case.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// Returns the requested API version.
    pub(crate) fn version(&self) -> &str {
        self.param("api-version").unwrap_or_default()
    }

    /// Returns the parameters as the call record contains them: path, query, preconditions, and the
    /// leaves of the document by their paths, without the administrator's password.
    pub(crate) fn recorded_parameters(&self) -> BTreeMap<String, String> {
        let mut recorded = self.query.clone();
        recorded.insert("path".to_owned(), self.path.clone());
        for (name, value) in [
            ("if-match", &self.if_match),
            ("if-none-match", &self.if_none_match),
        ] {
            recorded.extend(value.clone().map(|value| (name.to_owned(), value)));
        }
        if let Some(body) = &self.body {
            collect_leaves(body, "body", DEPTH, &mut recorded);
        }
        recorded
    }
}

/// Collects the leaves of a document by their paths. Omits `adminPassword`, and cuts at `depth`.
fn collect_leaves(
    value: &Value,
    path: &str,
    depth: usize,
    recorded: &mut BTreeMap<String, String>,
) {
    let deeper = depth.saturating_sub(1);
    match value {
        Value::Object(members) if depth > 0 => {
            for (name, member) in members {
                if name != "adminPassword" {
                    collect_leaves(member, &format!("{path}.{name}"), deeper, recorded);
                }
            }
        }
        Value::Array(items) if depth > 0 => {
            for (index, item) in items.iter().enumerate() {
                collect_leaves(item, &format!("{path}.{index}"), deeper, recorded);
            }
        }
        Value::String(text) => {
            recorded.insert(path.to_owned(), text.clone());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            recorded.insert(path.to_owned(), value.to_string());
        }
    }
}

/// Checks the bearer token against [`Knobs::tokens`].
///
/// # Errors
///
/// 401 `AuthenticationFailed` without a bearer token; 401 `InvalidAuthenticationToken` for a token
/// that is not in the list. An empty list accepts every token.
fn check_token(request: &HttpRequest, knobs: &Knobs) -> Result<(), Refusal> {
    let Some(value) = request.headers.get(header::AUTHORIZATION) else {
        let message = "Authentication failed. The 'Authorization' header is missing.";
        return Err(Refusal::unauthenticated("AuthenticationFailed", message));
    };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
    });
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        let message =
            "Authentication failed. The 'Authorization' header is provided in an invalid format.";
        return Err(Refusal::unauthenticated("AuthenticationFailed", message));
    };
    if knobs.tokens.is_empty() || knobs.tokens.contains(token) {
        return Ok(());
    }
    let message = "The access token is invalid.";
    Err(Refusal::unauthenticated(
        "InvalidAuthenticationToken",
        message,
    ))
}

/// Checks that the API version is a date, optionally followed by `-preview`. Every date is
/// accepted.
///
/// # Errors
///
/// 400 `MissingApiVersionParameter` or 400 `InvalidApiVersionParameter`.
fn check_version(version: Option<&str>) -> Result<(), Refusal> {
    let Some(version) = version.filter(|version| !version.is_empty()) else {
        let message =
            "The api-version query parameter (?api-version=) is required for all requests.";
        return Err(Refusal::client("MissingApiVersionParameter", message));
    };
    let date = version
        .strip_suffix("-preview")
        .unwrap_or(version)
        .as_bytes();
    let is_valid = |(place, byte): (usize, &u8)| match place {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if date.len() == 10 && date.iter().enumerate().all(is_valid) {
        return Ok(());
    }
    let message = format!("The api-version '{version}' is invalid.");
    Err(Refusal::client("InvalidApiVersionParameter", message))
}

/// Checks the subscription against [`Knobs::subscriptions`]. An empty list accepts every
/// subscription.
///
/// # Errors
///
/// 404 `SubscriptionNotFound`.
fn check_subscription(subscription: &str, knobs: &Knobs) -> Result<(), Refusal> {
    if knobs.subscriptions.is_empty() || knobs.subscriptions.contains(subscription) {
        return Ok(());
    }
    let message = format!("The subscription '{subscription}' could not be found.");
    Err(Refusal::new(404, "SubscriptionNotFound", message))
}

/// Parses the query. Names become lower case; the last one of repeated names counts.
fn read_query(query: &str) -> BTreeMap<String, String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
        .collect()
}

/// Parses the body as JSON. A blank body is `None`.
///
/// # Errors
///
/// 400 `InvalidRequestContent` for invalid JSON, 413 `RequestContentTooLarge` for a body over 1
/// MiB, 408 `RequestTimeout` for a body that did not arrive.
fn read_body(request: &HttpRequest) -> Result<Option<Value>, Refusal> {
    match &request.body {
        Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Ok(None),
        Ok(bytes) => serde_json::from_slice(bytes)
            .map(Some)
            .map_err(|error| Refusal::content(&error.to_string())),
        Err(BodyError::TooLarge) => {
            let message = "The request content size exceeds the maximum size.";
            Err(Refusal::new(413, "RequestContentTooLarge", message))
        }
        Err(BodyError::Incomplete) => {
            let message = "The request did not arrive in time.";
            Err(Refusal::new(408, "RequestTimeout", message))
        }
    }
}

/// Decodes the percent encoding of a path segment. Invalid sequences are kept as they are.
fn percent_decode(segment: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), segment.as_bytes());
    while let [first, more @ ..] = rest {
        let digits = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn segments_are_decoded_and_bad_percents_kept() {
        assert_eq!(percent_decode("a%20b"), "a b");
        assert_eq!(percent_decode("%zz%2"), "%zz%2");
        assert_eq!(percent_decode("100%"), "100%");
    }

    #[test]
    fn versions_are_dates() {
        for good in ["2024-11-01", "2016-04-30-preview"] {
            assert!(check_version(Some(good)).is_ok());
        }
        let code = |version| check_version(version).unwrap_err().code;
        assert_eq!(code(None), "MissingApiVersionParameter");
        for bad in ["latest", "2024-1-01", "2024-11-01-beta", "2024x11x01"] {
            assert_eq!(code(Some(bad)), "InvalidApiVersionParameter");
        }
    }

    #[test]
    fn call_records_have_no_password() {
        let mut request = Request::default();
        let profile = json!({ "adminPassword": "secret", "adminUsername": "me" });
        request.body = Some(json!({ "tags": { "a": "b" }, "zones": ["1"], "p": profile }));
        let recorded = request.recorded_parameters();
        assert_eq!(recorded["body.tags.a"], "b");
        assert_eq!(recorded["body.zones.0"], "1");
        assert_eq!(recorded["body.p.adminUsername"], "me");
        assert!(!recorded.values().any(|value| value == "secret"));
    }
}
