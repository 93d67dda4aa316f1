//! How a request is sent: to Azure's own host or not at all, with our token, over connections that are kept.
//!
//! Owns the only place that adds a token, and that reads a refusal. The SDK asks whatever host a link
//! names, sends its token along, writes it into its logs, and drops the headers of a refusal.

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

use super::identity::Tokens;
use crate::error::{Cause, Failure};

/// The longest message of Azure's that is told.
const LONGEST_MESSAGE: usize = 1000;

/// The longest time to come back after that is believed.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// For how long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(super) struct Transport {
    http: reqwest::Client,
    endpoint: Url,
    tokens: Arc<Tokens>,
    /// For how long a token is waited for: less than for a call, so that it is known that nothing was sent.
    token_patience: Duration,
    /// By how many milliseconds Azure's clock is ahead of ours, as the latest answer says.
    ahead: Arc<AtomicI64>,
}

/// An answer with all of its body.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) headers: Headers,
    pub(super) body: Bytes,
}

impl Transport {
    pub(super) fn new(
        endpoint: Url,
        tokens: Arc<Tokens>,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            // Whoever redirects us could have our token.
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(IDLE)
            .connect_timeout(Duration::from_secs(20))
            .build();
        Ok(Self {
            http: http.map_err(|_| Failure::new(Cause::NotSent, "no client can be built"))?,
            endpoint,
            tokens,
            token_patience: patience / 2,
            ahead: Arc::default(),
        })
    }

    /// By how much Azure's clock is ahead of ours. An answer that was long under way makes it less, and what is
    /// judged by it younger.
    pub(super) fn ahead(&self) -> chrono::Duration {
        chrono::Duration::milliseconds(self.ahead.load(Ordering::Relaxed))
    }

    /// A URL of a path of Azure's.
    pub(super) fn url(&self, path: &str, version: &str) -> Result<Url, Failure> {
        let mut url = self.endpoint.clone();
        url.set_path(path);
        url.query_pairs_mut().append_pair("api-version", version);
        Ok(url)
    }

    /// A URL that Azure has answered, if it leads to itself.
    pub(super) fn own(&self, text: &str) -> Result<Url, Failure> {
        let url = Url::parse(text);
        let url =
            url.map_err(|_| Failure::new(Cause::Unreadable, "a link of Azure's is no URL"))?;
        self.checked(&url)?;
        Ok(url)
    }

    fn checked(&self, url: &Url) -> Result<(), Failure> {
        if url.origin() == self.endpoint.origin() {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        let message = format!(
            "a link of Azure's leads to {}://{host}, which is not {}; nothing was sent there",
            url.scheme(),
            self.endpoint.host_str().unwrap_or_default()
        );
        Err(Failure::new(Cause::WrongHost, message))
    }

    pub(super) async fn get(&self, url: Url) -> Result<Collected, Failure> {
        self.sent(&Request::new(url, Method::Get)).await
    }

    pub(super) async fn put(&self, url: Url, body: Bytes) -> Result<Collected, Failure> {
        let mut request = Request::new(url, Method::Put);
        request.insert_header("content-type", "application/json");
        request.insert_header("if-none-match", "*");
        request.set_body(body);
        self.sent(&request).await
    }

    async fn sent(&self, request: &Request) -> Result<Collected, Failure> {
        let response = self.executed(request).await?;
        let (_, headers, body) = response.deconstruct();
        let body = body.collect().await.map_err(|error| failure(&error))?;
        Ok(Collected { headers, body })
    }

    /// What anybody may read who has its URL, without our token. No error shows the URL, which is a secret.
    pub(super) async fn read_public(&self, url: &str) -> Result<Bytes, Failure> {
        let unread = |error: reqwest::Error| {
            let cause = of_transport(&error.without_url()).cause;
            Failure::new(cause, "the machine's console output cannot be read")
        };
        let response = self.http.get(url).send().await.map_err(unread)?;
        let status = response.status();
        if !status.is_success() {
            let message = "what the machine wrote is not to be had";
            return Err(Failure::new(Cause::Responded(status.as_u16()), message));
        }
        response.bytes().await.map_err(unread)
    }

    async fn executed(&self, request: &Request) -> Result<Response, Failure> {
        self.checked(request.url())?;
        let token = tokio::time::timeout(self.token_patience, self.tokens.current());
        let late = |_| {
            Failure::new(
                Cause::CredentialsUnavailable,
                "no token for Azure came in time",
            )
        };
        let token = token.await.map_err(late)??;
        let mut request = request.clone();
        request.insert_header(AUTHORIZATION, format!("Bearer {}", token.secret));
        let response = self.http.execute_request(&request).await;
        let response = response.map_err(|error| failure(&error))?;
        let status = u16::from(response.status());
        if let Some(told) = header(response.headers(), "date").and_then(date) {
            let ahead = (told - Utc::now()).num_milliseconds();
            self.ahead.store(ahead, Ordering::Relaxed);
        }
        if response.status().is_success() {
            return Ok(response);
        }
        if status == 401 {
            self.tokens.forget(&token).await;
        }
        let (_, headers, body) = response.deconstruct();
        // A body that breaks off leaves the status, which is enough to go by.
        let body = body.collect().await.unwrap_or_default();
        Err(refusal(status, &headers, &body))
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let sent = self.executed(request).await;
        sent.map_err(|failure| Error::new(ErrorKind::Other, failure))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    error: Details,
}

/// Why something failed, as refusals and operations tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

fn refusal(status: u16, headers: &Headers, body: &[u8]) -> Failure {
    let told = serde_json::from_slice::<Refused>(body).unwrap_or_default();
    let message = shortened(told.error.message.unwrap_or_default());
    Failure::new(Cause::Responded(status), message)
        .with_code(told.error.code.unwrap_or_default())
        .with_request_id(header(headers, "x-ms-request-id").map(ToOwned::to_owned))
        .with_retry_after(retry_after(headers))
        .with_server_time(header(headers, "date").and_then(date))
}

pub(super) fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
    message
}

pub(super) fn header<'h>(headers: &'h Headers, name: &'static str) -> Option<&'h str> {
    headers.get_optional_str(&HeaderName::from_static(name))
}

/// How long to wait before coming back, which is told as seconds or as a date.
pub(super) fn retry_after(headers: &Headers) -> Option<Duration> {
    let text = header(headers, "retry-after")?;
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    let now = header(headers, "date")
        .and_then(date)
        .unwrap_or_else(Utc::now);
    let wait = (date(text)? - now).to_std().unwrap_or_default();
    Some(wait.min(LONGEST_WAIT))
}

fn date(text: &str) -> Option<DateTime<Utc>> {
    let date = DateTime::parse_from_rfc2822(text.trim()).ok()?;
    Some(date.with_timezone(&Utc))
}

/// What became of a call, as the SDK tells it.
pub(super) fn failure(error: &Error) -> Failure {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(failure) = inner.downcast_ref::<Failure>() {
            return failure.clone();
        }
        if let Some(error) = inner.downcast_ref::<reqwest::Error>() {
            return of_transport(error);
        }
        source = inner.source();
    }
    match error.kind() {
        ErrorKind::Io => Failure::new(Cause::Disconnected, "the connection broke off"),
        ErrorKind::DataConversion => {
            Failure::new(Cause::Unreadable, "an answer of Azure's cannot be read")
        }
        ErrorKind::HttpResponse { status, .. } => {
            let message = "an answer of Azure's that is not in its documentation";
            Failure::new(Cause::Responded(u16::from(*status)), message)
        }
        ErrorKind::Credential | ErrorKind::MockFramework | ErrorKind::Other => {
            Failure::new(Cause::NotSent, "a request to Azure cannot be built")
        }
    }
}

