//! What can go wrong, in the words that a controller acts on.

use std::{error::Error, fmt, sync::Arc};

use crate::{Check, Damaged, Key, Revision};

/// The result of a call of a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store did not do what it was asked to.
///
/// [`effect`](Self::effect) tells whether anything may have been written, [`advice`](Self::advice) what to do
/// next; both follow from the variant alone.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A check does not hold, or a unique value is taken. Nothing was written.
    #[error("{0}")]
    Conflict(Box<Conflict>),
    /// The request is wrong in itself and will always be. Nothing was written.
    #[error("invalid request: {0}")]
    Invalid(Invalid),
    /// The changes after this revision are no longer all there: list again and watch from there.
    #[error("changes after revision {asked} are compacted; the oldest to watch from is {oldest}")]
    Compacted {
        /// Where the watch was to begin.
        asked: Revision,
        /// The oldest revision that a watch can begin at now.
        oldest: Revision,
    },
    /// The store has not reached this revision: it comes from another store, or this one was restored from
    /// an older copy. List again and watch from there.
    #[error("revision {asked} is ahead of the store, which is at {head}")]
    Ahead {
        /// Where the watch was to begin.
        asked: Revision,
        /// Where the store is.
        head: Revision,
    },
    /// The store cannot be reached or is busy. Nothing was written.
    #[error("store unavailable: {reason}")]
    Unavailable {
        /// What is in the way.
        reason: String,
        /// What said so.
        source: Option<Cause>,
    },
    /// There is no room for more. Nothing was written, and what is there can be read. Compacting makes room,
    /// and so does deleting once there is room for that.
    #[error("store full: {reason}")]
    Full {
        /// What is used up.
        reason: String,
        /// What said so.
        source: Option<Cause>,
    },
    /// What is stored is not what a store wrote.
    #[error("store corrupt: {what}")]
    Corrupt {
        /// What and where.
        what: String,
        /// What said so.
        source: Option<Cause>,
    },
    /// The data are of another program, or of a newer version of this one, or in use in another way.
    #[error("store incompatible: {reason}")]
    Incompatible {
        /// What was found and what was expected.
        reason: String,
    },
    /// The transaction was sent, and nobody knows whether it was committed. All of it was or nothing.
    #[error("outcome unknown: {reason}")]
    UnknownOutcome {
        /// What happened.
        reason: String,
        /// What said so.
        source: Option<Cause>,
    },
}

/// The error below, cheap to clone.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Whether a transaction that failed has written something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// All of it, or nothing.
    Unknown,
}

/// What to do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Do not repeat it: it fails again until somebody changes the request, the program or the data.
    GiveUp,
    /// Read what is there now, decide again, and send a new transaction.
    ReadAgain,
    /// Send the same again, later.
    Later,
}

impl StoreError {
    /// Whether anything may have been written.
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

    /// What to do next.
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

    /// The conflict, if it is one.
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
        Self::Corrupt {
            what: format!(
                "{} at revision {}: {}",
                damaged.id, damaged.revision, damaged.reason
            ),
            source: None,
        }
    }
}

/// Which check did not hold, and what was found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which part of the transaction it belongs to.
    pub part: Part,
    /// What did not hold. For a write it is that the value of a unique index is unclaimed.
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

/// A part of a transaction, by its position from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Among the checks.
    Check(usize),
    /// Among the writes.
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

/// What a check found instead of what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no such record.
    Absent,
    /// The record is there, at this revision.
    At(Revision),
    /// This record holds the value.
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

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    reason: String,
}

impl Invalid {
    /// In words: what, and what is wanted instead.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// The same about a part of something larger.
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> Self {
        Self {
            reason: format!("{place}: {}", self.reason),
        }
    }
}
