//! Generating the SSH key pair of a server.

use fleetwright_runtime::entropy::{Entropy, EntropyError};
use ssh_key::{
    LineEnding, PrivateKey,
    private::{Ed25519Keypair, KeypairData},
};
use zeroize::Zeroizing;

use super::Secret;

/// An ed25519 key pair in the formats of OpenSSH.
///
/// ```
/// use fleetwright_region::secret::SshKeyPair;
/// use fleetwright_runtime::entropy::OsEntropy;
///
/// let pair = SshKeyPair::generate("server-1", &OsEntropy)?;
/// assert!(pair.public.starts_with("ssh-ed25519 ") && pair.public.ends_with(" server-1"));
/// # Ok::<(), fleetwright_region::secret::KeyPairError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SshKeyPair {
    /// The line for `authorized_keys`.
    pub public: String,
    /// The content of the private key file.
    pub private: Secret,
}

/// Why no key pair was generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyPairError {
    /// The system's entropy failed.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The comment has a control character, such as a line end.
    #[error("the comment of the key has control characters: expected one line of text")]
    InvalidComment,
    /// The pair could not be encoded.
    #[error("the key pair cannot be encoded: {0}")]
    Encoding(String),
}

impl SshKeyPair {
    /// Generates a key pair. The comment is in both files and is not secret.
    ///
    /// # Errors
    ///
    /// The entropy fails, or the comment is not one line.
    pub fn generate(comment: &str, entropy: &dyn Entropy) -> Result<Self, KeyPairError> {
        if comment.chars().any(char::is_control) {
            return Err(KeyPairError::InvalidComment);
        }
        let mut seed = Zeroizing::new([0; 32]);
        entropy.fill(&mut *seed)?;
        let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&seed));
        let encoded = PrivateKey::new(pair, comment).and_then(|key| {
            let public = key.public_key().to_openssh()?;
            Ok((public, key.to_openssh(LineEnding::LF)?))
        });
        let (public, private) =
            encoded.map_err(|error| KeyPairError::Encoding(error.to_string()))?;
        let private = Secret::new(private.as_bytes());
        Ok(Self { public, private })
    }
}
