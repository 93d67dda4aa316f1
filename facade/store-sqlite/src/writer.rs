//! The writing connection, and its handling of disk failures.
//!
//! Owns when SQLite's transactions begin and end, and what is reported if one fails. A group of the
//! store's transactions is one SQLite transaction:
//!
//! - A conflict concerns one transaction; the others of the group are committed.
//! - Any other error while the group is executed rolls it back, and each transaction is tried
//!   alone, so that only the one that causes the error gets it.
//! - If the commit itself fails, it may be in the write-ahead log, where a restart would find it.
//!   The writer then writes a page to overwrite it. If that works, nothing was written; if not, the
//!   outcome is unknown, and the next group tries to settle it first.

use std::sync::Arc;

use fleetwright_store::{History, Result, Revision, Schema, StoreError};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::{
    cache::Cache,
    checkpoint::Log,
    error::{is_full, store_error, unknown},
    lock::Lock,
    queue::{Job, WriteRequest},
    read, sql, write,
};

/// The only writer of a handle. Other handles have their own; SQLite's lock orders them.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    /// Gets the values that were committed.
    pub(crate) cache: Arc<Cache>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) keep_commits: u64,
    /// The newest revision, for waiting watches.
    pub(crate) head: watch::Sender<Revision>,
    /// Whether a commit failed and may still be in the log.
    pub(crate) has_unresolved_commit: bool,
    /// Limited after each group.
    pub(crate) log: Log,
    /// Held while the connection is open.
    pub(crate) _lock: Arc<Lock>,
}

/// The outcome of a group.
enum Attempt {
    /// Committed, with one result per transaction.
    Committed(Vec<Result<Revision>>),
    /// Nothing was written, and each transaction alone would fail too.
    Failed(StoreError),
    /// Nothing was written because of one transaction: each must be tried alone.
    FailedByOne(StoreError),
}

/// A group that was executed but not committed.
struct ExecutedGroup {
    /// One result per transaction.
    results: Vec<Result<Revision>>,
    /// The revision before the group.
    before: Revision,
    /// The revision after the group.
    after: Revision,
}

impl Writer {
    /// Writes a group and returns the result of each write.
    pub(crate) fn write(&mut self, group: Vec<Job>) -> Vec<(Job, Result<Revision>)> {
        match self.attempt(&group) {
            Attempt::Committed(results) => {
                self.log.limit(&self.connection);
                let written: Vec<_> = group.into_iter().zip(results).collect();
                for (job, result) in &written {
                    self.keep_values(&job.request, result);
                }
                written
            }
            Attempt::FailedByOne(_) if group.len() > 1 => {
                let each = group.into_iter().flat_map(|job| self.write(vec![job]));
                each.collect()
            }
            Attempt::Failed(error) | Attempt::FailedByOne(error) => {
                let each = group.into_iter().map(|job| (job, Err(error.clone())));
                each.collect()
            }
        }
    }

    /// Writes a group in one SQLite transaction.
    fn attempt(&mut self, group: &[Job]) -> Attempt {
        if let Err(error) = self.begin() {
            return Attempt::Failed(error);
        }
        match self.execute_all(group) {
            Ok(executed) => self.commit(executed),
            Err(error) => {
                self.roll_back();
                Attempt::FailedByOne(error)
            }
        }
    }

    /// Settles an earlier failed commit, and begins a transaction with SQLite's write lock.
    fn begin(&mut self) -> Result<()> {
        self.roll_back();
        if self.has_unresolved_commit {
            self.settle()
                .map_err(|error| store_error("an earlier commit cannot be settled", error))?;
        }
        self.connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(|error| store_error("a write cannot start", error))
    }

    /// Executes all writes of a group. Fails only with errors that no single transaction caused.
    fn execute_all(&self, group: &[Job]) -> Result<ExecutedGroup> {
        let before = read::history(&self.connection)?;
        let mut head = before.head;
        let mut results = Vec::new();
        for job in group {
            let result = self.execute(&job.request, head);
            match result {
                Ok(revision) => head = revision,
                Err(StoreError::Conflict(_) | StoreError::Invalid(_)) => {}
                Err(error) => return Err(error),
            }
            results.push(result);
        }
        if head != before.head {
            write::set_revision(&self.connection, head)?;
        }
        let oldest_kept = Revision(head.0.saturating_sub(self.keep_commits));
        if oldest_kept > before.compacted {
            self.forget(oldest_kept)?;
        }
        Ok(ExecutedGroup {
            results,
            before: before.head,
            after: head,
        })
    }

    /// Executes one write of a group, on top of the revision `head`.
    fn execute(&self, request: &WriteRequest, head: Revision) -> Result<Revision> {
        match request {
            WriteRequest::Commit(prepared) => {
                write::execute(&self.connection, &self.schema, prepared, head)
            }
            WriteRequest::Compact(through) => {
                self.forget((*through).min(head))?;
                Ok(head)
            }
        }
    }

    /// Keeps the values of a committed write for the next reads.
    fn keep_values(&self, request: &WriteRequest, result: &Result<Revision>) {
        let (WriteRequest::Commit(prepared), Ok(revision)) = (request, result) else {
            return;
        };
        for write in prepared.writes() {
            if let Some(put) = &write.put {
                let bytes = put.json.len();
                self.cache.keep(&write.id, *revision, &put.value, bytes);
            }
        }
    }

    /// Forgets changes, unless they already are.
    fn forget(&self, through: Revision) -> Result<()> {
        if through > read::history(&self.connection)?.compacted {
            write::forget(&self.connection, through)?;
        }
        Ok(())
    }

    /// Commits the executed group and wakes the watches of this handle.
    fn commit(&mut self, executed: ExecutedGroup) -> Attempt {
        let Err(error) = self.connection.execute_batch("COMMIT") else {
            self.head.send_if_modified(|known| {
                let is_newer = executed.after > *known;
                *known = executed.after.max(*known);
                is_newer
            });
            return Attempt::Committed(executed.results);
        };
        self.roll_back();
        if is_full(&error) {
            return Attempt::FailedByOne(store_error("a commit failed", error));
        }
        self.has_unresolved_commit = true;
        Attempt::Failed(if self.has_no_effect_since(executed.before) {
            store_error("a commit failed", error)
        } else {
            unknown("a commit failed", error)
        })
    }

    /// Returns whether a failed commit certainly has no effect, now and after a restart.
    fn has_no_effect_since(&mut self, before: Revision) -> bool {
        let is_unchanged = |history: History| history.head == before;
        self.settle().is_ok() && read::history(&self.connection).is_ok_and(is_unchanged)
    }

    /// A failed commit can be in the write-ahead log, where a restart would find it. Another write
    /// replaces it there, after which it certainly has no effect.
    fn settle(&mut self) -> rusqlite::Result<()> {
        self.connection.execute(sql::SETTLE, [])?;
        self.has_unresolved_commit = false;
        Ok(())
    }

    /// Rolls back an open transaction.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If this fails too, the next BEGIN reports it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}
