//! The pool of reading connections, which run on the runtime's blocking threads.
//!
//! Connections are opened when they are first needed and kept until the store is dropped. A
//! semaphore limits how many reads run at the same time; it is acquired before a blocking thread
//! is, so waiting reads occupy no thread.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::Result;
use rusqlite::Connection;
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{SqliteOptions, connection, error::unavailable, lock::Lock};

/// The pool. `idle` never has more connections than there are permits.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    options: SqliteOptions,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    /// Held while a connection is open.
    _lock: Arc<Lock>,
}

impl Readers {
    /// Creates an empty pool. The lock is held as long as the pool exists.
    pub(crate) fn new(path: PathBuf, options: SqliteOptions, lock: Arc<Lock>) -> Self {
        Self {
            path,
            options,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(options.readers.max(1))),
            _lock: lock,
        }
    }

    /// Runs `read` with a connection of the pool, on a blocking thread.
    ///
    /// # Errors
    ///
    /// Those of `read`, or `Unavailable` if there is no runtime or a connection cannot be opened.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let readers = Arc::clone(self);
        blocking(move || {
            let _permit = permit;
            let mut connection = readers.take()?;
            let result = read(&mut connection);
            readers.return_connection(connection);
            result
        })
        .await
    }

    /// Returns an idle connection or opens one.
    fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.idle().pop() {
            return Ok(connection);
        }
        let connection = connection::open(&self.path, &self.options)?;
        connection::configure_reader(&connection)?;
        Ok(connection)
    }

    /// Returns a connection to the pool. One with an open transaction is dropped: it would read the
    /// same moment forever.
    fn return_connection(&self, connection: Connection) {
        if connection.is_autocommit() {
            self.idle().push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a blocking function on a blocking thread of the current runtime.
///
/// # Errors
///
/// Those of `work`, or `Unavailable` if there is no runtime, the runtime ends, or `work` panics.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let runtime = Handle::try_current()
        .map_err(|error| unavailable(format!("no tokio runtime to read on: {error}")))?;
    let result = runtime.spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(unavailable(format!("the blocking task ended: {error}"))))
}
