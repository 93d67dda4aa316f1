//! The one connection that writes, and what it does when the disk does not go along.

use std::sync::Arc;

use fleetwright_store::{History, Prepared, Result, Revision, Schema, StoreError};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::{
    error::{is_full, told, unknown},
    lock::Lock,
    queue::{Job, Order},
    read, sql, write,
};

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) schema: Arc<Schema>,
    pub(crate) keep_commits: u64,
    /// The store's revision, for those who wait for the next.
    pub(crate) head: watch::Sender<Revision>,
    /// Whether a commit failed in a way that leaves it open whether it is in the log.
    pub(crate) is_unsettled: bool,
    /// Held for as long as the connection is open.
    pub(crate) _lock: Arc<Lock>,
}

/// What became of a group.
enum Attempt {
    /// It is on the disk: one answer for each.
    Committed(Vec<Result<Revision>>),
    /// Nothing of it is, and it would be the same for each alone.
    Failed(StoreError),
    /// Nothing of it is, because of one of them: each has to be tried alone.
    SpoiltByOne(StoreError),
}

/// A group that is carried out and not yet committed.
struct Done {
    /// One for each.
    answers: Vec<Result<Revision>>,
    /// Where the store was.
    before: Revision,
    /// Where it is with the group.
    after: Revision,
}

impl Writer {
    /// Writes a group; answers what to tell everybody.
    pub(crate) fn write(&mut self, group: Vec<Job>) -> Vec<(Job, Result<Revision>)> {
        match self.attempt(&group) {
            Attempt::Committed(answers) => group.into_iter().zip(answers).collect(),
            Attempt::SpoiltByOne(_) if group.len() > 1 => {
                let each = group.into_iter().flat_map(|job| self.write(vec![job]));
                each.collect()
            }
            Attempt::Failed(error) | Attempt::SpoiltByOne(error) => {
                let each = group.into_iter().map(|job| (job, Err(error.clone())));
                each.collect()
            }
        }
    }

    fn attempt(&mut self, group: &[Job]) -> Attempt {
        if let Err(error) = self.begin() {
            return Attempt::Failed(error);
        }
        match self.carry_out_all(group) {
            Ok(done) => self.commit(done),
            Err(error) => {
                self.take_back();
                Attempt::SpoiltByOne(error)
            }
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.take_back();
        if self.is_unsettled {
            self.settle()
                .map_err(|error| told("an earlier commit is not settled", error))?;
        }
        self.connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(|error| told("a write cannot begin", error))
    }

    /// Fails for what is not one transaction's own fault.
    fn carry_out_all(&self, group: &[Job]) -> Result<Done> {
        let before = read::history(&self.connection)?;
        let mut head = before.head;
        let mut answers = Vec::new();
        for job in group {
            let answer = self.carry_out(&job.order, head);
            match answer {
                Ok(revision) => head = revision,
                Err(StoreError::Conflict(_) | StoreError::Invalid(_)) => {}
                Err(error) => return Err(error),
            }
            answers.push(answer);
        }
        let oldest_kept = Revision(head.0.saturating_sub(self.keep_commits));
        if oldest_kept > before.compacted {
            self.forget(oldest_kept)?;
        }
        Ok(Done {
            answers,
            before: before.head,
            after: head,
        })
    }

    fn carry_out(&self, order: &Order, head: Revision) -> Result<Revision> {
        match order {
            Order::Commit(transaction) => {
                let prepared = Prepared::new(transaction, &self.schema)?;
                write::carry_out(&self.connection, &prepared, head)
            }
            Order::Compact(through) => {
                self.forget((*through).min(head))?;
                Ok(head)
            }
        }
    }

    fn forget(&self, through: Revision) -> Result<()> {
        if through > read::history(&self.connection)?.compacted {
            write::forget(&self.connection, through)?;
        }
        Ok(())
    }

    fn commit(&mut self, done: Done) -> Attempt {
        let Err(error) = self.connection.execute_batch("COMMIT") else {
            self.head.send_if_modified(|known| {
                let is_newer = done.after > *known;
                *known = done.after.max(*known);
                is_newer
            });
            return Attempt::Committed(done.answers);
        };
        self.take_back();
        if is_full(&error) {
            return Attempt::SpoiltByOne(told("a commit fails", error));
        }
        self.is_unsettled = true;
        Attempt::Failed(if self.is_certainly_still_at(done.before) {
            told("a commit fails", error)
        } else {
            unknown("a commit fails", error)
        })
    }

    /// Whether a commit that failed has had no effect and never will.
    fn is_certainly_still_at(&mut self, before: Revision) -> bool {
        let is_there = |history: History| history.head == before;
        self.settle().is_ok() && read::history(&self.connection).is_ok_and(is_there)
    }

    /// A commit that failed while it was written may stand in the write-ahead log, where a restart would find
    /// it. Writing something else takes its place: then it is certain that it is not there.
    fn settle(&mut self) -> rusqlite::Result<()> {
        self.connection.execute(sql::SETTLE, [])?;
        self.is_unsettled = false;
        Ok(())
    }

    /// Leaves no transaction open, whatever happened.
    fn take_back(&self) {
        if !self.connection.is_autocommit() {
            // If this fails too, the next beginning says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}
