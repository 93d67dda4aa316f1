//! A text that no output shows.

use std::fmt;

use serde::Deserialize;

/// A secret text, such as the instance token. `Debug` shows only its length, and there is no `Display`.
///
/// ```
/// use garm_provider_fleetwright::secret::Secret;
///
/// let token: Secret = serde_json::from_str("\"hunter2\"")?;
/// assert_eq!(format!("{token:?}"), "Secret(7 bytes)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for the user data of the machine and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}
