//! The failure of a call, as GARM sees it: an exit code, and one message on standard error.

use std::fmt;

use fleetwright::{ErrorKind, ProvisionError};

/// Why a call failed. `Display` is the message for the operator; it never contains a secret.
///
/// ```
/// let failure = garm_provider_fleetwright::run(|_| None, std::io::empty()).unwrap_err();
/// assert_eq!(failure.exit_code(), 1);
/// assert!(failure.to_string().starts_with("GARM_COMMAND is not set"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    exit: u8,
    message: String,
}

impl Failure {
    /// A failure without a code of its own: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            message: message.into(),
        }
    }

    /// Something that does not exist: exit code 30.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self {
            exit: 30,
            message: message.into(),
        }
    }

    /// More than one instance where there must be one: exit code 31.
    pub(crate) fn duplicate(message: impl Into<String>) -> Self {
        Self {
            exit: 31,
            message: message.into(),
        }
    }

    /// Returns the exit code of the process.
    pub const fn exit_code(&self) -> u8 {
        self.exit
    }

    /// Adds what was being done.
    #[must_use]
    pub(crate) fn during(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<ProvisionError> for Failure {
    fn from(error: ProvisionError) -> Self {
        if error.kind() == ErrorKind::NotFound {
            Self::not_found(error.to_string())
        } else {
            Self::new(error.to_string())
        }
    }
}
