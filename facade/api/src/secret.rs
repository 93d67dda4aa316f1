//! Values with secrets: what `Debug` must not show.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ConsoleSession, SshKey};

/// User data in base64. `Debug` shows only its length, because user data may contain secrets.
///
/// ```
/// use fleetwright_api::UserDataText;
///
/// let text = UserDataText("IyEvYmluL3NoCg==".to_owned());
/// assert_eq!(format!("{text:?}"), "UserDataText(16 characters)");
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = "byte"))]
#[serde(transparent)]
pub struct UserDataText(pub String);

impl fmt::Debug for UserDataText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserDataText({} characters)", self.0.chars().count())
    }
}

impl fmt::Debug for SshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshKey").finish_non_exhaustive()
    }
}

impl fmt::Debug for ConsoleSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleSession")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
