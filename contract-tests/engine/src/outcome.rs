//! What the test of a clause returns.
//!
//! Owns the result types. There is no "skipped": a test either proves a promise, proves that the
//! subject refuses what it does not declare, or says why it could not be run.

use std::fmt;

/// The result of a clause's test.
pub type Outcome = Result<Pass, Failure>;

/// Which promise was proven.
///
/// ```
/// use fleetwright_clause_engine::Pass;
///
/// // A clause that tests several cases returns the weakest of their results.
/// let results = [Pass::Held, Pass::Refused, Pass::Held];
/// let result = results.into_iter().fold(Pass::Held, Pass::weaker);
/// assert_eq!(result, Pass::Refused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The behaviour itself.
    Held,
    /// The subject does not declare the capability, and refuses its use without effect.
    Refused,
    /// The subject declares a weaker promise, and keeps that one.
    Weaker,
    /// The subject does not claim to do this, and there is no call that it could refuse: a store
    /// that loses its records with its process, for instance.
    NotClaimed,
}

impl Pass {
    /// Returns the weaker of two results of one clause: anything is weaker than [`Pass::Held`].
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        if self == Self::Held { other } else { self }
    }
}

/// Why a test ended early.
///
/// ```
/// use fleetwright_clause_engine::{Failure, Outcome, Pass};
///
/// fn add_01_adds(sum: Result<u32, std::num::ParseIntError>) -> Outcome {
///     let sum = sum.map_err(|error| Failure::call_failed("add", &error))?;
///     if sum == 2 {
///         Ok(Pass::Held)
///     } else {
///         Err(Failure::violated(format!("1 + 1 is {sum}")))
///     }
/// }
///
/// assert_eq!(add_01_adds(Ok(2)), Ok(Pass::Held));
/// assert_eq!(add_01_adds(Ok(3)), Err(Failure::Violated("1 + 1 is 3".to_owned())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The subject broke the promise. The text says what was observed.
    Violated(String),
    /// The test passed, but something of it is left that the subject had to remove. The text says
    /// what.
    Leaked(String),
    /// The test passed, but a call that removes what it left failed. The text says which call, and how.
    CleanupFailed(String),
    /// The harness does not offer what the clause needs. The text says what is missing.
    NotRun(String),
    /// The harness declares that the situation of the clause cannot occur. The text says why.
    NotApplicable(String),
    /// The suite or the harness failed, not the subject.
    KitError(String),
}

impl Failure {
    /// The subject broke the promise; `observed` says how.
    pub fn violated(observed: impl Into<String>) -> Self {
        Self::Violated(observed.into())
    }

    /// A call that must succeed returned an error.
    pub fn call_failed(call: &str, error: &impl fmt::Display) -> Self {
        Self::Violated(format!("{call} failed: {error}"))
    }

    /// Returns the text, which says what happened.
    pub fn text(&self) -> &str {
        match self {
            Self::Violated(text)
            | Self::Leaked(text)
            | Self::CleanupFailed(text)
            | Self::NotRun(text)
            | Self::NotApplicable(text)
            | Self::KitError(text) => text,
        }
    }
}

/// Ends a test with a violation unless `holds`.
///
/// ```
/// use fleetwright_clause_engine::{Failure, require};
///
/// assert_eq!(require(true, || unreachable!()), Ok(()));
/// let failure = require(1 > 2, || "1 is not greater".to_owned());
/// assert_eq!(failure, Err(Failure::violated("1 is not greater")));
/// ```
///
/// # Errors
/// [`Failure::Violated`] with the text that `observed` returns, which is only called then.
pub fn require(holds: bool, observed: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(Failure::Violated(observed()))
    }
}
