//! Sets of public keys ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517)).

use std::collections::BTreeMap;

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;

/// The most keys of a set.
const MAX_KEYS: usize = 100;

/// The keys by their ids.
#[derive(Debug, Default)]
pub(crate) struct KeySet(BTreeMap<String, Key>);

/// One key, and what it may sign.
#[derive(Debug)]
pub(super) struct Key {
    decoding: DecodingKey,
    algorithms: Vec<Algorithm>,
}

/// Why a text is no set of keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeySetError {
    #[error("it is no JSON Web Key Set")]
    Malformed(#[from] serde_json::Error),
    #[error("it has no key that can be used: expected a public key for signatures with a `kid`")]
    Empty,
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
}

impl KeySet {
    /// Reads a set. Keys of types that are not known here are left out, as the standard says, and so are those that nobody may sign with:
    /// without an id, for encryption, and secret ones.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, KeySetError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let Set { keys } = serde_json::from_slice(text)?;
        if keys.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let mut set = Self::default();
        for key in keys {
            let usable = Jwk::deserialize(key).ok().and_then(usable);
            if let Some((id, key)) = usable {
                set.0.entry(id).or_insert(key);
            }
        }
        if set.0.is_empty() {
            return Err(KeySetError::Empty);
        }
        Ok(set)
    }

    /// Adds the keys of another set whose ids are not taken.
    pub(super) fn merge(mut self, other: Self) -> Self {
        for (id, key) in other.0 {
            self.0.entry(id).or_insert(key);
        }
        self
    }

    pub(super) fn find(&self, id: &str) -> Option<&Key> {
        self.0.get(id)
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Key {
    pub(super) fn permits(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    pub(super) fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the crate can add types of keys"
)]
fn usable(jwk: Jwk) -> Option<(String, Key)> {
    let common = &jwk.common;
    let is_for_signatures = common
        .public_key_use
        .as_ref()
        .is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let may_verify = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !is_for_signatures || !may_verify {
        return None;
    }
    let possible = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(parameters) => {
            let curves = [
                (EllipticCurve::P256, Algorithm::ES256),
                (EllipticCurve::P384, Algorithm::ES384),
            ];
            let curve = curves
                .into_iter()
                .find(|(curve, _)| *curve == parameters.curve);
            vec![curve?.1]
        }
        AlgorithmParameters::OctetKeyPair(_) => vec![Algorithm::EdDSA],
        // Unknown types, and secret keys: with those, whoever checks tokens could make them.
        _ => return None,
    };
    let algorithms = match common.key_algorithm {
        None => possible,
        Some(named) => {
            let named = Algorithm::try_from(named).ok()?;
            possible.contains(&named).then(|| vec![named])?
        }
    };
    let decoding = DecodingKey::from_jwk(&jwk).ok()?;
    let key = Key {
        decoding,
        algorithms,
    };
    Some((jwk.common.key_id?, key))
}
