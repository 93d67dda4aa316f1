//! What is stored of a saga.

use std::fmt;

use fleetwright_store::{Document, RecordId, Revision};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Actor, Allocation, Amounts, Exceeded};

/// Work on a record here and on its allocation elsewhere, which ends with both or neither.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Saga {
    /// The allocation as it is before; for a creation, as it is to be.
    pub allocation: Allocation,
    /// What is done.
    pub operation: Operation,
    /// Who asked for it.
    pub begun_by: Actor,
    /// What the local step needs to know. It is the embedding program's, and not shown.
    pub payload: Value,
    /// Where it is.
    pub phase: Phase,
    /// How often the phase was tried in vain.
    pub attempts: u32,
    /// What the last attempt said.
    pub last_error: Option<String>,
    /// Whether it is left to itself or should be looked at.
    pub queue: Queue,
    /// When it is looked after next, as milliseconds since 1970.
    pub(super) due: u64,
    /// The commit that began it; nothing in the record of that very commit, whose revision it is.
    pub(super) begun: Option<Revision>,
}

/// What a saga does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Allocates, then lets the local step make the record.
    Create,
    /// Lets the local step change the record, with what it costs from then on.
    Update {
        /// What it costs from then on.
        after: Amounts,
    },
    /// Releases; the record is gone already.
    Release,
}

/// Where a saga is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The remote ledger is asked for what the record will cost more.
    Charge,
    /// The record is made or changed here.
    Local,
    /// The remote ledger is given back what the record no longer costs. This is never undone.
    Settle,
    /// The remote ledger is asked to have it as before.
    Undo(Reason),
}

/// Why a saga was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// There would be more than the limit (HTTP 403).
    #[error(transparent)]
    Exceeded(Exceeded),
    /// The remote ledger refused.
    #[error("{0}")]
    Refused(String),
    /// The local step refused.
    #[error("{0}")]
    Local(String),
    /// It was tried too often in vain (HTTP 503).
    #[error("given up: {0}")]
    GivenUp(String),
}

/// Who looks after a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// It goes its way.
    Waiting,
    /// It has failed so often that somebody should look. It is tried on all the same.
    Stuck,
}

impl Queue {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Stuck => "stuck",
        }
    }
}

impl Document for Saga {
    const KIND: &'static str = "saga";
}

impl Saga {
    /// What it is about.
    pub fn pays_for(&self) -> &RecordId {
        &self.allocation.pays_for
    }
}

impl fmt::Debug for Saga {
    /// Without the payload: what a tenant has sent may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saga")
            .field("allocation", &self.allocation)
            .field("operation", &self.operation)
            .field("begun_by", &self.begun_by)
            .field("phase", &self.phase)
            .field("attempts", &self.attempts)
            .field("last_error", &self.last_error)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
