//! Who sends a request: from a bearer token to an actor. What the actor may do is decided by the façade.

pub(crate) mod tokens;

use std::sync::RwLock;

use fleetwright_identity::Actor;
use tokens::Tokens;

use chrono::{DateTime, Utc};

/// Every way to prove who one is. Never calls the network.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: RwLock<Tokens>,
}

impl Authenticator {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self {
            tokens: RwLock::new(tokens),
        }
    }

    /// Replaces the tokens, when their file has changed.
    pub(crate) fn set_tokens(&self, tokens: Tokens) {
        *self
            .tokens
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = tokens;
    }

    /// The actor of a token, or `None`, whatever is wrong with it.
    pub(crate) fn authenticate(&self, token: &str, now: DateTime<Utc>) -> Option<Actor> {
        let tokens = self
            .tokens
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        tokens.actor(token, now)
    }
}
