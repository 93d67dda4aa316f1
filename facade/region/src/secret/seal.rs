//! Sealing and opening: XChaCha20-Poly1305 with a random nonce, bound to the record by its associated data.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use fleetwright_runtime::entropy::{Entropy, EntropyError};
use fleetwright_store::RecordId;
use serde::{Deserialize, Serialize};

use super::{KeyId, Keyring, Secret};

/// Random nonces of this length do not come twice in the life of a key.
const NONCE_BYTES: usize = 24;
/// What the associated data begin with. Another construction gets another one.
const DOMAIN: &[u8] = b"fleetwright sealed 1";

/// A secret that is sealed. It may be stored and shown: without the key it says only how long the secret is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    key: KeyId,
    nonce: String,
    data: String,
}

impl Sealed {
    /// The key that it was sealed with.
    pub fn key(&self) -> &KeyId {
        &self.key
    }
}

/// Why a value was not sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// There is no nonce without randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// It is longer than can be sealed at once.
    #[error("the secret of {record} is too long to be sealed")]
    TooLong {
        /// Of which record.
        record: RecordId,
    },
}

/// Why a value was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The key is not there.
    #[error(
        "the secret of {record} is sealed with key {key}, which is not given: add its line to the keys"
    )]
    NoKey {
        /// Of which record.
        record: RecordId,
        /// Which key.
        key: KeyId,
    },
    /// The key does not open it.
    #[error(
        "the secret of {record} does not open with key {key}: it was changed, is another record's, \
         or another key is given by that id"
    )]
    Wrong {
        /// Of which record.
        record: RecordId,
        /// Which key.
        key: KeyId,
    },
}

impl Keyring {
    /// Seals a secret for a place in a record: it opens nowhere else.
    pub fn seal(
        &self,
        record: &RecordId,
        place: &str,
        secret: &Secret,
        entropy: &dyn Entropy,
    ) -> Result<Sealed, SealError> {
        let (id, key) = self.sealing();
        let mut nonce = [0; NONCE_BYTES];
        entropy.fill(&mut nonce)?;
        let bound = bound_to(record, place, id);
        let payload = Payload {
            msg: secret.expose(),
            aad: &bound,
        };
        let data = XChaCha20Poly1305::new(key.into())
            .encrypt(XNonce::from_slice(&nonce), payload)
            .map_err(|_| SealError::TooLong {
                record: record.clone(),
            })?;
        Ok(Sealed {
            key: id.clone(),
            nonce: STANDARD.encode(nonce),
            data: STANDARD.encode(data),
        })
    }

    /// Opens what was sealed for this place in this record.
    pub fn open(
        &self,
        record: &RecordId,
        place: &str,
        sealed: &Sealed,
    ) -> Result<Secret, OpenError> {
        let Some(key) = self.opening(&sealed.key) else {
            return Err(OpenError::NoKey {
                record: record.clone(),
                key: sealed.key.clone(),
            });
        };
        decrypt(key, &bound_to(record, place, &sealed.key), sealed).ok_or_else(|| {
            OpenError::Wrong {
                record: record.clone(),
                key: sealed.key.clone(),
            }
        })
    }
}

fn decrypt(key: &[u8; 32], bound: &[u8], sealed: &Sealed) -> Option<Secret> {
    let nonce = STANDARD.decode(&sealed.nonce).ok()?;
    let data = STANDARD.decode(&sealed.data).ok()?;
    // A nonce of another length is refused here; the cipher would panic.
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload {
        msg: &data,
        aad: bound,
    };
    let opened = XChaCha20Poly1305::new(key.into()).decrypt(XNonce::from_slice(&nonce), payload);
    opened.ok().map(Secret::new)
}

/// Everything that a sealed value belongs to, each part with its length so that no two lists give the same bytes.
fn bound_to(record: &RecordId, place: &str, key: &KeyId) -> Vec<u8> {
    let parts = [
        DOMAIN,
        record.kind.as_str().as_bytes(),
        record.key.as_str().as_bytes(),
        place.as_bytes(),
        key.as_str().as_bytes(),
    ];
    let framed = parts.into_iter().flat_map(|part| {
        let length = (part.len() as u64).to_be_bytes();
        length.into_iter().chain(part.iter().copied())
    });
    framed.collect()
}
