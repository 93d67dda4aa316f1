//! Mistakes made on purpose, at the seams between the façade and what it runs on.
//!
//! Each one proves that the simulation finds this kind of bug. The code under test has no hooks for them.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A failed call is repeated at once: the controller is configured without a delay.
    BackoffIgnored,
}

impl Mistake {
    /// Every mistake.
    pub const ALL: &'static [Self] = &[Self::BackoffIgnored];

    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BackoffIgnored => "backoff-ignored",
        }
    }
}
