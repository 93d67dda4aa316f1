//! Secret bytes in memory.

use std::fmt;

use zeroize::Zeroizing;

/// Secret bytes. They are wiped when they are dropped, and only [`expose`](Self::expose) returns them.
///
/// A secret cannot be cloned, compared, displayed or serialized, so that it does not leak by accident. Its `Debug` output is
/// `Secret(hidden)`.
///
/// ```
/// use fleetwright_region::secret::Secret;
///
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(hidden)");
/// assert_eq!(secret.expose_text(), Some("hunter2"));
/// ```
///
/// ```compile_fail
/// # use fleetwright_region::secret::Secret;
/// println!("{}", Secret::new(vec![1]));
/// ```
///
/// ```compile_fail
/// # use fleetwright_region::secret::Secret;
/// serde_json::to_string(&Secret::new(vec![1]));
/// ```
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Returns the bytes. Authorize the caller first.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes as text, or `None` if they are not UTF-8.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
