//! Credentials: where access tokens come from.
//!
//! Owns the public types for credentials. The token itself is kept and renewed by the client.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Duration, Utc};
use fleetwright::async_trait;

use crate::client::identity;

/// A source of access tokens. Cheap to clone.
///
/// Each provisioner keeps one token for all its calls. It requests another one five minutes before
/// the token expires, or after Azure has refused it.
///
/// ```
/// use fleetwright_azure::{AzureCredentials, Token, TokenFailure, TokenSource};
/// use fleetwright_azure::fleetwright::async_trait;
///
/// // The environment: service principal, managed identity, or the `az` command.
/// let credentials = AzureCredentials::from_env();
///
/// // A service principal with a secret.
/// let credentials = AzureCredentials::client_secret("tenant", "client", "secret");
/// assert!(!format!("{credentials:?}").contains("secret\""));
///
/// // Your own source of tokens.
/// #[derive(Debug)]
/// struct Vault;
///
/// #[async_trait]
/// impl TokenSource for Vault {
///     async fn token(&self, _scope: &str) -> Result<Token, TokenFailure> {
///         Err(TokenFailure::Unavailable) // the vault cannot be reached now
///     }
/// }
/// let credentials = AzureCredentials::of(Vault);
/// ```
#[derive(Clone, Debug)]
pub struct AzureCredentials {
    pub(crate) source: Arc<dyn TokenSource>,
}

impl AzureCredentials {
    /// Takes the credentials of the environment, in this order: the variables of a service
    /// principal (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET`, or a federated
    /// token file), the managed identity of the machine or app service, the login of the `az`
    /// command. `AZURE_AUTHORITY_HOST` selects another authority. No token is requested before the
    /// first call.
    pub fn from_env() -> Self {
        Self::of(identity::Environment::default())
    }

    /// Takes a service principal with a secret, at the authority that `AZURE_AUTHORITY_HOST` names,
    /// or at that of Azure's public cloud.
    ///
    /// The secret is kept in memory and never logged; `Debug` does not show it.
    pub fn client_secret(
        tenant: impl Into<String>,
        client: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let (tenant, client) = (tenant.into(), client.into());
        let secret = secret.into();
        Self::of(identity::ServicePrincipal::new(
            None, tenant, client, secret,
        ))
    }

    /// Takes a service principal with a secret at another authority, such as that of a sovereign
    /// cloud.
    pub fn client_secret_at(
        authority: impl Into<String>,
        tenant: impl Into<String>,
        client: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let (authority, tenant, client) = (authority.into(), tenant.into(), client.into());
        let secret = secret.into();
        Self::of(identity::ServicePrincipal::new(
            Some(authority),
            tenant,
            client,
            secret,
        ))
    }

    /// Takes one token that is never renewed, for an emulator or a short script.
    pub fn token(token: impl Into<String>) -> Self {
        Self::of(Fixed(token.into()))
    }

    /// Takes any other source of tokens.
    pub fn of(source: impl TokenSource + 'static) -> Self {
        Self {
            source: Arc::new(source),
        }
    }
}

/// Where tokens come from.
///
/// An implementation need not cache: the client requests a token only when its own is about to
/// expire or was refused, and sends one request at a time. A request has half of
/// [`AzureOptions::call_timeout`](crate::AzureOptions::call_timeout).
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// Requests a token for a scope, such as `https://management.azure.com/.default`.
    ///
    /// # Errors
    ///
    /// [`TokenFailure::Refused`] becomes an unauthenticated error, [`TokenFailure::Unavailable`]
    /// one that can be retried.
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure>;
}

/// A bearer token.
///
/// Created by a [`TokenSource`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// The token itself. `Debug` does not show it.
    pub secret: String,
    /// When it expires.
    pub expires: DateTime<Utc>,
}

impl Token {
    /// Creates a token.
    pub fn new(secret: impl Into<String>, expires: DateTime<Utc>) -> Self {
        Self {
            secret: secret.into(),
            expires,
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Why there is no token.
///
/// A source must return no text, because messages of token services can contain secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFailure {
    /// There are no credentials, or they were refused.
    Refused,
    /// The token service cannot be reached at the moment. A retry can succeed.
    Unavailable,
}

/// One token that never changes.
struct Fixed(String);

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fixed")
    }
}

#[async_trait]
impl TokenSource for Fixed {
    async fn token(&self, _: &str) -> Result<Token, TokenFailure> {
        Ok(Token::new(&self.0, Utc::now() + Duration::days(1)))
    }
}
