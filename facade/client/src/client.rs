//! The client and its settings.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use reqwest::{Certificate, Url, redirect::Policy};

use crate::{Error, Token};

/// How long a call lasts at most, with its retries. A create that the service's crash interrupted can be repeated after a minute and a half.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often a request is sent at most.
const ATTEMPTS: usize = 8;
/// How long the service may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The service closes unused connections after 5 s by default. A request on a connection that is being closed is lost.
const KEEP_CONNECTION: Duration = Duration::from_secs(3);

/// A client of the service, for one caller. Clones share connections and token, and are cheap.
///
/// There is a method for each operation of the service, with the same name. Each call has a deadline and is retried by the service's advice.
///
/// ```no_run
/// use fleetwright_client::{Client, InstanceFilter, Token};
/// use futures_util::TryStreamExt;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let token = Token::new(&std::fs::read_to_string("token")?)?;
/// let client = Client::builder("https://fleet.example.com").token(token).build()?;
/// let instances: Vec<_> = client.instances(&InstanceFilter::default()).try_collect().await?;
/// for instance in instances {
///     println!("{} is {:?}", instance.metadata.name, instance.status.power_state);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) deadline: Duration,
    pub(crate) attempts: usize,
    pub(crate) key: Option<String>,
}

/// What clones share.
pub(crate) struct Shared {
    pub(crate) http: reqwest::Client,
    /// Without a slash at the end.
    pub(crate) base: String,
    pub(crate) token: RwLock<Option<Token>>,
}

impl Client {
    /// Begins a client of the service at an address, such as `https://fleet.example.com`.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            token: None,
            authorities: Vec::new(),
            deadline: DEADLINE,
            attempts: ATTEMPTS,
            plain_http: PlainHttp::ThisMachine,
        }
    }

    /// The same client with another deadline for each call.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline,
            ..self.clone()
        }
    }

    /// The same client with this idempotency key for a create or a verb, instead of a new one: 1 to 128 visible ASCII characters.
    ///
    /// A program that stores the key before the call can repeat the call after a crash. Use the returned client for this one request.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a text that cannot be a key.
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self, Error> {
        let fits = (1..=128).contains(&key.len());
        if !fits || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = "expected 1 to 128 visible ASCII characters";
            return Err(Error::invalid("idempotency key", problem));
        }
        Ok(Self {
            key: Some(key.to_owned()),
            ..self.clone()
        })
    }

    /// Replaces the token, for all clones: before it expires, for example.
    pub fn set_token(&self, token: Token) {
        let current = self.shared.token.write();
        *current.unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// The address of the service.
    pub fn url(&self) -> &str {
        &self.shared.base
    }

    pub(crate) fn token(&self) -> Option<Token> {
        let token = self.shared.token.read();
        token.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.shared.base)
            .field("token", &self.token())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Where tokens may be sent without encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainHttp {
    ThisMachine,
    Anywhere,
}

/// The settings of a client. [`Client`] has an example.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    url: String,
    token: Option<Token>,
    authorities: Vec<Vec<u8>>,
    deadline: Duration,
    attempts: usize,
    plain_http: PlainHttp,
}

impl ClientBuilder {
    /// The caller's token. Default: none, with which only the health of the service can be read.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Trusts the certificate authorities of a PEM file, and no others. Default: those of the system.
    #[must_use]
    pub fn certificate_authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(pem.into());
        self
    }

    /// How long a call lasts at most, with its retries. Default: two minutes.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How often a request is sent at most. Default: 8. With 1 nothing is retried.
    #[must_use]
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sends the token also without encryption. Default: only to this machine.
    #[must_use]
    pub fn allow_plain_http(mut self) -> Self {
        self.plain_http = PlainHttp::Anywhere;
        self
    }

    /// Checks the settings. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an address or a certificate that cannot be used.
    pub fn build(self) -> Result<Client, Error> {
        let url = parse_url(&self.url)?;
        let is_here = is_this_machine(&url);
        if url.scheme() == "http" && !is_here && self.plain_http == PlainHttp::ThisMachine {
            let problem =
                "it would send the token without encryption: use https, or allow plain http";
            return Err(Error::invalid("url", problem));
        }
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("fleetwright-client/", env!("CARGO_PKG_VERSION")))
            // A token is for one service, and no redirect of another one.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .pool_idle_timeout(KEEP_CONNECTION);
        if is_here {
            http = http.no_proxy();
        }
        if !self.authorities.is_empty() {
            http = http.tls_built_in_root_certs(false);
        }
        for pem in &self.authorities {
            let found = Certificate::from_pem_bundle(pem).ok();
            let found = found.filter(|found| !found.is_empty()).ok_or_else(|| {
                Error::invalid("certificate authorities", "expected certificates in PEM")
            })?;
            http = found
                .into_iter()
                .fold(http, reqwest::ClientBuilder::add_root_certificate);
        }
        let http = http
            .build()
            .map_err(|error| Error::invalid("certificate authorities", root_cause(&error)))?;
        let shared = Shared {
            http,
            base: url.as_str().trim_end_matches('/').to_owned(),
            token: RwLock::new(self.token),
        };
        Ok(Client {
            shared: Arc::new(shared),
            deadline: self.deadline,
            attempts: self.attempts.max(1),
            key: None,
        })
    }
}

fn parse_url(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text.trim());
    let url =
        url.map_err(|error| Error::invalid("url", format!("{error}: expected https://host")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(Error::invalid("url", "expected https://host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let problem = "it has a user or a password: leave them out, the service has tokens";
        return Err(Error::invalid("url", problem));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::invalid(
            "url",
            "it has a query or a fragment: leave them out",
        ));
    }
    Ok(url)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_sent_without_encryption_to_another_machine() {
        let built = |url: &str| Client::builder(url).build();
        for url in [
            "http://127.0.0.1:8080",
            "http://[::1]:8080/",
            "http://localhost",
            "https://example.com/fleet/",
        ] {
            assert!(built(url).is_ok(), "{url}");
        }
        for url in [
            "http://example.com",
            "http://10.0.0.1",
            "ftp://x",
            "example.com",
            "https://ada:x@example.com",
            "https://x/?a=b",
            "",
        ] {
            let error = built(url).err().map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.starts_with("url: ")), "{url}");
        }
        assert!(
            Client::builder("http://example.com")
                .allow_plain_http()
                .build()
                .is_ok()
        );
        assert!(
            Client::builder("https://x")
                .certificate_authorities("no PEM")
                .build()
                .is_err()
        );
    }

    #[test]
    fn debug_shows_no_token() {
        let token = Token::new("fw_very-secret");
        let Ok(token) = token else {
            unreachable!("a token")
        };
        let builder = Client::builder("http://localhost").token(token.clone());
        let Ok(client) = builder.clone().build() else {
            unreachable!("a client")
        };
        client.set_token(token);
        let shown = format!("{builder:?} {client:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
