//! The failure of a call, as GARM sees it: an exit code, and one message on standard error.

use std::fmt;

use fleetwright::{ErrorKind, ProvisionError};

/// Why a call failed. `Display` is the message for the operator; it never contains a secret.
///
/// ```
/// use garm_provider_fleetwright::failure::Failure;
///
/// let failure = Failure::not_found("there is no instance i-1");
/// assert_eq!((failure.exit_code(), failure.to_string().as_str()), (30, "there is no instance i-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    exit: u8,
    message: String,
}

impl Failure {
    /// A failure without a code of its own: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            message: message.into(),
        }
    }

    /// Something that does not exist: exit code 30.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self {
            exit: 30,
            message: message.into(),
        }
    }

    /// More than one instance where there must be one: exit code 31.
    pub fn duplicate(message: impl Into<String>) -> Self {
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
    pub fn during(mut self, what: &str) -> Self {
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
        match error.kind() {
            ErrorKind::NotFound => Self::not_found(error.to_string()),
            _ => Self::new(error.to_string()),
        }
    }
}
