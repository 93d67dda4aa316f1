//! The pool of reading connections, and the queue of reads in front of it.
//!
//! Reads wait in a queue. A worker runs on a blocking thread of the runtime with a connection of its own, and takes reads from the
//! queue until there are none. A read that finds fewer workers than connections are allowed starts another one. So many
//! concurrent reads cost a few thread switches, and a slow read delays the others only if all connections are in use.
//!
//! Connections are opened when they are first needed and kept until the store is dropped.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::Result;
use rusqlite::Connection;
use tokio::{runtime::Handle, sync::oneshot};

use crate::{SqliteOptions, connection, error::unavailable, lock::Lock};

/// A read that waits for a connection. It returns the step that sends its result.
type Read = Box<dyn FnOnce(Result<&mut Connection>) -> SendResult + Send>;
/// Sends the result of a read to its caller.
type SendResult = Box<dyn FnOnce() + Send>;

/// The pool.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    options: SqliteOptions,
    waiting: Mutex<Waiting>,
    /// Held while a connection is open.
    _lock: Arc<Lock>,
}

/// The queued reads, the workers that take them, and the connections that no worker has.
#[derive(Default)]
struct Waiting {
    reads: VecDeque<Read>,
    workers: usize,
    idle: Vec<Connection>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting")
            .field("reads", &self.reads.len())
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Readers {
    /// Creates an empty pool. The lock is held as long as the pool exists.
    pub(crate) fn new(path: PathBuf, options: SqliteOptions, lock: Arc<Lock>) -> Self {
        Self {
            path,
            options,
            waiting: Mutex::default(),
            _lock: lock,
        }
    }

    /// Runs `read` with a connection of the pool, on a blocking thread. A read whose caller is gone when its turn comes is left
    /// out.
    ///
    /// # Errors
    ///
    /// Those of `read`, or `Unavailable` if there is no runtime, the runtime ends, `read` panics or a connection cannot be
    /// opened.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let runtime = runtime()?;
        let (sender, result) = oneshot::channel();
        let read: Read = Box::new(move |connection| {
            if sender.is_closed() {
                return Box::new(|| {});
            }
            let result = connection.and_then(read);
            Box::new(move || drop(sender.send(result)))
        });
        let needs_worker = {
            let mut waiting = self.waiting();
            waiting.reads.push_back(read);
            let needs_worker = waiting.workers < self.options.readers.max(1);
            waiting.workers += usize::from(needs_worker);
            needs_worker
        };
        if needs_worker {
            let worker = Worker {
                readers: Arc::clone(self),
                is_done: false,
            };
            runtime.spawn_blocking(move || worker.work());
        }
        let ended =
            || unavailable("the read ended without a result: its runtime ended, or it panicked");
        result.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns an idle connection or opens one.
    fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.waiting().idle.pop() {
            return Ok(connection);
        }
        let connection = connection::open(&self.path, &self.options)?;
        connection::configure_reader(&connection)?;
        Ok(connection)
    }

    /// Returns the next read. If there is none, the worker has ended, and its connection is idle: both under one lock, so that no
    /// read is left behind.
    fn next(&self, connection: &mut Option<Connection>) -> Option<Read> {
        let mut waiting = self.waiting();
        let next = waiting.reads.pop_front();
        if next.is_none() {
            waiting.workers -= 1;
            waiting.idle.extend(connection.take());
        }
        next
    }

    /// A poisoned lock is safe to use: a panic cannot leave the queue inconsistent.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker. If it is dropped before the queue is empty, because the runtime ends or a bug panics, and there is no other one, the
/// waiting callers get an error.
struct Worker {
    readers: Arc<Readers>,
    is_done: bool,
}

impl Worker {
    /// Runs reads until the queue is empty.
    fn work(mut self) {
        let mut connection = None;
        let mut send_last: Option<SendResult> = None;
        while let Some(read) = self.readers.next(&mut connection) {
            if let Some(send) = send_last.take() {
                send();
            }
            send_last = Some(self.run(read, &mut connection));
        }
        // The worker is released before the last result is sent, so that a caller that then drops the store has closed the file.
        self.is_done = true;
        drop(self);
        if let Some(send) = send_last {
            send();
        }
    }

    /// Runs one read. A connection with an open transaction is dropped afterwards: it would read the same moment forever.
    fn run(&self, read: Read, connection: &mut Option<Connection>) -> SendResult {
        let mut taken = match connection.take().map_or_else(|| self.readers.take(), Ok) {
            Ok(taken) => taken,
            Err(error) => return read(Err(error)),
        };
        let send = read(Ok(&mut taken));
        *connection = Some(taken).filter(Connection::is_autocommit);
        send
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let abandoned = {
            let mut waiting = self.readers.waiting();
            waiting.workers -= 1;
            if waiting.workers > 0 {
                return;
            }
            std::mem::take(&mut waiting.reads)
        };
        // Their callers get an error because the sender is dropped.
        drop(abandoned);
    }
}

fn runtime() -> Result<Handle> {
    Handle::try_current()
        .map_err(|error| unavailable(format!("no tokio runtime to read on: {error}")))
}

/// Runs a blocking function on a blocking thread of the current runtime.
///
/// # Errors
///
/// Those of `work`, or `Unavailable` if there is no runtime, the runtime ends, or `work` panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let result = runtime()?.spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(unavailable(format!("the blocking task ended: {error}"))))
}
