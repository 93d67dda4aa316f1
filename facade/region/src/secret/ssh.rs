//! One key pair for one server.

use fleetwright_runtime::entropy::{Entropy, EntropyError};
use ssh_key::{
    LineEnding, PrivateKey,
    private::{Ed25519Keypair, KeypairData},
};
use zeroize::Zeroizing;

use super::Secret;

/// An ed25519 key pair in the formats of OpenSSH.
#[derive(Debug)]
#[non_exhaustive]
pub struct SshKeyPair {
    /// The line for `authorized_keys`.
    pub public: String,
    /// The private key's file.
    pub private: Secret,
}

/// Why there is no key pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyPairError {
    /// There is no key without randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The comment would end the line that it stands in.
    #[error("the comment of a key is one line of text: want it without control characters")]
    InvalidComment,
    /// The pair cannot be written down.
    #[error("the key pair cannot be written: {0}")]
    Unwritten(String),
}

impl SshKeyPair {
    /// Makes a new one. The comment stands in both halves and is shown to everybody.
    pub fn generate(comment: &str, entropy: &dyn Entropy) -> Result<Self, KeyPairError> {
        if comment.chars().any(char::is_control) {
            return Err(KeyPairError::InvalidComment);
        }
        let mut seed = Zeroizing::new([0; 32]);
        entropy.fill(&mut *seed)?;
        let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&seed));
        let written = PrivateKey::new(pair, comment).and_then(|key| {
            let public = key.public_key().to_openssh()?;
            Ok((public, key.to_openssh(LineEnding::LF)?))
        });
        let (public, private) =
            written.map_err(|error| KeyPairError::Unwritten(error.to_string()))?;
        let private = Secret::new(private.as_bytes());
        Ok(Self { public, private })
    }
}
