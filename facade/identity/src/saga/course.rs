//! What follows from what is stored of a saga: pure.
//!
//! ```text
//! create:   Charge ──────────────► Local ─────────────────────────────► (end)
//! update:   Charge (what grows) ─► Local ──► Settle (what shrinks) ───► (end)
//! release:  (the caller's commit deletes) ─► Settle ──────────────────► (end)
//!              └─ refused, given up ─┴─────► Undo (as it was before) ─► (end)
//! ```
//!
//! What grows is charged before the local step and what shrinks is given back after it, so that undoing never needs quota
//! that somebody else may have taken meanwhile.

use std::time::Duration;

use fleetwright_store::{RecordId, Revision};
use serde_json::Value;

use super::{Operation, Phase, Queue, Reason, Saga, Ticket};
use crate::{Actor, Allocation, Amounts};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActorName, OrganizationId, ProjectId, QuotaKind};

    fn cost(servers: u64, gpus: u64) -> Amounts {
        let amounts = Amounts::new().with(QuotaKind::servers(), servers);
        amounts.with(QuotaKind::gpus(), gpus).normal()
    }

    fn saga(operation: Operation) -> Saga {
        let id = RecordId::new("instance", "a").unwrap();
        let (organization, project) = (OrganizationId::new(uuid::Uuid::nil()), uuid::Uuid::nil());
        let allocation = Allocation::new(id, organization, ProjectId::new(project), cost(2, 4));
        let actor = Actor::User(ActorName::new("ada").unwrap());
        Saga::begin(allocation, operation, actor, Value::Null)
    }

    fn update(servers: u64, gpus: u64) -> Saga {
        let after = cost(servers, gpus);
        saga(Operation::Update { after })
    }

    /// The phases from the beginning to the end, and the amounts that are asked for on the way.
    fn way(mut saga: Saga, refused_in: Option<&Phase>) -> Vec<(&'static str, Option<Amounts>)> {
        let mut way = Vec::new();
        loop {
            let name = match saga.phase {
                Phase::Charge => "charge",
                Phase::Local => "local",
                Phase::Settle => "settle",
                Phase::Undo(_) => "undo",
            };
            let asked = saga.request().map(|request| match request {
                Request::Allocate(allocation) | Request::Update(allocation) => allocation.amounts,
                Request::Release(_) => Amounts::new(),
            });
            way.push((name, asked));
            let next = if Some(&saga.phase) == refused_in {
                saga.undone(Revision(1), Reason::Refused(String::new()))
            } else {
                saga.done(Revision(1))
            };
            match next {
                Next::Saga(next) => saga = *next,
                Next::End => return way,
            }
        }
    }

    #[test]
    fn every_way_from_the_beginning_to_the_end() {
        let nothing = Some(Amounts::new());
        let (all, local) = (Some(cost(2, 4)), ("local", None));
        let refused = |saga| way(saga, Some(&Phase::Local));
        assert_eq!(
            way(saga(Operation::Create), None),
            [("charge", all.clone()), local.clone()]
        );
        let undone = [
            ("charge", all.clone()),
            local.clone(),
            ("undo", nothing.clone()),
        ];
        assert_eq!(refused(saga(Operation::Create)), undone);
        assert_eq!(way(saga(Operation::Release), None), [("settle", nothing)]);
        // What grows first, what shrinks last, and nothing that does neither.
        let grow = ("charge", Some(cost(2, 8)));
        assert_eq!(way(update(2, 8), None), [grow.clone(), local.clone()]);
        assert_eq!(
            way(update(1, 0), None),
            [local.clone(), ("settle", Some(cost(1, 0)))]
        );
        let both = [grow.clone(), local.clone(), ("settle", Some(cost(1, 8)))];
        assert_eq!(way(update(1, 8), None), both);
        assert_eq!(way(update(2, 4), None), vec![local.clone()]);
        // Back to what it was, if anything was charged.
        assert_eq!(refused(update(1, 8)), [grow, local.clone(), ("undo", all)]);
        assert_eq!(refused(update(1, 0)), [local]);
    }

    #[test]
    fn a_ticket_is_of_the_commit_that_began_it_however_often_it_is_written() {
        let begun = update(1, 8);
        assert_eq!(
            begun.ticket(Revision(7)),
            Ticket {
                begun: Revision(7),
                step: 1
            }
        );
        let failed = begun.failed(Revision(7), "no", Queue::Stuck);
        assert_eq!(failed.ticket(Revision(9)), begun.ticket(Revision(7)));
        let again = failed.failed(Revision(9), "no", Queue::Stuck);
        assert_eq!(
            (again.attempts, again.ticket(Revision(11))),
            (2, begun.ticket(Revision(7)))
        );
        // A new phase begins to count anew, under the next ticket.
        let Next::Saga(undo) = again.undone(Revision(11), Reason::Refused(String::new())) else {
            panic!("something was charged");
        };
        assert_eq!((undo.attempts, undo.queue), (0, Queue::Waiting));
        assert_eq!(
            undo.ticket(Revision(13)),
            Ticket {
                begun: Revision(7),
                step: 2
            }
        );
        let Next::Saga(local) = begun.done(Revision(7)) else {
            panic!("the local step is next");
        };
        let Next::Saga(settle) = local.done(Revision(8)) else {
            panic!("something shrinks");
        };
        assert_eq!(
            settle.ticket(Revision(9)),
            Ticket {
                begun: Revision(7),
                step: 3
            }
        );
    }
}