fn of_transport(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        return Failure::new(Cause::NotConnected, "Azure cannot be connected to");
    }
    if error.is_timeout() {
        return Failure::new(Cause::TimedOut, "no answer came in time");
    }
    if error.is_builder() {
        return Failure::new(Cause::NotSent, "a request to Azure cannot be built");
    }
    Failure::new(Cause::Disconnected, "the connection broke off")
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
    fn a_time_to_come_back_is_read_as_seconds_and_as_a_date() {
        let told = |pairs: &[(&'static str, &str)]| retry_after(&headers(pairs));
        assert_eq!(
            told(&[("retry-after", "1200")]),
            Some(Duration::from_secs(1200))
        );
        let now = ("date", "Mon, 16 Nov 2026 10:00:00 GMT");
        let later = ("retry-after", "Mon, 16 Nov 2026 10:02:05 GMT");
        assert_eq!(told(&[now, later]), Some(Duration::from_secs(125)));
        let past = ("retry-after", "Mon, 16 Nov 2026 09:00:00 GMT");
        assert_eq!(told(&[now, past]), Some(Duration::ZERO));
        let never = u64::MAX.to_string();
        assert_eq!(told(&[("retry-after", &never)]), Some(LONGEST_WAIT));
        for odd in ["soon", "-5", ""] {
            assert_eq!(told(&[("retry-after", odd)]), None, "{odd}");
        }
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn a_refusal_is_read_with_all_that_it_tells() {
        let headers = headers(&[
            ("x-ms-request-id", "r-1"),
            ("retry-after", "7"),
            ("date", "Mon, 16 Nov 2026 10:00:00 GMT"),
        ]);
        let body = br#"{"error":{"code":"SkuNotAvailable","message":"no","target":"vmSize"}}"#;
        let failure = refusal(409, &headers, body);
        assert_eq!(failure.cause, Cause::Responded(409));
        assert_eq!(failure.code.as_deref(), Some("SkuNotAvailable"));
        assert_eq!(failure.request_id.as_deref(), Some("r-1"));
        assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
        assert!(failure.server_time.is_some());
        let page = refusal(502, &Headers::new(), b"<html>");
        assert_eq!((page.cause, page.code), (Cause::Responded(502), None));
        assert_eq!(shortened("é".repeat(2000)).chars().count(), 1001);
    }

    #[test]
    fn only_azure_s_own_host_is_asked() {
        let source = AzureCredentials::token("hush").source;
        let tokens = Arc::new(Tokens::new(source, String::new()));
        let endpoint = Url::parse("https://management.azure.com").unwrap();
        let transport = Transport::new(endpoint, tokens, Duration::from_secs(60)).unwrap();
        let own = "https://management.azure.com/x?y=z";
        assert_eq!(transport.own(own).unwrap().as_str(), own);
        for odd in [
            "http://management.azure.com/x",
            "https://management.azure.com.example.net/x",
            "https://management.azure.com:444/x",
            "https://management.azure.com@example.net/x",
            "/x",
            "",
        ] {
            let failure = transport.own(odd).unwrap_err();
            let causes = [Cause::WrongHost, Cause::Unreadable];
            assert!(causes.contains(&failure.cause), "{odd}");
        }
    }
}
