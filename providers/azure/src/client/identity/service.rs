//! The transport of requests for tokens, and what a token service's responses mean.
//!
//! Owns which responses are permanent refusals and which pass. Only the error code of a response is
//! kept, never its text, which may quote a secret.
//!
//! | service | passes | is permanent |
//! | --- | --- | --- |
//! | both | no connection, no response, 408, 429, 5xx | any other status |
//! | authority | `temporarily_unavailable`, `server_error`, and the AADSTS codes of an outage | |
//! | metadata | 404 and 410, while the service is updated | 400: the machine has no such identity |
//!
//! Sources: "Microsoft Entra authentication and authorization error codes", and "How to use managed
//! identities for Azure resources on an Azure VM to acquire an access token", section "Error handling".

use std::{sync::OnceLock, time::Duration};

use azure_core_v1::{
    Result,
    error::{Error, ErrorKind},
    http::{
        AsyncRawResponse, Body, HttpClient, Method, Request, StatusCode, Url, headers::Headers,
    },
};
use fleetwright::async_trait;
use serde::Deserialize;

use crate::TokenFailure;

/// How long a connection may take. A metadata service is on the same machine or not there at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// AADSTS codes of an outage: a retryable error of another service, an exceeded budget, a directory
/// that is not available.
const OUTAGES: [u64; 3] = [90_006, 90_024, 90_033];

/// Whether the proxy of the environment is used. A metadata service must not be behind one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proxy {
    Environment,
    None,
}

/// An HTTP client that is built at its first use and kept.
#[derive(Debug)]
pub(super) struct LazyClient {
    proxy: Proxy,
    client: OnceLock<reqwest::Client>,
}

impl LazyClient {
    pub(super) const fn new(proxy: Proxy) -> Self {
        Self {
            proxy,
            client: OnceLock::new(),
        }
    }

    /// Returns the client. It follows no redirects, because their target would get the proof.
    pub(super) fn client(&self) -> std::result::Result<reqwest::Client, TokenFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        let builder = match self.proxy {
            Proxy::Environment => builder,
            Proxy::None => builder.no_proxy(),
        };
        let built = builder.build();
        let built = built
            .map_err(|_| TokenFailure::refused("the HTTP client for tokens cannot be built"))?;
        Ok(self.client.get_or_init(|| built).clone())
    }
}

/// The kind of a token service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Authority,
    Metadata,
}

/// A token service, for one request.
#[derive(Debug)]
pub(super) struct TokenService {
    pub(super) http: reqwest::Client,
    pub(super) kind: Kind,
    /// Requests to the origin of the first URL are sent to the second. `azure_identity` accepts
    /// only `https` authorities and one metadata service.
    pub(super) route: Option<(Url, Url)>,
    /// Whose token is requested, for messages.
    pub(super) who: String,
    /// What to check after a refusal, for messages.
    pub(super) settings: &'static str,
}

#[async_trait]
impl HttpClient for TokenService {
    async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
        // `Other` is the kind of error that azure_core does not retry.
        let sent = self.send(request).await;
        let (status, body) = sent.map_err(|failure| Error::new(ErrorKind::Other, failure))?;
        Ok(AsyncRawResponse::from_bytes(
            StatusCode::from(status),
            // Nothing reads them, and they would be logged.
            Headers::new(),
            body,
        ))
    }
}

impl TokenService {
    /// Sends a request. Every failure and every error response becomes a [`TokenFailure`].
    async fn send(
        &self,
        request: &Request,
    ) -> std::result::Result<(u16, bytes::Bytes), TokenFailure> {
        let url = self.target(request.url());
        let host = url.host_str().unwrap_or_default().to_owned();
        let method = if request.method() == Method::Post {
            reqwest::Method::POST
        } else {
            reqwest::Method::GET
        };
        let mut sent = self.http.request(method, url);
        for (name, value) in request.headers().iter() {
            sent = sent.header(name.as_str(), value.as_str());
        }
        if let Body::Bytes(body) = request.body() {
            sent = sent.body(body.clone());
        }
        let unreachable = |_| {
            let name = match self.kind {
                Kind::Authority => "authority",
                Kind::Metadata => "metadata service",
            };
            TokenFailure::unavailable(format!(
                "the {name} {host} does not respond, so there is no token for {}",
                self.who
            ))
        };
        let response = sent.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(unreachable)?;
        match refusal(self.kind, status, &body) {
            None => Ok((status, body)),
            Some(Refusal { passes, code }) => {
                let Self { who, settings, .. } = self;
                let code = code.map_or_else(|| format!("status {status}"), |code| code.name());
                let what = format!("{host} gave no token for {who} ({code})");
                Err(if passes {
                    TokenFailure::unavailable(format!("{what}; retry later"))
                } else {
                    let advice = advice(&code);
                    TokenFailure::refused(format!("{what}: {advice}; check {settings}"))
                })
            }
        }
    }

    /// Returns the URL that a request is sent to.
    fn target(&self, requested: &Url) -> Url {
        match &self.route {
            Some((from, to)) if from.origin() == requested.origin() => {
                let mut target = to.clone();
                target.set_path(requested.path());
                target.set_query(requested.query());
                target
            }
            _ => requested.clone(),
        }
    }
}

/// An error response of a token service.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// Whether a retry can succeed.
    passes: bool,
    code: Option<Code>,
}

