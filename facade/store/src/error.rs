//! Errors of a store, with the advice that a controller acts on.
//!
//! Every store returns the same variants for the same situation, so that a program can handle
//! errors without knowing which store it runs on. A message never repeats its source and never
//! contains the value of a record.

use std::{error::Error, fmt, sync::Arc};

use crate::{Check, Damaged, Key, Revision};

/// The result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of a store.
///
/// [`effect`](Self::effect) says whether anything may have been written, and
/// [`advice`](Self::advice) what to do next. Both depend on the variant alone.
///
/// ```
/// use fleetwright_store::{Advice, Effect, StoreError};
///
/// let error = StoreError::Unavailable { reason: "disk busy".into(), source: None };
/// assert_eq!(error.effect(), Effect::None);
/// assert_eq!(error.advice(), Advice::Later);
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A check failed, or a unique value is taken. Nothing was written.
    #[error("{0}")]
    Conflict(Box<Conflict>),
    /// The request is invalid and will never succeed. Nothing was written.
    #[error("invalid request: {0}")]
    Invalid(Invalid),
    /// Changes after this revision were compacted: list again and watch from there.
    #[error(
        "changes after revision {requested} are compacted; the oldest to watch from is {oldest}"
    )]
    Compacted {
        /// The requested start of the watch.
        requested: Revision,
        /// The oldest revision that a watch can start from.
        oldest: Revision,
    },
    /// The revision is newer than the store: it is from another store, or this one was restored
    /// from a backup. List again and watch from there.
    #[error("revision {requested} is ahead of the store, which is at {head}")]
    Ahead {
        /// The requested start of the watch.
        requested: Revision,
        /// The newest revision of the store.
        head: Revision,
    },
    /// The store is unreachable or busy. Nothing was written.
    #[error("store unavailable: {reason}")]
    Unavailable {
        /// The reason.
        reason: String,
        /// The underlying error.
        source: Option<Cause>,
    },
    /// The store is full. Nothing was written, and existing records can be read. Compacting frees
    /// space, and so does deleting once there is space for the delete itself.
    #[error("store full: {reason}")]
    Full {
        /// What is exhausted.
        reason: String,
        /// The underlying error.
        source: Option<Cause>,
    },
    /// Stored data is damaged.
    #[error("store corrupt: {what}")]
    Corrupt {
        /// What is damaged, and where.
        what: String,
        /// The underlying error.
        source: Option<Cause>,
    },
    /// The data belongs to another program or a newer version, or another process uses it
    /// incompatibly.
    #[error("store incompatible: {reason}")]
    Incompatible {
        /// What was found and what was expected.
        reason: String,
    },
    /// The transaction was sent, and its outcome is unknown: all of it was committed, or nothing.
    #[error("outcome unknown: {reason}")]
    UnknownOutcome {
        /// The reason.
        reason: String,
        /// The underlying error.
        source: Option<Cause>,
    },
}

/// The underlying error, cheap to clone.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// The effect of a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing was written.
    None,
    /// Everything was written, or nothing.
    Unknown,
}

/// What to do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Do not retry: it fails until the request, the program or the data changes.
    GiveUp,
    /// Read again, decide again, and send a new transaction.
    ReadAgain,
    /// Send the same transaction again later.
    Later,
}

impl StoreError {
    /// Returns whether anything may have been written.
    pub fn effect(&self) -> Effect {
        match self {
            Self::UnknownOutcome { .. } => Effect::Unknown,
            Self::Conflict(_)
            | Self::Invalid(_)
            | Self::Compacted { .. }
            | Self::Ahead { .. }
            | Self::Unavailable { .. }
            | Self::Full { .. }
            | Self::Corrupt { .. }
            | Self::Incompatible { .. } => Effect::None,
        }
    }

    /// Returns what to do next.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Conflict(_)
            | Self::Compacted { .. }
            | Self::Ahead { .. }
            | Self::UnknownOutcome { .. } => Advice::ReadAgain,
            Self::Unavailable { .. } | Self::Full { .. } => Advice::Later,
            Self::Invalid(_) | Self::Corrupt { .. } | Self::Incompatible { .. } => Advice::GiveUp,
        }
    }

    /// Returns the conflict, if the error is one.
    pub fn conflict(&self) -> Option<&Conflict> {
        if let Self::Conflict(conflict) = self {
            Some(conflict)
        } else {
            None
        }
    }
}

impl From<Invalid> for StoreError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Conflict> for StoreError {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(Box::new(conflict))
    }
}

impl From<Damaged> for StoreError {
    fn from(damaged: Damaged) -> Self {
        let Damaged {
            id,
            revision,
            reason,
            is_newer,
        } = damaged;
        let what = format!("{id} at revision {revision}: {reason}");
        if is_newer {
            return Self::Incompatible { reason: what };
        }
        Self::Corrupt { what, source: None }
    }
}

/// A failed check, and what was found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The part of the transaction that failed.
    pub part: Part,
    /// The failed check. For a write, it is that the value of a unique index is unclaimed.
    pub check: Check,
    /// What was found.
    pub found: Found,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, check, found } = self;
        write!(f, "conflict in {part}: {check}, but {found}")
    }
}

impl Error for Conflict {}

/// A part of a transaction, with its position from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A check.
    Check(usize),
    /// A write.
    Write(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(position) => write!(f, "check {position}"),
            Self::Write(position) => write!(f, "write {position}"),
        }
    }
}

/// What a failed check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The record does not exist.
    Absent,
    /// The record exists at this revision.
    At(Revision),
    /// Another record has the value.
    HeldBy(Key),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("it is absent"),
            Self::At(revision) => write!(f, "it is at revision {revision}"),
            Self::HeldBy(key) => write!(f, "{key} holds it"),
        }
    }
}

/// An invalid request.
///
/// ```
/// use fleetwright_store::Invalid;
///
/// let error = Invalid::new("must not be empty").within("the key");
/// assert_eq!(error.to_string(), "the key: must not be empty");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    reason: String,
}

impl Invalid {
    /// Creates an error from a message that says what is wrong and what is expected.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// Prefixes the message with the part that is invalid.
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> Self {
        Self {
            reason: format!("{place}: {}", self.reason),
        }
    }
}
