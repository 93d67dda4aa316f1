//! The transport: sends requests to Azure's own host only, with the token, over pooled connections.
//!
//! Owns the only place that adds the token, and that reads a refusal. The SDK on its own would send
//! requests and token to any host that a link names, write the token into its log, and drop the
//! headers of a refusal.
//!
//! Rules for every request:
//!
//! - its scheme, host and port are those of the endpoint, or it is not sent;
//! - the token is added last, and appears in no error and no log;
//! - redirects are not followed;
//! - the clock of the response is recorded, because ages of machines are judged by Azure's clock.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use azure_core::{
    HttpClient, Method, Request, Response, Url,
    error::{Error, ErrorKind},
    headers::{AUTHORIZATION, HeaderName, Headers},
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use fleetwright::async_trait;
use serde::Deserialize;

use super::identity::TokenCache;
use crate::error::{Cause, Failure};

/// The longest message of Azure that is kept, in characters.
const MAX_MESSAGE_CHARS: usize = 1000;

/// The longest retry delay that is accepted.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an unused connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The HTTP client of one endpoint. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    http: reqwest::Client,
    endpoint: Url,
    tokens: Arc<TokenCache>,
    /// By how many milliseconds Azure's clock is ahead of ours, by the latest response.
    clock_offset_millis: Arc<AtomicI64>,
}

/// A response with its whole body.
#[derive(Debug)]
pub(super) struct FullResponse {
    pub(super) headers: Headers,
    pub(super) body: Bytes,
}

impl Transport {
    /// Creates a transport. Redirects are never followed, because the target could get the token.
    pub(super) fn new(endpoint: Url, tokens: Arc<TokenCache>) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            // The target of a redirect could get the token.
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .connect_timeout(Duration::from_secs(20))
            .build();
        Ok(Self {
            http: http
                .map_err(|_| Failure::new(Cause::NotSent, "the HTTP client cannot be built"))?,
            endpoint,
            tokens,
            clock_offset_millis: Arc::default(),
        })
    }

    /// By how much Azure's clock is ahead of ours. A slow response makes it smaller, and ages
    /// judged by it younger.
    pub(super) fn clock_offset(&self) -> chrono::Duration {
        chrono::Duration::milliseconds(self.clock_offset_millis.load(Ordering::Relaxed))
    }

    /// Returns the URL of a path at the endpoint.
    pub(super) fn url(&self, path: &str, version: &str) -> Result<Url, Failure> {
        let mut url = self.endpoint.clone();
        url.set_path(path);
        url.query_pairs_mut().append_pair("api-version", version);
        Ok(url)
    }

    /// Parses a URL from a response. Refuses one that leads to another host.
    pub(super) fn own_url(&self, text: &str) -> Result<Url, Failure> {
        let url = Url::parse(text);
        let url = url.map_err(|_| {
            Failure::new(
                Cause::Unreadable,
                "a link in a response of Azure is not a URL",
            )
        })?;
        self.check_host(&url)?;
        Ok(url)
    }

    /// Refuses a URL with another scheme, host or port than the endpoint.
    fn check_host(&self, url: &Url) -> Result<(), Failure> {
        if url.origin() == self.endpoint.origin() {
            return Ok(());
        }
        let message = format!(
            "a link in a response of Azure leads to {}, not to {}; nothing was sent there",
            url.origin().ascii_serialization(),
            self.endpoint.origin().ascii_serialization()
        );
        Err(Failure::new(Cause::WrongHost, message))
    }

    /// Sends a GET.
    pub(super) async fn get(&self, url: Url) -> Result<FullResponse, Failure> {
        self.send(&Request::new(url, Method::Get)).await
    }

    /// Sends a PUT that fails if the resource exists.
    pub(super) async fn put(&self, url: Url, body: Bytes) -> Result<FullResponse, Failure> {
        let mut request = Request::new(url, Method::Put);
        request.insert_header("content-type", "application/json");
        request.insert_header("if-none-match", "*");
        request.set_body(body);
        self.send(&request).await
    }

    /// Sends a request and reads the whole response.
    async fn send(&self, request: &Request) -> Result<FullResponse, Failure> {
        let response = self.execute(request).await?;
        let (_, headers, body) = response.deconstruct();
        let body = body.collect().await.map_err(|error| failure(&error))?;
        Ok(FullResponse { headers, body })
    }

    /// Reads a URL that contains its own authorization, without the token. No error shows the URL,
    /// which is a secret.
    pub(super) async fn read_public(&self, url: &str) -> Result<Bytes, Failure> {
        let unread = |error: reqwest::Error| {
            let cause = transport_failure(&error.without_url()).cause;
            Failure::new(cause, "the machine's console output cannot be read")
        };
        let response = self.http.get(url).send().await.map_err(unread)?;
        let status = response.status();
        if !status.is_success() {
            let mut headers = Headers::new();
            for name in ["retry-after", "date"] {
                let value = response.headers().get(name);
                if let Some(text) = value.and_then(|value| value.to_str().ok()) {
                    headers.insert(HeaderName::from_static(name), text.to_owned());
                }
            }
            let message = "the console log is not available";
            let failure = Failure::new(Cause::Responded(status.as_u16()), message);
            return Err(failure.with_retry_after(retry_after(&headers)));
        }
        response.bytes().await.map_err(unread)
    }

    /// Adds the token and sends a request. An error response becomes a failure.
    async fn execute(&self, request: &Request) -> Result<Response, Failure> {
        self.check_host(request.url())?;
        let token = self.tokens.current().await?;
        let mut request = request.clone();
        request.insert_header(AUTHORIZATION, format!("Bearer {}", token.secret));
        let response = self.http.execute_request(&request).await;
        let response = response.map_err(|error| failure(&error))?;
        let status = u16::from(response.status());
        if let Some(server_time) = header(response.headers(), "date").and_then(date) {
            let ahead = (server_time - Utc::now()).num_milliseconds();
            self.clock_offset_millis.store(ahead, Ordering::Relaxed);
        }
        if response.status().is_success() {
            return Ok(response);
        }
        if status == 401 {
            self.tokens.forget(&token);
        }
        let (_, headers, body) = response.deconstruct();
        // If the body is incomplete, the status is enough.
        let body = body.collect().await.unwrap_or_default();
        Err(parse_refusal(status, &headers, &body))
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let sent = self.execute(request).await;
        sent.map_err(|failure| Error::new(ErrorKind::Other, failure))
    }
}

