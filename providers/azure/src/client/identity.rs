//! Tokens: Microsoft's credential types, and the one token that all calls share.
//!
//! Owns the cached token. The SDK must never get it, because it writes headers into its debug log.
//!
//! One request for a token is sent at a time, and its result is shared by all calls. A token is
//! renewed five minutes before it expires; if the renewal fails, the old token is used until then.
//! A token that Azure refuses with status 401 is dropped, so that the next call requests another
//! one. Microsoft's own caches are cleared before each request, because they would return the
//! refused token.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use azure_core::{
    HttpClient, Request, Response,
    auth::{AccessToken, Secret, TokenCredential},
    error::{Error, ErrorKind},
};
use azure_identity::{
    ClientSecretCredential, DefaultAzureCredentialBuilder, TokenCredentialOptions,
};
use chrono::{DateTime, Utc};
use fleetwright::async_trait;
use tokio::sync::Mutex;

use crate::{
    Token, TokenFailure, TokenSource,
    error::{Cause, Failure},
};

/// How long before its expiry a token is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(300);

/// What the SDK sends in place of a token. The transport replaces it with the real one.
const PLACEHOLDER: &str = "-";

/// The credentials of the environment, built at the first request.
#[derive(Default)]
pub(crate) struct Environment {
    credential: OnceLock<Arc<dyn TokenCredential>>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

#[async_trait]
impl TokenSource for Environment {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        if self.credential.get().is_none() {
            let _ = self.credential.set(environment_credential()?);
        }
        let credential = self.credential.get().ok_or(TokenFailure::Refused)?;
        request_token(&**credential, scope).await
    }
}

/// Builds Microsoft's chain of environment credentials.
fn environment_credential() -> Result<Arc<dyn TokenCredential>, TokenFailure> {
    let options = TokenCredentialOptions::default();
    let credential = DefaultAzureCredentialBuilder::new()
        .with_options(options)
        .build();
    credential.map_or(Err(TokenFailure::Refused), |credential| {
        Ok(Arc::new(credential))
    })
}

/// A service principal with a secret. `Debug` does not show the secret.
pub(crate) struct ServicePrincipal {
    /// The authority; `None` means that of the environment, or Azure's own.
    authority: Option<String>,
    tenant: String,
    client: String,
    secret: String,
    credential: OnceLock<ClientSecretCredential>,
}

impl ServicePrincipal {
    /// Creates a service principal. Sends nothing.
    pub(crate) const fn new(
        authority: Option<String>,
        tenant: String,
        client: String,
        secret: String,
    ) -> Self {
        Self {
            authority,
            tenant,
            client,
            secret,
            credential: OnceLock::new(),
        }
    }
}

impl fmt::Debug for ServicePrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServicePrincipal")
            .field("tenant", &self.tenant)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TokenSource for ServicePrincipal {
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
        if self.credential.get().is_none() {
            let mut options = TokenCredentialOptions::default();
            if let Some(authority) = &self.authority {
                options.set_authority_host(authority.clone());
            }
            let host = options
                .authority_host()
                .map_err(|_| TokenFailure::Refused)?;
            let Self {
                tenant,
                client,
                secret,
                ..
            } = self;
            let credential = ClientSecretCredential::new(
                Arc::new(TokenService(options.http_client())),
                host,
                tenant.clone(),
                client.clone(),
                secret.clone(),
            );
            let _ = self.credential.set(credential);
        }
        let credential = self.credential.get().ok_or(TokenFailure::Refused)?;
        request_token(credential, scope).await
    }
}

/// The token service. Reports an overloaded service as an I/O error, so that it is not taken for a
/// refusal.
#[derive(Debug)]
struct TokenService(Arc<dyn HttpClient>);

#[async_trait]
impl HttpClient for TokenService {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let response = self.0.execute_request(request).await?;
        let status = u16::from(response.status());
        if status >= 500 || status == 429 || status == 408 {
            return Err(Error::message(
                ErrorKind::Io,
                "the token service is overloaded",
            ));
        }
        Ok(response)
    }
}

/// Requests a token. The error messages of Microsoft's crate may quote secrets and are not kept.
async fn request_token(
    credential: &dyn TokenCredential,
    scope: &str,
) -> Result<Token, TokenFailure> {
    // Its cache would return a refused token again.
    let _ = credential.clear_cache().await;
    match credential.get_token(&[scope]).await {
        Ok(token) => {
            let ends = DateTime::from_timestamp(token.expires_on.unix_timestamp(), 0);
            Ok(Token::new(token.token.secret(), ends.unwrap_or_default()))
        }
        Err(error) => Err(token_failure(&error)),
    }
}

/// Returns whether the credentials were refused or the service could not be reached. The errors of
/// Microsoft's crate look alike, so their sources are searched.
fn token_failure(error: &Error) -> TokenFailure {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = at {
        let kind = inner.downcast_ref::<Error>().map(Error::kind);
        let passes = matches!(kind, Some(ErrorKind::Io)) || inner.is::<reqwest::Error>();
        if passes {
            return TokenFailure::Unavailable;
        }
        at = inner.source();
    }
    TokenFailure::Refused
}

