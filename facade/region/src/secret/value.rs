//! A value that is not to be seen.

use std::fmt;

use zeroize::Zeroizing;

/// Bytes that are wiped when they are dropped, and shown by [`expose`](Self::expose) alone.
///
/// It is not copied, compared, printed or serialized: each of these would be a way out that nobody meant. Its `Debug` says
/// that it is one.
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
    /// Takes the bytes over.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// The bytes, for whoever has asked whether they may.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, if they are.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
