//! Group commit: transactions that arrive during a commit are committed together by the next one.
//!
//! Transactions wait in a queue. The first caller that finds no worker starts a blocking task,
//! which commits all waiting transactions in one SQLite transaction. A hundred writers cost a few
//! syncs, the runtime is never blocked, and a dropped future removes nothing from the queue: a
//! queued transaction is executed.
//!
//! Writers that commit again and again would fall into two groups: the first one that has its result
//! would be committed alone, while the others wait for its sync. So a group that follows a larger one
//! waits a moment, as long as more writers arrive; see [`Queue::gather`].
//!
//! The queue has no thread of its own: under tokio's paused clock, waiting for a thread looks idle
//! and time would jump.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fleetwright_store::{Prepared, Result, Revision, StoreError};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{error::unavailable, writer::Writer};

/// The largest number of transactions in one commit. It limits how long the first one waits for the
/// others.
const GROUP: usize = 64;

/// How long a group waits for one more writer. A sync takes several times as long.
const PAUSE: Duration = Duration::from_micros(50);
/// How many times it waits at most.
const PAUSES: usize = 20;
/// After this time, the writers of a group are not expected again.
const RECENT: Duration = Duration::from_millis(5);

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
    /// The size of the last group, and when it was committed.
    last: Option<(usize, Instant)>,
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

    /// Waits until as many writers have arrived as were in the last group, if that was a moment ago. Stops when none
    /// arrives during one pause, so it costs a writer that stays alone one pause, and only after a larger group.
    fn gather(&self, mut pause: impl FnMut()) {
        let (mut arrived, expected) = {
            let waiting = self.waiting();
            let recent = waiting.last.filter(|(_, at)| at.elapsed() < RECENT);
            (waiting.jobs.len(), recent.map_or(0, |(count, _)| count))
        };
        for _ in 0..PAUSES {
            if arrived >= expected {
                return;
            }
            pause();
            let before = std::mem::replace(&mut arrived, self.waiting().jobs.len());
            if arrived == before {
                return;
            }
        }
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
        loop {
            self.queue.gather(|| thread::sleep(PAUSE));
            let Some(group) = self.queue.next_group() else {
                self.is_done = true;
                return;
            };
            let results = self.queue.writer().write(group);
            let is_last = {
                let mut waiting = self.queue.waiting();
                waiting.last = Some((results.len(), Instant::now()));
                waiting.has_worker = !waiting.jobs.is_empty();
                !waiting.has_worker
            };
            if is_last {
                // From here on another worker may use the queue. It is released before results
                // are sent, so that a caller that then drops the store has closed the file.
                self.is_done = true;
                drop(self);
                return send_results(results);
            }
            // Before the next group is taken, so that these writers can be in it.
            send_results(results);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fleetwright_store::Schema;
    use rusqlite::Connection;
    use tempfile::TempDir;
    use tokio::sync::watch;

    use super::*;
    use crate::{SqliteOptions, cache::Cache, checkpoint::Log, setup};

    /// A queue of an empty store, whose last group had this many transactions.
    fn queue(path: &Path, last: usize) -> Queue {
        let schema = Schema::builder().build().unwrap();
        let opened = setup::open(path, &schema, &SqliteOptions::default()).unwrap();
        let writer: Connection = opened.writer;
        let queue = Queue::new(Writer {
            connection: writer,
            cache: Arc::new(Cache::new(0)),
            schema: Arc::new(schema),
            keep_commits: 1,
            head: watch::Sender::new(Revision::ZERO),
            has_unresolved_commit: false,
            log: Log::new(path, Duration::ZERO),
            _lock: Arc::new(opened.lock),
        });
        // In the future, so that a slow machine does not forget it.
        let at = Instant::now() + Duration::from_secs(3600);
        queue.waiting().last = Some((last, at));
        queue
    }

    fn add(queue: &Queue, count: usize) {
        for _ in 0..count {
            queue.waiting().jobs.push_back(Job {
                request: WriteRequest::Compact(Revision::ZERO),
                result_sender: oneshot::channel().0,
            });
        }
    }

    /// Gathers while this many writers arrive in each pause. Returns the number of pauses, and the size of the group.
    fn gathered(last: usize, arrivals: &[usize]) -> (usize, usize) {
        let folder = TempDir::new().unwrap();
        let queue = queue(&folder.path().join("store.db"), last);
        add(&queue, 1);
        let mut pauses = 0;
        queue.gather(|| {
            add(&queue, arrivals.get(pauses).copied().unwrap_or_default());
            pauses += 1;
        });
        (pauses, queue.next_group().unwrap().len())
    }

    #[test]
    fn group_waits_for_the_writers_of_the_group_before() {
        assert_eq!(gathered(6, &[2, 2, 1, 9]), (3, 6));
    }

    #[test]
    fn group_waits_only_as_long_as_writers_arrive() {
        assert_eq!(gathered(64, &[3, 0, 60]), (2, 4));
        assert_eq!(gathered(64, &[1; 100]), (PAUSES, 1 + PAUSES));
    }

    #[test]
    fn lone_writer_does_not_wait() {
        assert_eq!(gathered(1, &[1]), (0, 1));
    }

    #[test]
    fn writers_of_an_old_group_are_not_expected() {
        let folder = TempDir::new().unwrap();
        let queue = queue(&folder.path().join("store.db"), 64);
        queue.waiting().last = Instant::now().checked_sub(RECENT).map(|at| (64, at));
        queue.gather(|| panic!("it waited"));
    }
}
