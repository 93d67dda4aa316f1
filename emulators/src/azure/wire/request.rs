//! A request that was understood: who asks, for what, with which document.
//!
//! Owns everything that is refused before it counts as a call: no token, no version, no such path,
//! no JSON.

use std::collections::BTreeMap;

use hyper::header;
use serde_json::Value;

use super::{
    id::{Id, Kind},
    operation::{Operation, RouteMatch},
};
use crate::{
    azure::{error::Refusal, knobs::Knobs},
    server::{BodyError, HttpRequest},
};

/// How deep a document's parameters are shown in the record of a call.
const DEPTH: usize = 8;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub(crate) operation: Option<Operation>,
    /// Scheme, host and port, as the client has them.
    pub(crate) origin: String,
    pub(crate) path: String,
    /// What the path names: the subscription, then the group if it has one, then names.
    pub(crate) names: Vec<String>,
    /// The query, with its names in small letters.
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) body: Option<Value>,
}

impl Request {
    /// Understands a request, or refuses it.
    pub(crate) fn read(request: &HttpRequest, knobs: &Knobs) -> Result<Self, Refusal> {
        let path = request.uri.path();
        let segments: Vec<String> = path
            .trim_matches('/')
            .split('/')
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
            RouteMatch::OtherMethod => return Err(method_not_allowed(request.method.as_str())),
            RouteMatch::NotFound => return Err(unknown_path(&segments)),
        };
        if !public {
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

    /// The subscription.
    pub(crate) fn subscription(&self) -> &str {
        self.name(0)
    }

    /// A name of the path, by its place.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }

    /// The resource of this kind that the path names.
    pub(crate) fn id(&self, kind: Kind) -> Id {
        Id::new(kind, self.name(0), self.name(1), self.name(2))
    }

    /// A parameter of the query.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// The version that was asked for.
    pub(crate) fn version(&self) -> &str {
        self.param("api-version").unwrap_or_default()
    }

    /// Its parameters as its record shows them: path, query, and the document's leaves by their
    /// paths.
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
            leaves(body, "body", DEPTH, &mut recorded);
        }
        recorded
    }
}

/// The leaves of a document, without passwords.
fn leaves(value: &Value, path: &str, depth: usize, recorded: &mut BTreeMap<String, String>) {
    let deeper = depth.saturating_sub(1);
    match value {
        Value::Object(members) if depth > 0 => {
            for (name, member) in members {
                if name != "adminPassword" {
                    leaves(member, &format!("{path}.{name}"), deeper, recorded);
                }
            }
        }
        Value::Array(items) if depth > 0 => {
            for (place, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}.{place}"), deeper, recorded);
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

fn check_subscription(subscription: &str, knobs: &Knobs) -> Result<(), Refusal> {
    if knobs.subscriptions.is_empty() || knobs.subscriptions.contains(subscription) {
        return Ok(());
    }
    let message = format!("The subscription '{subscription}' could not be found.");
    Err(Refusal::new(404, "SubscriptionNotFound", message))
}

fn method_not_allowed(method: &str) -> Refusal {
    let message = format!("The HTTP method '{method}' is not supported for the resource.");
    Refusal::new(405, "MethodNotAllowed", message)
}

fn unknown_path(segments: &[String]) -> Refusal {
    let after = segments
        .iter()
        .skip_while(|segment| !segment.eq_ignore_ascii_case("providers"));
    let mut after = after.skip(1);
    match (after.next(), after.next()) {
        (Some(provider), Some(kind)) => {
            let message = format!(
                "The resource type '{kind}' could not be found in the namespace '{provider}'."
            );
            Refusal::new(404, "InvalidResourceType", message)
        }
        _ => {
            let message = "The request did not have a subscription or a valid tenant level resource provider.";
            Refusal::new(404, "MissingSubscription", message)
        }
    }
}

fn read_query(query: &str) -> BTreeMap<String, String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
        .collect()
}

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

/// A segment without its percent signs.
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