/// The body of an error response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorDocument {
    error: ErrorDetails,
}

/// Code and message of an error response or a failed operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ErrorDetails {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

/// Reads an error response.
fn parse_refusal(status: u16, headers: &Headers, body: &[u8]) -> Failure {
    let document = serde_json::from_slice::<ErrorDocument>(body).unwrap_or_default();
    let message = shorten(document.error.message.unwrap_or_default());
    Failure::new(Cause::Responded(status), message)
        .with_code(document.error.code.unwrap_or_default())
        .with_request_id(header(headers, "x-ms-request-id").map(ToOwned::to_owned))
        .with_retry_after(retry_after(headers))
        .with_server_time(header(headers, "date").and_then(date))
}

/// Cuts a message to the longest length that is kept.
pub(super) fn shorten(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
        message.truncate(end);
        message.push('…');
    }
    message
}

/// Returns a header as text.
pub(super) fn header<'h>(headers: &'h Headers, name: &'static str) -> Option<&'h str> {
    headers.get_optional_str(&HeaderName::from_static(name))
}

/// Returns the retry delay, which is given in seconds or as a date.
pub(super) fn retry_after(headers: &Headers) -> Option<Duration> {
    let text = header(headers, "retry-after")?;
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let now = header(headers, "date")
        .and_then(date)
        .unwrap_or_else(Utc::now);
    let wait = (date(text)? - now).to_std().unwrap_or_default();
    Some(wait.min(MAX_RETRY_AFTER))
}

/// Parses an HTTP date.
fn date(text: &str) -> Option<DateTime<Utc>> {
    let date = DateTime::parse_from_rfc2822(text.trim()).ok()?;
    Some(date.with_timezone(&Utc))
}

