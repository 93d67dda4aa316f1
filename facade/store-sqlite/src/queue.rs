//! Group commit: transactions that arrive during a commit are committed together by the next one.
//!
//! Transactions wait in a queue. The first caller that finds no worker starts a blocking task,
//! which commits all waiting transactions in one SQLite transaction. A hundred writers cost a few
//! syncs, the runtime is never blocked, and a dropped future removes nothing from the queue: a
//! queued transaction is executed.
//!
//! The queue has no thread of its own: under tokio's paused clock, waiting for a thread looks idle
//! and time would jump.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::{Prepared, Result, Revision, StoreError};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{error::unavailable, writer::Writer};

/// The largest number of transactions in one commit. It limits how long the first one waits for the
/// others.
const GROUP: usize = 64;

/// The queue in front of the writer. A worker never holds both locks at the same time, so callers
/// can queue writes during a commit.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    writer: Mutex<Writer>,
}

/// The queued writes, and whether a worker will take them.
#[derive(Debug, Default)]
struct Waiting {
    /// In the order of arrival, which is the order of their revisions.
    jobs: VecDeque<Job>,
    /// Whether a worker runs or is about to. If not, the next caller starts one.
    has_worker: bool,
}

/// A queued write with the channel for its result.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: WriteRequest,
    result_sender: oneshot::Sender<Result<Revision>>,
}

/// A queued write.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    /// A transaction.
    Commit(Prepared),
    /// Forget the changes up to a revision.
    Compact(Revision),
}

impl Job {
    /// Sends the result, if the caller still waits.
    fn send_result(self, result: Result<Revision>) {
        let _ = self.result_sender.send(result);
    }
}

impl Queue {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            waiting: Mutex::default(),
            writer: Mutex::new(writer),
        }
    }

    /// Queues a write and waits for its result. A dropped call stays queued and is executed.
    ///
    /// # Errors
    ///
    /// `Unavailable` without a tokio runtime or if the runtime ends before the write starts; then
    /// nothing was written. `UnknownOutcome` if the worker stopped during the write.
    pub(crate) async fn push(self: &Arc<Self>, request: WriteRequest) -> Result<Revision> {
        let runtime = Handle::try_current()
            .map_err(|error| unavailable(format!("no tokio runtime to write on: {error}")))?;
        let (result_sender, result) = oneshot::channel();
        let needs_worker = {
            let mut waiting = self.waiting();
            waiting.jobs.push_back(Job {
                request,
                result_sender,
            });
            !std::mem::replace(&mut waiting.has_worker, true)
        };
        if needs_worker {
            let worker = QueueWorker {
                queue: Arc::clone(self),
                is_done: false,
            };
            runtime.spawn_blocking(move || worker.work());
        }
        result.await.unwrap_or_else(|_| {
            Err(StoreError::UnknownOutcome {
                reason: "the writer stopped before it reported the outcome".to_owned(),
                source: None,
            })
        })
    }

    /// Returns the writer. After a panic it may have an open transaction, which it rolls back
    /// before the next one.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poisoned lock is safe to use: a panic cannot leave the queue inconsistent.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to [`GROUP`] jobs. If there are none, marks the queue as without a worker: both
    /// happen under one lock, so that no job is left behind.
    fn next_group(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting();
        let count = waiting.jobs.len().min(GROUP);
        if count == 0 {
            waiting.has_worker = false;
            return None;
        }
        Some(waiting.jobs.drain(..count).collect())
    }
}

/// The worker of the queue. If it is dropped before the queue is empty, because the runtime ends or
/// a bug panics, the waiting callers get an error and the queue is free again.
struct QueueWorker {
    queue: Arc<Queue>,
    is_done: bool,
}

impl QueueWorker {
    /// Commits groups until the queue is empty.
    fn work(mut self) {
        let Some(mut group) = self.queue.next_group() else {
            self.is_done = true;
            return;
        };
        loop {
            let results = self.queue.writer().write(group);
            match self.queue.next_group() {
                Some(next) => {
                    send_results(results);
                    group = next;
                }
                None => {
                    // From here on another worker may use the queue. It is released before results
                    // are sent, so that a caller that then drops the store has closed the file.
                    self.is_done = true;
                    drop(self);
                    return send_results(results);
                }
            }
        }
    }
}

/// Sends each caller its result.
fn send_results(results: Vec<(Job, Result<Revision>)>) {
    for (job, result) in results {
        job.send_result(result);
    }
}

impl Drop for QueueWorker {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut waiting = self.queue.waiting();
        waiting.has_worker = false;
        for job in waiting.jobs.drain(..) {
            job.send_result(Err(unavailable(
                "the runtime ended before the transaction started",
            )));
        }
    }
}
