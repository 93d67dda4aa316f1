//! Who we are to Azure: where tokens come from.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Duration, Utc};
use fleetwright::async_trait;

use crate::client::identity;

/// Who asks. Cheap to clone; every provisioner made of it keeps its token until shortly before it ends.
#[derive(Clone, Debug)]
pub struct AzureCredentials {
    pub(crate) source: Arc<dyn TokenSource>,
}

impl AzureCredentials {
    /// Those of the environment: a service principal's variables (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and
    /// `AZURE_CLIENT_SECRET`, or a federated token file), the managed identity of the machine or the app that
    /// it runs in, or whoever is logged in with the `az` command, in this order. `AZURE_AUTHORITY_HOST` names
    /// another authority. Nothing is asked for until the first call.
    pub fn from_env() -> Self {
        Self::of(identity::Environment::default())
    }

    /// A service principal that knows a secret, at the authority that `AZURE_AUTHORITY_HOST` names, or
    /// Azure's public one.
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

    /// A service principal that knows a secret, at another authority, such as a sovereign cloud's.
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

    /// One token that is never renewed, for an emulator or a short errand.
    pub fn token(token: impl Into<String>) -> Self {
        Self::of(Fixed(token.into()))
    }

    /// Whatever else knows where to get a token.
    pub fn of(source: impl TokenSource + 'static) -> Self {
        Self {
            source: Arc::new(source),
        }
    }
}

/// Where tokens come from. Nobody need keep them: it is asked again only when a token is about to end or
/// was refused, and by one call at a time.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// A token for a scope, such as `https://management.azure.com/.default`.
    async fn token(&self, scope: &str) -> Result<Token, TokenFailure>;
}

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// What is sent. `Debug` does not show it.
    pub secret: String,
    /// When it ends.
    pub ends: DateTime<Utc>,
}

impl Token {
    /// A token.
    pub fn new(secret: impl Into<String>, ends: DateTime<Utc>) -> Self {
        Self {
            secret: secret.into(),
            ends,
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

/// Why there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFailure {
    /// Nobody here has credentials, or they were refused.
    Refused,
    /// Whoever gives tokens cannot be reached; later may be better.
    Unavailable,
}

/// One token for ever.
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