/// Converts an error of the SDK, which wraps failures of this transport.
pub(super) fn failure(error: &Error) -> Failure {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<Failure>() {
            return failure.clone();
        }
        if let Some(error) = inner.downcast_ref::<reqwest::Error>() {
            return transport_failure(error);
        }
        source = inner.source();
    }
    match error.kind() {
        ErrorKind::Io => Failure::new(Cause::Disconnected, "the connection to Azure broke"),
        ErrorKind::DataConversion => {
            Failure::new(Cause::Unreadable, "the response of Azure cannot be read")
        }
        ErrorKind::HttpResponse { status, .. } => {
            let message = "Azure sent an undocumented response";
            Failure::new(Cause::Responded(u16::from(*status)), message)
        }
        ErrorKind::Credential | ErrorKind::MockFramework | ErrorKind::Other => {
            Failure::new(Cause::NotSent, "a request to Azure cannot be built")
        }
    }
}

/// Converts an error of the HTTP client.
fn transport_failure(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        return Failure::new(Cause::NotConnected, "no connection to Azure could be made");
    }
    if error.is_timeout() {
        return Failure::new(Cause::TimedOut, "Azure did not respond in time");
    }
    if error.is_builder() {
        return Failure::new(Cause::NotSent, "a request to Azure cannot be built");
    }
    Failure::new(Cause::Disconnected, "the connection to Azure broke")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AzureCredentials;

    fn headers(pairs: &[(&'static str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in pairs {
            headers.insert(HeaderName::from_static(name), (*value).to_owned());
        }
        headers
    }

    #[test]
    fn retry_delay_is_read_as_seconds_and_as_date() {
        let document = |pairs: &[(&'static str, &str)]| retry_after(&headers(pairs));
        assert_eq!(
            document(&[("retry-after", "1200")]),
            Some(Duration::from_secs(1200))
        );
        let now = ("date", "Mon, 16 Nov 2026 10:00:00 GMT");
        let later = ("retry-after", "Mon, 16 Nov 2026 10:02:05 GMT");
        assert_eq!(document(&[now, later]), Some(Duration::from_secs(125)));
        let past = ("retry-after", "Mon, 16 Nov 2026 09:00:00 GMT");
        assert_eq!(document(&[now, past]), Some(Duration::ZERO));
        let never = u64::MAX.to_string();
        assert_eq!(document(&[("retry-after", &never)]), Some(MAX_RETRY_AFTER));
        for odd in ["soon", "-5", ""] {
            assert_eq!(document(&[("retry-after", odd)]), None, "{odd}");
        }
        assert_eq!(document(&[]), None);
    }

    #[test]
    fn error_response_is_read_completely() {
        let headers = headers(&[
            ("x-ms-request-id", "r-1"),
            ("retry-after", "7"),
            ("date", "Mon, 16 Nov 2026 10:00:00 GMT"),
        ]);
        let body = br#"{"error":{"code":"SkuNotAvailable","message":"no","target":"vmSize"}}"#;
        let failure = parse_refusal(409, &headers, body);
        assert_eq!(failure.cause, Cause::Responded(409));
        assert_eq!(failure.code.as_deref(), Some("SkuNotAvailable"));
        assert_eq!(failure.request_id.as_deref(), Some("r-1"));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        assert!(failure.server_time.is_some());
        let page = parse_refusal(502, &Headers::new(), b"<html>");
        assert_eq!((page.cause, page.code), (Cause::Responded(502), None));
        assert_eq!(shorten("é".repeat(2000)).chars().count(), 1001);
    }

    #[test]
    fn only_the_endpoint_host_is_accepted() {
        let source = AzureCredentials::token("s3cr3t").source;
        let tokens = TokenCache::new(source, String::new(), Duration::from_secs(30));
        let endpoint = Url::parse("https://management.azure.com").unwrap();
        let transport = Transport::new(endpoint, Arc::new(tokens)).unwrap();
        let own = "https://management.azure.com/x?y=z";
        assert_eq!(transport.own_url(own).unwrap().as_str(), own);
        for odd in [
            "http://management.azure.com/x",
            "https://management.azure.com.example.net/x",
            "https://management.azure.com:444/x",
            "https://management.azure.com@example.net/x",
            "/x",
            "",
        ] {
            let failure = transport.own_url(odd).unwrap_err();
            let causes = [Cause::WrongHost, Cause::Unreadable];
            assert!(causes.contains(&failure.cause), "{odd}");
        }
    }
}
