//! Group commit: whoever writes while a commit is on its way to the disk goes along with the next one.
//!
//! Transactions wait in a queue. The first to find nobody at work has a blocking task of the runtime work off
//! the queue, one transaction of SQLite for all that wait. So a hundred writers cost a few syncs, the runtime is
//! never blocked, and a dropped future takes nothing out of the queue: what is in it is carried out.
//!
//! There is no thread of our own that answers, because under tokio's paused clock waiting for one looks like
//! idling, and time would jump.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::{Result, Revision, StoreError, Transaction};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{error::unavailable, writer::Writer};

/// How many transactions are committed together at the most.
const GROUP: usize = 64;

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_worked_off: bool,
}

/// A thing to write, and whom to tell.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) order: Order,
    reply: oneshot::Sender<Result<Revision>>,
}

/// What is to be written.
#[derive(Debug)]
pub(crate) enum Order {
    /// A transaction.
    Commit(Transaction),
    /// Forget the changes up to a revision.
    Compact(Revision),
}

impl Job {
    /// Tells who asked, if somebody still listens.
    fn answer(self, result: Result<Revision>) {
        let _ = self.reply.send(result);
    }
}

impl Queue {
    pub(crate) fn new(writer: Writer) -> Self {
        Self {
            waiting: Mutex::default(),
            writer: Mutex::new(writer),
        }
    }

    /// Puts something into the queue and waits for its turn.
    pub(crate) async fn push(self: &Arc<Self>, order: Order) -> Result<Revision> {
        let runtime = Handle::try_current()
            .map_err(|error| unavailable(format!("there is no runtime to write on: {error}")))?;
        let (reply, answer) = oneshot::channel();
        let nobody_is_at_work = {
            let mut waiting = self.waiting();
            waiting.jobs.push_back(Job { order, reply });
            !std::mem::replace(&mut waiting.is_worked_off, true)
        };
        if nobody_is_at_work {
            let turn = Turn {
                queue: Arc::clone(self),
                is_done: false,
            };
            runtime.spawn_blocking(move || turn.work());
        }
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::UnknownOutcome {
                reason: "the writer died while it was at work".to_owned(),
                source: None,
            })
        })
    }

    /// The writer, which a panic leaves with a transaction open at the most: it takes that back before the next.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic leaves a queue that is as good as before.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_group(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting();
        let count = waiting.jobs.len().min(GROUP);
        if count == 0 {
            waiting.is_worked_off = false;
            return None;
        }
        Some(waiting.jobs.drain(..count).collect())
    }
}

/// The right to work off the queue. If it is dropped before the queue is empty, because the runtime ends or a
/// bug panics, those who still wait are told and the queue is free again.
struct Turn {
    queue: Arc<Queue>,
    is_done: bool,
}

impl Turn {
    fn work(mut self) {
        let Some(mut group) = self.queue.next_group() else {
            self.is_done = true;
            return;
        };
        loop {
            let answered = self.queue.writer().write(group);
            match self.queue.next_group() {
                Some(next) => {
                    tell(answered);
                    group = next;
                }
                None => {
                    // From here on the queue may be another's. It is let go of before anybody is told, so that who
                    // is told and drops the store has closed the file.
                    self.is_done = true;
                    drop(self);
                    return tell(answered);
                }
            }
        }
    }
}

fn tell(answered: Vec<(Job, Result<Revision>)>) {
    for (job, answer) in answered {
        job.answer(answer);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut waiting = self.queue.waiting();
        waiting.is_worked_off = false;
        for job in waiting.jobs.drain(..) {
            job.answer(Err(unavailable(
                "the runtime ended before the transaction began",
            )));
        }
    }
}