/// The token of all calls. Requests one at a time, and keeps it until it is about to expire.
#[derive(Debug)]
pub(super) struct TokenCache {
    source: Arc<dyn TokenSource>,
    /// The scope that tokens are requested for.
    scope: String,
    /// The current token. Locked during a request, so that only one is sent.
    kept: Mutex<Option<Token>>,
}

impl TokenCache {
    /// Creates an empty cache.
    pub(super) fn new(source: Arc<dyn TokenSource>, scope: String) -> Self {
        Self {
            source,
            scope,
            kept: Mutex::new(None),
        }
    }

    /// Returns the current token, or requests one. While a renewal fails, a token that is still
    /// valid is used.
    pub(super) async fn current(&self) -> Result<Token, Failure> {
        let mut kept = self.kept.lock().await;
        let now = Utc::now();
        if let Some(token) = kept
            .as_ref()
            .filter(|token| token.expires > now + RENEW_BEFORE)
        {
            return Ok(token.clone());
        }
        match (self.source.token(&self.scope).await, kept.as_ref()) {
            (Ok(token), _) => Ok(kept.insert(token).clone()),
            // The old one is still valid.
            (Err(_), Some(token)) if token.expires > now => Ok(token.clone()),
            (Err(TokenFailure::Refused), _) => {
                let message = "there are no credentials for Azure, or they were refused; AzureCredentials \
                               documents the sources";
                Err(Failure::new(Cause::NoCredentials, message))
            }
            (Err(TokenFailure::Unavailable), _) => {
                let message = "a token for Azure cannot be obtained at the moment";
                Err(Failure::new(Cause::CredentialsUnavailable, message))
            }
        }
    }

    /// Drops a token that Azure refused.
    pub(super) async fn forget(&self, refused: &Token) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref() == Some(refused) {
            *kept = None;
        }
    }
}

/// The credential that the SDK gets. It contains no secret.
#[derive(Debug)]
pub(super) struct PlaceholderCredential;

#[async_trait]
impl TokenCredential for PlaceholderCredential {
    async fn get_token(&self, _: &[&str]) -> azure_core::Result<AccessToken> {
        let far = azure_core::date::parse_rfc3339("9999-01-01T00:00:00Z")
            .map_err(|_| Error::message(ErrorKind::Other, "no date"))?;
        Ok(AccessToken::new(Secret::new(PLACEHOLDER), far))
    }

    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Gives tokens with a number, which last for `lasts` seconds.
    #[derive(Debug)]
    struct Counting {
        requests: AtomicU32,
        lasts: i64,
        fails_after: u32,
    }

    #[async_trait]
    impl TokenSource for Counting {
        async fn token(&self, _: &str) -> Result<Token, TokenFailure> {
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            if number >= self.fails_after {
                return Err(TokenFailure::Unavailable);
            }
            let ends = Utc::now() + chrono::Duration::seconds(self.lasts);
            Ok(Token::new(format!("t-{number}"), ends))
        }
    }

    fn tokens(lasts: i64, fails_after: u32) -> (Arc<Counting>, TokenCache) {
        let source = Arc::new(Counting {
            requests: AtomicU32::new(0),
            lasts,
            fails_after,
        });
        let shared: Arc<dyn TokenSource> = source.clone();
        (source, TokenCache::new(shared, "x/.default".to_owned()))
    }

    #[tokio::test]
    async fn token_is_requested_once_and_again_after_a_refusal() {
        let (source, tokens) = tokens(3600, 9);
        let all = futures_util::future::join_all((0..50).map(|_| tokens.current())).await;
        assert!(all.iter().all(|one| one.as_ref().unwrap().secret == "t-0"));
        assert_eq!(source.requests.load(Ordering::SeqCst), 1);
        let refused = tokens.current().await.unwrap();
        tokens.forget(&refused).await;
        let next = tokens.current().await.unwrap();
        assert_eq!(next.secret, "t-1");
        tokens.forget(&refused).await;
        assert_eq!(tokens.current().await.unwrap(), next);
        assert!(!format!("{tokens:?}").contains("t-1"), "{tokens:?}");
    }

    #[tokio::test]
    async fn token_is_renewed_early_and_used_until_expiry_if_renewal_fails() {
        let (source, tokens) = tokens(200, 2);
        for number in [0, 1, 1, 1] {
            let token = tokens.current().await.unwrap();
            assert_eq!(token.secret, format!("t-{number}"));
        }
        assert_eq!(source.requests.load(Ordering::SeqCst), 4);
        let (_, none) = super::tests::tokens(200, 0);
        let failure = none.current().await.unwrap_err();
        assert_eq!(failure.cause, Cause::CredentialsUnavailable);
    }

    #[tokio::test]
    async fn debug_does_not_show_secrets() {
        let principal = ServicePrincipal::new(None, "t".into(), "c".into(), "hush".into());
        assert!(!format!("{principal:?}").contains("hush"));
        let fixed = crate::AzureCredentials::token("hush");
        assert!(!format!("{fixed:?}").contains("hush"));
    }
}
