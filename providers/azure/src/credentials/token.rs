//! Tokens, where they come from, and why there is none.
//!
//! Owns the seam between the client and the sources of tokens. It sends nothing.

use std::fmt;

use chrono::{DateTime, Duration, Utc};
use fleetwright::async_trait;

/// Where tokens come from.
///
/// An implementation need not cache. The client requests a token when it has none, when its own is
/// about to expire, and after Azure has refused it. It sends one request at a time, gives it half of
/// [`AzureOptions::call_timeout`](crate::AzureOptions::call_timeout), and uses the token that it has
/// while that token is valid and the source fails or does not respond.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_azure::{
///     AzureCredentials, Token, TokenFailure, TokenSource, fleetwright::async_trait,
/// };
///
/// /// Tokens of a service of ours.
/// #[derive(Debug)]
/// struct Broker;
///
/// #[async_trait]
/// impl TokenSource for Broker {
///     async fn token(&self, scope: &str) -> Result<Token, TokenFailure> {
///         let secret = request_from_broker(scope)
///             .map_err(|_| TokenFailure::unavailable("the broker does not respond; retry"))?;
///         Ok(Token::new(secret, chrono::Utc::now() + Duration::from_secs(3600)))
///     }
/// }
/// # fn request_from_broker(_: &str) -> Result<String, ()> { Ok("s3cr3t".to_owned()) }
///
/// let credentials = AzureCredentials::of(Broker);
/// ```
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
///
/// ```
/// use chrono::{TimeDelta, Utc};
/// use fleetwright_azure::Token;
///
/// let token = Token::new("s3cr3t", Utc::now() + TimeDelta::hours(1));
/// assert!(!format!("{token:?}").contains("s3cr3t"), "`Debug` hides the secret");
/// ```
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

/// Why there is no token, with a message that says what to do.
///
/// The message appears in errors and logs. It must contain no secret, so a source must not copy the
/// text of a token service into it.
///
/// ```
/// use fleetwright_azure::TokenFailure;
///
/// let failure = TokenFailure::refused("the certificate has expired; install a new one");
/// assert_eq!(failure.message(), "the certificate has expired; install a new one");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenFailure {
    /// There are no credentials, or they were refused. A retry fails again.
    Refused(String),
    /// The token service cannot issue a token at the moment. A retry can succeed.
    Unavailable(String),
}

impl TokenFailure {
    /// Creates a permanent failure.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// Creates a failure that a retry can overcome.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable(message.into())
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(message) | Self::Unavailable(message) => message,
        }
    }
}

impl fmt::Display for TokenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for TokenFailure {}

/// One token that never changes.
pub(super) struct Fixed(pub(super) String);

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
