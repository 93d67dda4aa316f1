//! Who sends a request: from a bearer token to an actor. What the actor may do is decided by the façade.

pub(crate) mod jwt;
pub(crate) mod tokens;

use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use fleetwright_identity::{Actor, Binding};

use jwt::Verifier;
use tokens::Tokens;

/// Whom a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) actor: Actor,
    /// Roles that the token brings, beside those that are bound to the actor.
    pub(crate) roles: Vec<Binding>,
}

/// Why a token is refused. For the log alone: the response is the same whatever the reason is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusedToken(pub(crate) &'static str);

/// Every way to prove who one is. Never calls the network.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: RwLock<Tokens>,
    jwt: Option<Arc<Verifier>>,
}

impl Authenticator {
    pub(crate) fn new(tokens: Tokens, jwt: Option<Arc<Verifier>>) -> Self {
        Self {
            tokens: RwLock::new(tokens),
            jwt,
        }
    }

    /// Replaces the tokens, when their file has changed.
    pub(crate) fn set_tokens(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Whom a token names now.
    pub(crate) fn authenticate(
        &self,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<Identity, RefusedToken> {
        match &self.jwt {
            Some(jwt) if !token.starts_with(tokens::PREFIX) => jwt.verify(token, now),
            _ => {
                let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
                let actor = tokens.actor(token, now);
                let actor = actor.ok_or(RefusedToken("no entry of the tokens has it"))?;
                let roles = Vec::new();
                Ok(Identity { actor, roles })
            }
        }
    }
}
