//! Opaque names for revisions: ETags and positions of a watch.
//!
//! A revision counts the commits of all tenants, so no caller may see one. The key is a record of the store, so that replicas agree and a
//! restart changes nothing.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    ChaCha20Poly1305, Nonce,
    aead::{Aead, KeyInit},
};
use fleetwright_store::{RecordId, Revision, Store, StoreError, StoreExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The kind of the record with the key.
pub(crate) const KIND: &str = "http-key";

/// The length of a nonce.
const NONCE: usize = 12;
/// The length of a position: nonce, revision and tag of 36 bytes, in base64.
pub(crate) const POSITION: usize = 48;

/// Names revisions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Keys {
    key: Arc<[u8; 32]>,
}

impl Keys {
    /// Reads the key from the store, or creates it.
    pub(crate) async fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let id = RecordId::new(KIND, "revisions")?;
        let fresh: [u8; 32] = random()?;
        let encoded = URL_SAFE_NO_PAD.encode(fresh);
        store
            .update(&id, |found| {
                found.is_null().then(|| json!({ "key": encoded }))
            })
            .await?;
        let found = store.get(&id).await?;
        let text = found.as_ref().and_then(|record| record.value.get("key"));
        let bytes = text
            .and_then(Value::as_str)
            .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let key = bytes.and_then(|bytes| bytes.try_into().ok());
        let key: [u8; 32] = key.ok_or_else(|| StoreError::Corrupt {
            what: format!("the record {id} has no key of 32 bytes"),
            source: None,
        })?;
        Ok(Self { key: Arc::new(key) })
    }

    /// The ETag of a record at a revision. Equal revisions of different records have different tags.
    pub(crate) fn etag(&self, record: &str, revision: Revision) -> String {
        // The key is a prefix of fixed length and the rest is separated, so the digest is a keyed one; it is truncated, so it cannot be extended.
        let digest = Sha256::new()
            .chain_update(self.key.as_slice())
            .chain_update(b"etag\0")
            .chain_update(record.as_bytes())
            .chain_update([0])
            .chain_update(revision.0.to_be_bytes())
            .finalize();
        let half: Vec<u8> = digest.into_iter().take(16).collect();
        format!("\"{}\"", URL_SAFE_NO_PAD.encode(half))
    }

    /// The position of a watch.
    pub(crate) fn seal(&self, revision: Revision) -> Option<String> {
        let nonce: [u8; NONCE] = random().ok()?;
        let sealed = self.cipher()?.encrypt(
            Nonce::from_slice(&nonce),
            revision.0.to_be_bytes().as_slice(),
        );
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed.ok()?].concat()))
    }

    /// The revision of a position that [`seal`](Self::seal) returned.
    pub(crate) fn open_position(&self, position: &str) -> Option<Revision> {
        let bytes = URL_SAFE_NO_PAD.decode(position).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let opened = self
            .cipher()?
            .decrypt(Nonce::from_slice(nonce), sealed)
            .ok()?;
        Some(Revision(u64::from_be_bytes(opened.try_into().ok()?)))
    }

    fn cipher(&self) -> Option<ChaCha20Poly1305> {
        ChaCha20Poly1305::new_from_slice(self.key.as_slice()).ok()
    }
}

/// Random bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable {
        reason: format!("the operating system has no random bytes: {error}"),
        source: None,
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(byte: u8) -> Keys {
        Keys {
            key: Arc::new([byte; 32]),
        }
    }

    #[test]
    fn equal_revisions_of_different_records_have_unrelated_tags() {
        let keys = keys(1);
        let tag = |record: &str, revision| keys.etag(record, Revision(revision));
        assert_eq!(tag("networks/a", 7), tag("networks/a", 7));
        let others = [
            tag("networks/b", 7),
            tag("groups/a", 7),
            tag("networks/a", 8),
            tag("networks/a", 6),
            tag("networks/", 7),
        ];
        let first = tag("networks/a", 7);
        for other in others {
            let equal = first.bytes().zip(other.bytes()).skip(1);
            let equal = equal.take_while(|(one, two)| one == two).count();
            assert!(equal < 6, "{first} and {other} start alike");
        }
    }

    #[test]
    fn who_does_not_know_the_key_cannot_compute_a_tag() {
        let tag = |byte| keys(byte).etag("networks/a", Revision(7));
        assert_ne!(tag(1), tag(2));
    }

    #[test]
    fn a_position_is_only_opened_by_its_key_and_is_never_the_same_twice() {
        let sealed = keys(1).seal(Revision(7)).unwrap();
        assert_eq!(sealed.len(), POSITION);
        assert_eq!(keys(1).open_position(&sealed), Some(Revision(7)));
        assert_eq!(keys(2).open_position(&sealed), None);
        assert_ne!(keys(1).seal(Revision(7)).unwrap(), sealed);
    }
}