/// The code of an error response.
#[derive(Debug, PartialEq, Eq)]
enum Code {
    /// A code of Microsoft Entra.
    Aadsts(u64),
    /// A code of OAuth.
    OAuth(&'static str),
}

impl Code {
    fn name(&self) -> String {
        match self {
            Self::Aadsts(number) => format!("AADSTS{number}"),
            Self::OAuth(name) => (*name).to_owned(),
        }
    }
}

/// The error response of an authority, as far as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorDocument {
    error: String,
    error_codes: Vec<u64>,
    error_description: String,
}

/// The error codes of OAuth's token endpoint, and those of a server that is not available.
const OAUTH_CODES: [&str; 8] = [
    "temporarily_unavailable",
    "server_error",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
];

/// Reads a response. `None` for a success.
fn refusal(kind: Kind, status: u16, body: &[u8]) -> Option<Refusal> {
    if (200..300).contains(&status) {
        return None;
    }
    let document = serde_json::from_slice::<ErrorDocument>(body).unwrap_or_default();
    let number = document
        .error_codes
        .first()
        .copied()
        .or_else(|| aadsts(&document.error_description));
    let name = OAUTH_CODES.into_iter().find(|name| *name == document.error);
    let busy = matches!(status, 408 | 429 | 500..=599);
    let passes = match kind {
        Kind::Authority => {
            let outage = number.is_some_and(|number| OUTAGES.contains(&number));
            let names = ["temporarily_unavailable", "server_error"];
            busy || outage || name.is_some_and(|name| names.contains(&name))
        }
        Kind::Metadata => busy || matches!(status, 404 | 410),
    };
    let code = number.map(Code::Aadsts).or(name.map(Code::OAuth));
    Some(Refusal { passes, code })
}

/// Returns the number of the first AADSTS code in a text.
pub(super) fn aadsts(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("AADSTS")?;
    let end = rest.find(|it: char| !it.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Returns what the most frequent refusals mean.
fn advice(code: &str) -> &'static str {
    match code {
        "AADSTS7000215" => "the secret is wrong; it must be the secret's value, not its id",
        "AADSTS7000222" => "the secret has expired; create another one",
        "AADSTS700016" => "the tenant has no such application",
        "AADSTS90002" => "there is no such tenant at this authority",
        "AADSTS700024" => {
            "the assertion is not valid at this time; check the clock, and that the file is replaced"
        }
        "AADSTS700027" => "the certificate is not registered with the application",
        "AADSTS70021" | "AADSTS700211" | "AADSTS700212" | "AADSTS700213" => {
            "no federated credential of the application matches the issuer, subject and audience of the token"
        }
        "AADSTS53003" => "a conditional access policy blocks the application",
        "status 400" => "there is no such identity, or the request is not valid",
        _ => "the credentials were refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a response passes, and its code.
    fn read(kind: Kind, status: u16, body: &str) -> (bool, String) {
        let refusal = refusal(kind, status, body.as_bytes()).unwrap();
        let code = refusal.code.map_or_else(String::new, |code| code.name());
        (refusal.passes, code)
    }

    #[test]
    fn status_and_code_decide_whether_a_refusal_passes() {
        for status in [200, 204] {
            assert_eq!(refusal(Kind::Authority, status, b""), None);
        }
        for status in 300..=599 {
            let busy = status >= 500 || status == 408 || status == 429;
            let authority = read(Kind::Authority, status, "<html>");
            assert_eq!(authority, (busy, String::new()), "{status}");
            let updated = busy || status == 404 || status == 410;
            assert_eq!(read(Kind::Metadata, status, "{}").0, updated, "{status}");
        }
        let authority = |body: &str| read(Kind::Authority, 400, body);
        let wrong = r#"{"error":"invalid_client","error_codes":[7000215],"error_description":"AADSTS1: s3cr3t"}"#;
        assert_eq!(authority(wrong), (false, "AADSTS7000215".to_owned()));
        let text = r#"{"error":"invalid_client","error_description":"AADSTS7000222: s3cr3t"}"#;
        assert_eq!(authority(text), (false, "AADSTS7000222".to_owned()));
        assert_eq!(
            authority(r#"{"error":"invalid_grant"}"#),
            (false, "invalid_grant".to_owned())
        );
        assert_eq!(authority(r#"{"error":"s3cr3t"}"#), (false, String::new()));
        for name in ["temporarily_unavailable", "server_error"] {
            let body = format!(r#"{{"error":"{name}"}}"#);
            assert_eq!(authority(&body), (true, name.to_owned()));
        }
        for number in OUTAGES {
            let body = format!(r#"{{"error":"invalid_request","error_codes":[{number}]}}"#);
            assert_eq!(authority(&body), (true, format!("AADSTS{number}")));
        }
    }

    #[test]
    fn code_is_found_in_any_text() {
        assert_eq!(aadsts("x AADSTS700016: no such"), Some(700_016));
        assert_eq!(aadsts("AADSTS90033"), Some(90_033));
        for none in ["", "AADSTS", "AADSTS: 5", "aadsts1"] {
            assert_eq!(aadsts(none), None, "{none}");
        }
        let endless = format!("AADSTS{}", "9".repeat(100));
        assert_eq!(aadsts(&endless), None);
    }
}
