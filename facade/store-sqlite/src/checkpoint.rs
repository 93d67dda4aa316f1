//! Keeping the write-ahead log small.
//!
//! SQLite copies the log into the database by itself when the log passes a thousand pages. It waits
//! for nobody then: as long as one reader or another is in the middle of a read, the log cannot be
//! started again, and grows. This module owns the point at which the writer waits for the readers
//! instead. Readers that start meanwhile do not prolong the wait, because everything is in the
//! database by then and they do not need the log.
//!
//! It must never fail a commit: the commit is on disk already.

use std::{ffi::OsString, fs, path::PathBuf, time::Duration};

use rusqlite::Connection;

/// The size in bytes from which on the writer waits for readers: twice the size at which SQLite
/// copies without waiting.
pub(crate) const LOG_BYTES: u32 = 8 * 1024 * 1024;

/// The longest wait for readers. A read of this program ends sooner, except
/// [`check`](crate::SqliteStore::check).
const WAIT: Duration = Duration::from_secs(2);

/// The log of one database.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// The size that starts the next attempt. It grows while readers do not let go of the log, so
    /// that commits do not wait each time.
    next: u64,
    /// The timeout of the connection, which the wait replaces for a moment.
    lock_timeout: Duration,
}

impl Log {
    /// Returns the log of a database.
    pub(crate) fn new(database: &std::path::Path, lock_timeout: Duration) -> Self {
        let mut path = OsString::from(database);
        path.push("-wal");
        Self {
            path: path.into(),
            next: LOG_BYTES.into(),
            lock_timeout,
        }
    }

    /// Empties the log if it is large. Called after a commit, outside of a transaction.
    pub(crate) fn limit(&mut self, connection: &Connection) {
        let size = self.size();
        if size < self.next {
            return;
        }
        self.next = if self.empty(connection) {
            LOG_BYTES.into()
        } else {
            size.saturating_add(LOG_BYTES.into())
        };
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Returns whether the log is empty now. If not, a reader was not done in time, another process
    /// writes, or the disk failed, which the next commit reports.
    fn empty(&self, connection: &Connection) -> bool {
        let wait = WAIT.min(self.lock_timeout);
        if connection.busy_timeout(wait).is_err() {
            return false;
        }
        let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, bool>(0)
        });
        let restored = connection.busy_timeout(self.lock_timeout);
        matches!((is_busy, restored), (Ok(false), Ok(())))
    }
}
