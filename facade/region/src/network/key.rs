//! The public key of an SSH certificate authority.

use std::fmt;

use serde::{Deserialize, Serialize};
use ssh_key::{Algorithm, PublicKey, public::KeyData};

/// The shortest modulus of an RSA key that is taken.
const MIN_RSA_BITS: usize = 2048;

/// One line as `authorized_keys` has it: an algorithm, a key, perhaps a comment, and no options. Always in the same form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AuthorityKey(String);

/// Why a text is no key of an authority. It never shows the text, which may be a private key by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAuthorityKey {
    /// A private key was given. It should be taken for known now.
    #[error("a private key was given: want the public one, a line that begins with its algorithm")]
    Private,
    /// It is nothing, or several lines, or far too long.
    #[error("the key of an authority is one line as in authorized_keys: want exactly one")]
    NotOneLine,
    /// The line begins with options.
    #[error("the line has options before the key: want it without them")]
    Options,
    /// The key is of another sort.
    #[error(
        "the key is of a sort that is not taken: want ssh-ed25519, ssh-rsa or ecdsa-sha2-nistp256, -384 or -521"
    )]
    Algorithm,
    /// The key is too short to be safe.
    #[error("the RSA key has {0} bits: want at least {MIN_RSA_BITS}")]
    Short(usize),
    /// The key cannot be read.
    #[error("the key cannot be read: want an algorithm, the key in base64, and perhaps a comment")]
    Unreadable,
}

impl AuthorityKey {
    /// The longest line that is looked at.
    pub const MAX_CHARS: usize = fleetwright_cloud_init::MAX_AUTHORITY_KEY_BYTES;

    /// Reads a line, and writes it in its one form.
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
        check_sort(algorithm.unwrap_or_default(), text)?;
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

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The algorithm and the key, which are plain characters without exception.
    pub fn without_comment(&self) -> &str {
        let end = self.0.match_indices(' ').nth(1);
        end.and_then(|(end, _)| self.0.get(..end))
            .unwrap_or(&self.0)
    }
}

fn check_sort(algorithm: &str, line: &str) -> Result<(), InvalidAuthorityKey> {
    match Algorithm::new(algorithm) {
        Ok(Algorithm::Ed25519 | Algorithm::Rsa { hash: None } | Algorithm::Ecdsa { .. }) => Ok(()),
        // A sort of its own has a name with an at sign; options have a key after them.
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
