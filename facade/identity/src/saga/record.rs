//! What is stored of a saga, and what follows from it: pure.
//!
//! ```text
//! create:   Charge ──────────────► Local ──► (end)
//! update:   Charge (what grows) ─► Local ──► Settle (what shrinks) ──► (end)
//! release:                 with the caller's ► Settle ───────────────► (end)
//!              └─ refused, given up ─┴─► Undo ──► (end)
//! ```
//!
//! What grows is charged before the local step and what shrinks is given back after it, so that undoing never needs quota
//! that somebody else may have taken meanwhile.

use std::{fmt, time::Duration};

use fleetwright_store::{Document, RecordId, Revision};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Ticket;
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

/// A request to the remote ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Allocate(Allocation),
    Update(Allocation),
    Release(RecordId),
}

/// What a saga becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    Saga(Box<Saga>),
    End,
}

impl Saga {
    /// How it begins.
    pub(super) fn begin(
        allocation: Allocation,
        operation: Operation,
        begun_by: Actor,
        payload: Value,
    ) -> Self {
        let mut saga = Self {
            allocation,
            operation,
            begun_by,
            payload,
            phase: Phase::Charge,
            attempts: 0,
            last_error: None,
            queue: Queue::Waiting,
            due: 0,
            begun: None,
        };
        saga.phase = match &saga.operation {
            Operation::Create => Phase::Charge,
            Operation::Update { .. } if saga.grows() => Phase::Charge,
            Operation::Update { .. } => Phase::Local,
            Operation::Release => Phase::Settle,
        };
        saga
    }

    /// What it is about.
    pub fn pays_for(&self) -> &RecordId {
        &self.allocation.pays_for
    }

    /// What the remote ledger is asked in this phase; nothing in the local one.
    pub(super) fn request(&self) -> Option<Request> {
        let before = || self.allocation.clone();
        match (&self.phase, &self.operation) {
            (Phase::Local, Operation::Create | Operation::Update { .. } | Operation::Release) => {
                None
            }
            (Phase::Charge, Operation::Create) => Some(Request::Allocate(before())),
            (Phase::Charge, Operation::Update { .. }) => {
                Some(Request::Update(self.sized(self.both())))
            }
            (Phase::Settle, Operation::Update { after }) => {
                Some(Request::Update(self.sized(after.clone())))
            }
            (Phase::Undo(_), Operation::Update { .. }) => Some(Request::Update(before())),
            (Phase::Settle | Phase::Undo(_), Operation::Create)
            | (Phase::Charge | Phase::Settle | Phase::Undo(_), Operation::Release) => {
                Some(Request::Release(self.pays_for().clone()))
            }
        }
    }

    /// The ticket of this phase's request, if this is the record of revision `read_at`.
    pub(super) fn ticket(&self, read_at: Revision) -> Ticket {
        let step = match self.phase {
            Phase::Charge | Phase::Local => 1,
            Phase::Undo(_) => 2,
            Phase::Settle => 3,
        };
        let begun = self.begun.unwrap_or(read_at);
        Ticket { begun, step }
    }

    /// What it becomes when this phase is done.
    pub(super) fn done(&self, read_at: Revision) -> Next {
        match (&self.phase, &self.operation) {
            (Phase::Charge, Operation::Create | Operation::Update { .. }) => {
                self.moved(read_at, Phase::Local)
            }
            (Phase::Local, Operation::Update { after }) if self.both().normal() != *after => {
                self.moved(read_at, Phase::Settle)
            }
            (Phase::Local, Operation::Create | Operation::Update { .. } | Operation::Release)
            | (Phase::Charge, Operation::Release)
            | (
                Phase::Settle | Phase::Undo(_),
                Operation::Create | Operation::Update { .. } | Operation::Release,
            ) => Next::End,
        }
    }

    /// What it becomes when it cannot go on.
    pub(super) fn undone(&self, read_at: Revision, reason: Reason) -> Next {
        match &self.operation {
            // Nothing was charged, so there is nothing to give back.
            Operation::Update { .. } if !self.grows() => Next::End,
            Operation::Create | Operation::Update { .. } | Operation::Release => {
                self.moved(read_at, Phase::Undo(reason))
            }
        }
    }

    /// What it becomes when this phase failed and is to be tried again.
    pub(super) fn failed(&self, read_at: Revision, error: &str, queue: Queue) -> Self {
        Self {
            attempts: self.attempts.saturating_add(1),
            last_error: Some(error.to_owned()),
            queue,
            begun: self.begun.or(Some(read_at)),
            ..self.clone()
        }
    }

    fn moved(&self, read_at: Revision, phase: Phase) -> Next {
        Next::Saga(Box::new(Self {
            phase,
            attempts: 0,
            queue: Queue::Waiting,
            begun: self.begun.or(Some(read_at)),
            ..self.clone()
        }))
    }

    fn both(&self) -> Amounts {
        match &self.operation {
            Operation::Update { after } => self.allocation.amounts.larger(after),
            Operation::Create | Operation::Release => self.allocation.amounts.clone(),
        }
    }

    /// Whether an update costs more of something.
    fn grows(&self) -> bool {
        self.both().normal() != self.allocation.amounts
    }

    fn sized(&self, amounts: Amounts) -> Allocation {
        Allocation {
            amounts,
            ..self.allocation.clone()
        }
    }

    pub(super) fn due_in(mut self, now: Duration, delay: Duration) -> Self {
        let due = now.saturating_add(delay).as_millis();
        self.due = u64::try_from(due).unwrap_or(u64::MAX);
        self
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
