//! JSON Web Tokens of an identity provider ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519)), with the precautions of
//! [RFC 8725](https://www.rfc-editor.org/rfc/rfc8725).
//!
//! Owns which tokens are valid. Signatures are checked by `jsonwebtoken`, dates here, against the service's clock. A token never chooses its
//! key or algorithm: keys come from the configured set by their id, algorithms from the configuration, and headers that bring keys are refused.

mod claims;
mod fetch;
mod keys;

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use chrono::{DateTime, Utc};
use fleetwright_identity::{Actor, ActorName};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use reqwest::Url;
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub(crate) use claims::{ClaimMapping, ClaimPath, RoleRule};
pub(crate) use fetch::{Source, follow, load};
pub(crate) use keys::{KeySet, KeySetError};

use super::{Identity, RefusedToken};

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// The types of tokens that are for a service, in lower case: unspecified ones, and access tokens (RFC 9068).
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The algorithms that a configuration may name. All are asymmetric: whoever can check a token cannot make one.
pub(crate) const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Which tokens are valid, and where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JwtConfig {
    pub(crate) issuer: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) algorithms: Vec<Algorithm>,
    /// A file with keys.
    pub(crate) file: Option<PathBuf>,
    /// An address with keys.
    pub(crate) url: Option<Url>,
    /// How often the address is read.
    pub(crate) refresh: Duration,
    /// How long after a read the next one may come, because it failed or a token names an unknown key.
    pub(crate) retry: Duration,
    pub(crate) clock_skew: Duration,
    pub(crate) mapping: ClaimMapping,
}

/// Checks tokens against the keys that are known. Never waits and never calls the network.
#[derive(Debug)]
pub(crate) struct Verifier {
    config: JwtConfig,
    keys: RwLock<Arc<KeySet>>,
    /// A token named a key that is not known.
    unknown_key: Notify,
}

impl Verifier {
    pub(crate) fn new(config: JwtConfig) -> Self {
        Self {
            config,
            keys: RwLock::default(),
            unknown_key: Notify::new(),
        }
    }

    fn set_keys(&self, keys: KeySet) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Whom a token names.
    pub(super) fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Identity, RefusedToken> {
        if token.len() > MAX_TOKEN {
            return Err(RefusedToken("it is too long"));
        }
        let header = decode_header(token).map_err(|_| {
            RefusedToken("its header cannot be read, or names an unknown algorithm")
        })?;
        let id = self.check_header(&header)?;
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let Some(key) = keys.find(id) else {
            self.unknown_key.notify_one();
            return Err(RefusedToken("its key is unknown"));
        };
        if !key.permits(header.alg) {
            return Err(RefusedToken("its key is not for its algorithm"));
        }
        let claims = decode::<Map<String, Value>>(token, key.decoding(), &self.validation(&header));
        let claims = claims
            .map_err(|_| RefusedToken("its signature, issuer or audience is wrong"))?
            .claims;
        self.check_dates(&claims, now)?;
        self.identity(&claims)
    }

    /// Checks a header. Returns the id of the key.
    fn check_header<'h>(&self, header: &'h Header) -> Result<&'h str, RefusedToken> {
        if !self.config.algorithms.contains(&header.alg) {
            return Err(RefusedToken("its algorithm is not permitted"));
        }
        let brings_key = header.jku.is_some()
            || header.x5u.is_some()
            || header.jwk.is_some()
            || header.x5c.is_some();
        if brings_key {
            return Err(RefusedToken("its header brings a key"));
        }
        // No extension is understood, so one that must be understood is refused (RFC 7515, section 4.1.11).
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err(RefusedToken("its header has extensions"));
        }
        let kind = header.typ.as_deref().map(str::to_lowercase);
        if kind.is_some_and(|kind| !TYPES.contains(&kind.as_str())) {
            return Err(RefusedToken("it is a token of another type"));
        }
        header
            .kid
            .as_deref()
            .ok_or(RefusedToken("its header names no key"))
    }

    fn validation(&self, header: &Header) -> Validation {
        let mut validation = Validation::new(header.alg);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&self.config.audiences);
        // Dates are compared with the service's clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation
    }

    fn check_dates(
        &self,
        claims: &Map<String, Value>,
        now: DateTime<Utc>,
    ) -> Result<(), RefusedToken> {
        let skew = self.config.clock_skew.as_secs_f64();
        let now = now.timestamp_millis() as f64 / 1000.0;
        let date = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(date) => Ok(Some(date)),
                None => Err(RefusedToken("one of its dates is no number")),
            },
        };
        let expires = date("exp")?.ok_or(RefusedToken("it has no date of expiry"))?;
        if now >= expires + skew {
            return Err(RefusedToken("it is expired"));
        }
        for name in ["nbf", "iat"] {
            if date(name)?.is_some_and(|begins| now < begins - skew) {
                return Err(RefusedToken("it is not valid yet"));
            }
        }
        Ok(())
    }

    fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, RefusedToken> {
        // An array of issuers is not what the claim is (RFC 7519, section 4.1.1).
        if claims.get("iss").and_then(Value::as_str) != Some(self.config.issuer.as_str()) {
            return Err(RefusedToken("its issuer is wrong"));
        }
        let mapping = &self.config.mapping;
        let name = mapping.actor(claims).ok_or(RefusedToken(
            "the claim with the actor is missing or unverified",
        ))?;
        let name = ActorName::new(name).map_err(|_| RefusedToken("its actor is no valid name"))?;
        Ok(Identity {
            actor: Actor::User(name),
            roles: mapping.roles(claims),
        })
    }
}

#[cfg(test)]
mod tests;
