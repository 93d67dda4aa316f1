//! Sealing and opening secrets: XChaCha20-Poly1305 with a random nonce, bound to the record by the associated data.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use fleetwright_runtime::entropy::{Entropy, EntropyError};
use fleetwright_store::RecordId;
use serde::{Deserialize, Serialize};

use super::{KeyId, Keyring, Secret};

/// Random nonces of this length do not repeat during the life of a key.
const NONCE_BYTES: usize = 24;
/// The start of the associated data. Another construction needs another value.
const DOMAIN: &[u8] = b"fleetwright sealed 1";

/// The start of the text of a sealed value.
const TEXT: &str = "sealed:";

/// A sealed secret. It can be stored and shown: without the key it reveals only the length of the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    key: KeyId,
    nonce: String,
    data: String,
}

impl Sealed {
    /// Returns the id of the key that sealed it.
    pub fn key(&self) -> &KeyId {
        &self.key
    }

    /// Returns it as one text, for fields that are texts.
    pub(super) fn to_text(&self) -> String {
        format!("{TEXT}{}:{}:{}", self.key, self.nonce, self.data)
    }

    /// Reads the text of a sealed value. `None` for any other text: a text in base64 has no colon.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(TEXT)?.split(':');
        let mut part = || parts.next().map(str::to_owned);
        let (key, nonce, data) = (part()?, part()?, part()?);
        let key = KeyId::new(&key)?;
        Some(Self { key, nonce, data })
    }
}

/// Why a secret was not sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The system's entropy failed.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The secret is longer than the cipher allows (256 GiB).
    #[error("the secret of {record} is too long to be sealed")]
    TooLong {
        /// The record of the secret.
        record: RecordId,
    },
}

/// Why a sealed secret was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The keyring does not have the key.
    #[error(
        "the secret of {record} is sealed with key {key}, which is not in the keyring: add its line"
    )]
    NoKey {
        /// The record of the secret.
        record: RecordId,
        /// The id of the key.
        key: KeyId,
    },
    /// The secret is not authentic for this record and key.
    #[error(
        "the secret of {record} does not open with key {key}: it was changed, belongs to another record, \
         or the key of that id is another one"
    )]
    NotAuthentic {
        /// The record of the secret.
        record: RecordId,
        /// The id of the key.
        key: KeyId,
    },
}

impl Keyring {
    /// Seals a secret for a place in a record, such as the name of a field. It opens only for the same record and place.
    ///
    /// # Errors
    ///
    /// The entropy fails, or the secret is too long.
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

    /// Opens a secret that was sealed for this place in this record.
    ///
    /// # Errors
    ///
    /// The keyring lacks the key, or the secret was changed or sealed for another record or place.
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
            OpenError::NotAuthentic {
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

/// Returns the associated data: everything that the secret is bound to, each part with its length so that different parts
/// never give the same bytes.
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
