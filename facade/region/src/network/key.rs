//! The public key of an SSH certificate authority.

use std::fmt;

use serde::{Deserialize, Serialize};
use ssh_key::{Algorithm, PublicKey, public::KeyData};

/// The shortest RSA modulus that is accepted.
const MIN_RSA_BITS: usize = 2048;

/// The public key of an SSH certificate authority: one line as in `authorized_keys`, with algorithm, key and an optional
/// comment, without options. It is normalized, so that equal keys with equal comments are equal values.
///
/// ```
/// use fleetwright_region::network::AuthorityKey;
///
/// let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAy6fJc6yBCQTw1DopXqb20HM2tM0UvQcjhH2mQNCtjX  ops team";
/// let key = AuthorityKey::new(line)?;
/// assert!(key.as_str().ends_with("NCtjX ops team"));
/// assert!(key.without_comment().ends_with("NCtjX"), "only this reaches a machine");
/// # Ok::<(), fleetwright_region::network::InvalidAuthorityKey>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AuthorityKey(String);

/// Why a text is not the public key of an authority. It never shows the text, which may be a private key by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAuthorityKey {
    /// A private key was given. Treat it as compromised.
    #[error(
        "a private key was given: expected the public key, a line that begins with its algorithm"
    )]
    Private,
    /// The text is empty, has several lines, or is longer than [`AuthorityKey::MAX_CHARS`].
    #[error("the key is not exactly one line: expected one line as in authorized_keys")]
    NotOneLine,
    /// The line begins with options.
    #[error("the line has options before the key: expected it without options")]
    Options,
    /// The algorithm is not supported.
    #[error(
        "the algorithm of the key is not supported: expected ssh-ed25519, ssh-rsa or ecdsa-sha2-nistp256, -384 or -521"
    )]
    Algorithm,
    /// The RSA key has fewer than 2048 bits.
    #[error("the RSA key has {0} bits: expected at least {MIN_RSA_BITS}")]
    Short(usize),
    /// The key cannot be parsed.
    #[error(
        "the key cannot be read: expected an algorithm, the key in base64, and perhaps a comment"
    )]
    Unreadable,
}

impl AuthorityKey {
    /// The longest line that is accepted, in bytes: 8 KiB.
    pub const MAX_CHARS: usize = fleetwright_cloud_init::MAX_AUTHORITY_KEY_BYTES;

    /// Parses and normalizes a line. Accepts ed25519, RSA of at least 2048 bits, and ECDSA on the NIST curves.
    ///
    /// # Errors
    ///
    /// See [`InvalidAuthorityKey`].
    pub fn new(text: &str) -> Result<Self, InvalidAuthorityKey> {
        let text = text.trim();
        if text.contains("PRIVATE KEY") {
            return Err(InvalidAuthorityKey::Private);
        }
        let bad = |c: char| c.is_control() && c != '\t';
        if text.is_empty() || text.len() > Self::MAX_CHARS || text.contains(bad) {
            return Err(InvalidAuthorityKey::NotOneLine);
        }
        let mut words = text.split_ascii_whitespace();
        let (algorithm, key) = (words.next(), words.next());
        let comment = words.collect::<Vec<_>>().join(" ");
        check_algorithm(algorithm.unwrap_or_default(), text)?;
        let line = format!(
            "{} {}",
            algorithm.unwrap_or_default(),
            key.unwrap_or_default()
        );
        let mut key =
            PublicKey::from_openssh(&line).map_err(|_| InvalidAuthorityKey::Unreadable)?;
        check_strength(key.key_data())?;
        key.set_comment(comment);
        let line = key
            .to_openssh()
            .map_err(|_| InvalidAuthorityKey::Unreadable)?;
        Ok(Self(line))
    }

    /// Returns the line, with its comment.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the algorithm and the key, in base64. The tenant chooses the comment, so it must not get into user data.
    pub fn without_comment(&self) -> &str {
        let end = self.0.match_indices(' ').nth(1);
        end.and_then(|(end, _)| self.0.get(..end))
            .unwrap_or(&self.0)
    }
}

fn check_algorithm(algorithm: &str, line: &str) -> Result<(), InvalidAuthorityKey> {
    match Algorithm::new(algorithm) {
        Ok(Algorithm::Ed25519 | Algorithm::Rsa { hash: None } | Algorithm::Ecdsa { .. }) => Ok(()),
        // Vendor algorithms have a name with an at sign; options are followed by a key.
        Ok(_) => Err(InvalidAuthorityKey::Algorithm),
        Err(_) => {
            let key = |word: &str| word.starts_with("ssh-") || word.starts_with("ecdsa-");
            if line.split_ascii_whitespace().skip(1).any(key) {
                Err(InvalidAuthorityKey::Options)
            } else {
                Err(InvalidAuthorityKey::Unreadable)
            }
        }
    }
}

fn check_strength(key: &KeyData) -> Result<(), InvalidAuthorityKey> {
    let Some(modulus) = key.rsa().map(|key| &key.n) else {
        return Ok(());
    };
    let bytes = modulus.as_positive_bytes().unwrap_or_default();
    let unused = bytes.first().map_or(0, |byte| byte.leading_zeros());
    let bits = (bytes.len() * 8).saturating_sub(unused as usize);
    if bits < MIN_RSA_BITS {
        return Err(InvalidAuthorityKey::Short(bits));
    }
    Ok(())
}

impl TryFrom<String> for AuthorityKey {
    type Error = InvalidAuthorityKey;
    fn try_from(text: String) -> Result<Self, InvalidAuthorityKey> {
        Self::new(&text)
    }
}

impl From<AuthorityKey> for String {
    fn from(key: AuthorityKey) -> Self {
        key.0
    }
}

impl fmt::Display for AuthorityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
