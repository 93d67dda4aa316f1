//! The credential that the SDK gets.
//!
//! It contains no secret, because the SDK writes headers into its debug log. The transport replaces
//! what it sends with the real token.

use azure_core::{
    auth::{AccessToken, Secret, TokenCredential},
    error::{Error, ErrorKind},
};
use fleetwright::async_trait;

/// What the SDK sends in place of a token.
const PLACEHOLDER: &str = "-";

/// A credential without a secret.
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
