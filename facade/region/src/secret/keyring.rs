//! The keys that the operator gives.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// How many bytes a key has.
const KEY_BYTES: usize = 32;

/// What a key is called. It stands in every value that was sealed with the key, and tells nothing of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// 1 to 32 of a-z, 0-9 and `-`.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ((1..=32).contains(&text.len()) && text.chars().all(allowed)).then(|| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for KeyId {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::new(&text).ok_or("a key's id has 1 to 32 of a-z, 0-9 and '-'")
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({})", self.0)
    }
}

/// The keys that values are sealed and opened with. The first seals; all of them open.
///
/// As text each key is a line `id:key`, with the 32 bytes of the key in base64; empty lines and those that begin with
/// `#` do not count. To change keys, put a new line above the others, seal everything anew, then take the old lines out.
///
/// ```
/// use fleetwright_region::secret::Keyring;
///
/// let keys: Keyring = "# since May\nmay:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".parse()?;
/// assert_eq!(keys.current().as_str(), "may");
/// # Ok::<(), fleetwright_region::secret::KeyringError>(())
/// ```
pub struct Keyring {
    first: (KeyId, Zeroizing<[u8; KEY_BYTES]>),
    others: Vec<(KeyId, Zeroizing<[u8; KEY_BYTES]>)>,
}

/// Why there are no keys. It never shows what was read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// The file cannot be read.
    #[error("the keys in {} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The variable is not set, or is no text.
    #[error("the variable {0} gives no keys: set it to lines of id:key")]
    NoVariable(String),
    /// There is no key.
    #[error("there is no key: want a line id:key, with the 32 bytes of the key in base64")]
    Empty,
    /// A line is no key.
    #[error("line {line} is no key: want {wanted}")]
    BadLine {
        /// Which, from 1.
        line: usize,
        /// What would be accepted.
        wanted: &'static str,
    },
    /// Two keys have one id.
    #[error("line {line} has the id {id} of a key above it: want another")]
    Duplicate {
        /// Which, from 1.
        line: usize,
        /// The id.
        id: KeyId,
    },
}

impl Keyring {
    /// Reads the keys from a file.
    pub fn from_file(path: &Path) -> Result<Self, KeyringError> {
        let text = std::fs::read_to_string(path).map_err(|source| KeyringError::Unreadable {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        Zeroizing::new(text).parse()
    }

    /// Reads the keys from a variable of the environment. The environment itself cannot be wiped; a file can be guarded
    /// better.
    pub fn from_env(variable: &str) -> Result<Self, KeyringError> {
        let text = std::env::var(variable);
        let text = text.map_err(|_| KeyringError::NoVariable(variable.to_owned()))?;
        Zeroizing::new(text).parse()
    }

    /// The id of the key that seals.
    pub fn current(&self) -> &KeyId {
        &self.first.0
    }

    pub(super) fn sealing(&self) -> (&KeyId, &[u8; KEY_BYTES]) {
        (&self.first.0, &self.first.1)
    }

    pub(super) fn opening(&self, id: &KeyId) -> Option<&[u8; KEY_BYTES]> {
        let mut all = std::iter::once(&self.first).chain(&self.others);
        all.find(|(known, _)| known == id).map(|(_, key)| &**key)
    }
}

impl FromStr for Keyring {
    type Err = KeyringError;

    fn from_str(text: &str) -> Result<Self, KeyringError> {
        let mut keys: Vec<(KeyId, Zeroizing<[u8; KEY_BYTES]>)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let (id, key) = read(text).map_err(|wanted| KeyringError::BadLine { line, wanted })?;
            if keys.iter().any(|(known, _)| *known == id) {
                return Err(KeyringError::Duplicate { line, id });
            }
            keys.push((id, key));
        }
        let mut keys = keys.into_iter();
        Ok(Self {
            first: keys.next().ok_or(KeyringError::Empty)?,
            others: keys.collect(),
        })
    }
}

fn read(line: &str) -> Result<(KeyId, Zeroizing<[u8; KEY_BYTES]>), &'static str> {
    const KEY: &str = "32 bytes in base64 after the id, as `openssl rand -base64 32` prints them";
    let (id, key) = line.split_once(':').ok_or("id:key")?;
    let id =
        KeyId::new(id.trim()).ok_or("an id of 1 to 32 of a-z, 0-9 and '-' before the colon")?;
    let bytes = STANDARD.decode(key.trim()).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| KEY)?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        return Err(KEY);
    }
    key.copy_from_slice(&bytes);
    // What is left of a key that was never filled in.
    if key.iter().all(|byte| *byte == 0) {
        return Err("a key that is not all zeros");
    }
    Ok((id, key))
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = std::iter::once(&self.first).chain(&self.others);
        let ids: Vec<_> = ids.map(|(id, _)| id.as_str()).collect();
        write!(f, "Keyring({}; keys hidden)", ids.join(", "))
    }
}
