//! The verdict on a clause that was run.
//!
//! Owns the rule that gives every outcome a status and a reason.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Failure, Outcome, Pass};

/// The status of a clause in reports. Serialized in snake case: `not_run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The promise holds, or the weaker one that is declared.
    Pass,
    /// The capability is not declared, and its use is refused without effect.
    Refused,
    /// The subject does not claim to do this.
    NotClaimed,
    /// The situation of the clause cannot occur with this subject, as its harness declares.
    NotApplicable,
    /// The promise is broken.
    Fail,
    /// The promise is broken by a peer that is known to differ, and a waiver says so.
    Waived,
    /// The harness does not offer what the clause needs.
    NotRun,
    /// The kit or the harness failed, not the subject.
    KitError,
}

impl Status {
    /// Returns the status in words, for messages and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Refused => "refused",
            Self::NotClaimed => "not claimed",
            Self::NotApplicable => "not applicable",
            Self::Fail => "fail",
            Self::Waived => "waived",
            Self::NotRun => "not run",
            Self::KitError => "kit error",
        }
    }

    /// Whether a subject with this status keeps the clause. A waived clause is not kept, and a
    /// clause that was not run proves nothing.
    pub const fn is_conformant(self) -> bool {
        match self {
            Self::Pass | Self::Refused | Self::NotClaimed | Self::NotApplicable => true,
            Self::Fail | Self::Waived | Self::NotRun | Self::KitError => false,
        }
    }
}

/// What detected a violation. Tests of a kit with mutants need it: the body of a clause must detect
/// the mutants of that clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetectedBy {
    /// The body of the clause, or a call that panicked.
    #[default]
    Body,
    /// A call that did not return within its timeout.
    Timeout,
    /// The check for leftovers after the clause.
    LeakProbe,
    /// A failed call of the cleanup after the clause.
    Cleanup,
}

/// A clause that was run.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_clause_engine::{Failure, Status, Verdict};
///
/// let outcome = Err(Failure::violated("1 + 1 is 3"));
/// let verdict = Verdict::new("ADD-01", outcome, Duration::from_millis(3));
/// assert_eq!(verdict.status, Status::Fail);
/// assert_eq!(verdict.reason.as_deref(), Some("1 + 1 is 3"));
/// ```
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The id of the clause.
    pub id: &'static str,
    /// The status of the clause.
    pub status: Status,
    /// Why; `None` for a plain pass.
    pub reason: Option<String>,
    /// What detected the violation. Without a violation it has no meaning.
    pub detected_by: DetectedBy,
    /// The calls that were made and what they returned, in order; empty if nothing records them.
    pub transcript: Vec<String>,
    /// How long the clause took, in real time. For reports; no judgement depends on it.
    pub duration: Duration,
}

impl Verdict {
    /// Judges an outcome.
    pub fn new(id: &'static str, outcome: Outcome, duration: Duration) -> Self {
        let detected_by = match &outcome {
            Err(Failure::Leaked(_)) => DetectedBy::LeakProbe,
            Err(Failure::CleanupFailed(_)) => DetectedBy::Cleanup,
            Ok(_)
            | Err(
                Failure::Violated(_)
                | Failure::NotRun(_)
                | Failure::NotApplicable(_)
                | Failure::KitError(_),
            ) => DetectedBy::default(),
        };
        let (status, reason) = match outcome {
            Ok(Pass::Held) => (Status::Pass, None),
            Ok(Pass::Weaker) => (
                Status::Pass,
                Some("keeps the weaker promise that it declares".to_owned()),
            ),
            Ok(Pass::Refused) => (
                Status::Refused,
                Some("not declared, and refused without effect".to_owned()),
            ),
            Ok(Pass::NotClaimed) => (Status::NotClaimed, Some("not claimed".to_owned())),
            Err(
                Failure::Violated(observed)
                | Failure::Leaked(observed)
                | Failure::CleanupFailed(observed),
            ) => (Status::Fail, Some(observed)),
            Err(Failure::NotRun(missing)) => (Status::NotRun, Some(missing)),
            Err(Failure::NotApplicable(reason)) => (Status::NotApplicable, Some(reason)),
            Err(Failure::KitError(problem)) => (Status::KitError, Some(problem)),
        };
        Self {
            id,
            status,
            reason,
            detected_by,
            transcript: Vec::new(),
            duration,
        }
    }

    /// Returns the result in a few words that tell a broken promise from a clause that was not tested:
    /// `violated`, `leak`, `cleanup failed`, `not run, so nothing is known`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use fleetwright_clause_engine::{Failure, Verdict};
    ///
    /// let missing = Err(Failure::NotRun("the harness has no oracle".to_owned()));
    /// let verdict = Verdict::new("ADD-01", missing, Duration::ZERO);
    /// assert_eq!(verdict.headline(), "not run, so nothing is known");
    /// ```
    pub const fn headline(&self) -> &'static str {
        match (self.status, self.detected_by) {
            (Status::Fail, DetectedBy::Body) => "violated",
            (Status::Fail, DetectedBy::Timeout) => "violated by a call that did not return",
            (Status::Fail, DetectedBy::LeakProbe) => "leak",
            (Status::Fail, DetectedBy::Cleanup) => "cleanup failed",
            (Status::NotRun, _) => "not run, so nothing is known",
            (Status::KitError, _) => "kit error, so nothing is known",
            (
                Status::Pass
                | Status::Refused
                | Status::NotClaimed
                | Status::NotApplicable
                | Status::Waived,
                _,
            ) => self.status.word(),
        }
    }

    /// Returns the same verdict with another status and its reason.
    #[must_use]
    pub fn with_status(mut self, status: Status, reason: impl Into<String>) -> Self {
        self.status = status;
        self.reason = Some(reason.into());
        self
    }
}
