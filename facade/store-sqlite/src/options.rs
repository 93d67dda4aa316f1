//! Options of a database: sharing, timeouts, history and limits.
//!
//! None of them is stored in the file, so every handle can have its own. Only
//! [`SqliteOptions::sharing`] affects other handles.

use std::time::Duration;

/// Options of a database. They can differ each time it is opened.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_store_sqlite::SqliteOptions;
///
/// let options = SqliteOptions::default()
///     .exclusive()
///     .lock_timeout(Duration::from_secs(1))
///     .keep_commits(10_000);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Whether other handles may have the file open. Default: [`Sharing::Shared`].
    pub sharing: Sharing,
    /// How long opening and a write wait for a lock before they return `Unavailable`. Default: 5
    /// seconds.
    pub lock_timeout: Duration,
    /// How often a waiting watch polls for commits of other handles. Commits of its own handle wake
    /// it at once. One watch polls for all watches of a handle. Default: 100 milliseconds.
    pub poll_every: Duration,
    /// The number of commits that watches can go back. Older ones are forgotten with the next
    /// commit. Default: 10,000.
    pub keep_commits: u64,
    /// The number of concurrent reads, each on its own connection; 0 means 1. Further reads wait.
    /// Default: 4.
    pub readers: usize,
    /// The largest size of the database in bytes, rounded down to pages of 4096 bytes, or `None`
    /// for no limit, the default. A write beyond it returns `Full`. The write-ahead log is not
    /// included.
    pub max_bytes: Option<u64>,
}

/// Whether other handles may have a database open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Any number of handles, in this and other processes of the machine, all with the same schema.
    Shared,
    /// No other handle: a second one is refused.
    Exclusive,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            sharing: Sharing::Shared,
            lock_timeout: Duration::from_secs(5),
            poll_every: Duration::from_millis(100),
            keep_commits: 10_000,
            readers: 4,
            max_bytes: None,
        }
    }
}

impl SqliteOptions {
    /// Refuses other handles.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.sharing = Sharing::Exclusive;
        self
    }

    /// Sets how long to wait for a lock.
    #[must_use]
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Sets how often to poll for commits of other handles.
    #[must_use]
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll_every = interval;
        self
    }

    /// Sets the number of commits that watches can go back.
    #[must_use]
    pub fn keep_commits(mut self, commits: u64) -> Self {
        self.keep_commits = commits;
        self
    }

    /// Sets the number of concurrent reads, at least one.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Sets the largest size of the database, in bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}
