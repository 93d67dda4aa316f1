//! The operator's keys, which seal and open secrets.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;

/// The id of a key. Every sealed value contains the id of its key in plain text, so do not put anything secret into it.
///
/// ```
/// use fleetwright_region::secret::KeyId;
///
/// assert_eq!(KeyId::new("2026-05").unwrap().as_str(), "2026-05");
/// assert!(KeyId::new("May 2026").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// Creates an id from 1 to 32 of a-z, 0-9 and `-`. Returns `None` for any other text.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ((1..=32).contains(&text.len()) && text.chars().all(allowed)).then(|| Self(text.into()))
    }

    /// Returns the id as text.
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

/// The operator's keys. The first one seals; all of them open.
///
/// As text, each key is a line `id:key` with the 32 bytes of the key in base64, as `openssl rand -base64 32` prints them.
/// Empty lines and lines that begin with `#` are ignored. To rotate keys, insert a new line above the others, call
/// [`ServerKeys::reseal`](super::ServerKeys::reseal) and [`SealedStore::reseal`](super::SealedStore::reseal), then remove the old lines.
///
/// ```
/// use fleetwright_region::secret::{Keyring, Secret};
/// use fleetwright_runtime::entropy::OsEntropy;
/// use fleetwright_store::RecordId;
///
/// let keyring: Keyring = "# since May\nmay:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".parse()?;
/// assert_eq!(keyring.current().as_str(), "may");
///
/// let (record, other) = (RecordId::new("server-key", "1")?, RecordId::new("server-key", "2")?);
/// let sealed = keyring.seal(&record, "private_key", &Secret::new("hunter2"), &OsEntropy)?;
/// let opened = keyring.open(&record, "private_key", &sealed)?;
/// assert_eq!(opened.expose_text(), Some("hunter2"));
/// assert!(keyring.open(&other, "private_key", &sealed).is_err(), "bound to its record");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Keyring {
    first: (KeyId, Zeroizing<[u8; KEY_BYTES]>),
    others: Vec<(KeyId, Zeroizing<[u8; KEY_BYTES]>)>,
}

/// Why a keyring could not be read. It never shows the text, which contains keys.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// The file cannot be read.
    #[error("the keys in {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<std::io::Error>,
    },
    /// The environment variable is not set, or is not UTF-8 text.
    #[error("the environment variable {0} is not set or is not text: set it to lines of id:key")]
    NoVariable(String),
    /// There is no key.
    #[error("there is no key: expected a line id:key, with the 32 bytes of the key in base64")]
    Empty,
    /// A line is not a key.
    #[error("line {line} is not a key: expected {expected}")]
    InvalidLine {
        /// The line, counted from 1.
        line: usize,
        /// The accepted form.
        expected: &'static str,
    },
    /// Two keys have the same id.
    #[error("line {line} repeats the key id {id}: expected another id")]
    Duplicate {
        /// The line of the second one, counted from 1.
        line: usize,
        /// The id.
        id: KeyId,
    },
}

impl Keyring {
    /// Reads the keys from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a [keyring](Self).
    pub fn from_file(path: &Path) -> Result<Self, KeyringError> {
        let text = std::fs::read_to_string(path).map_err(|source| KeyringError::Unreadable {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        Zeroizing::new(text).parse()
    }

    /// Reads the keys from an environment variable. Prefer a file: the environment cannot be wiped, and child processes
    /// inherit it.
    ///
    /// # Errors
    ///
    /// The variable is not set, or is not a [keyring](Self).
    pub fn from_env(variable: &str) -> Result<Self, KeyringError> {
        let text = std::env::var(variable);
        let text = text.map_err(|_| KeyringError::NoVariable(variable.to_owned()))?;
        Zeroizing::new(text).parse()
    }

    /// Returns the id of the key that seals.
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
            let (id, key) =
                read(text).map_err(|expected| KeyringError::InvalidLine { line, expected })?;
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
    // A placeholder that was never replaced by a key.
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
