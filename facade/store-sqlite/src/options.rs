//! How a database is opened.

use std::time::Duration;

/// How a database is opened. All of it can differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Who else may have the file open.
    pub sharing: Sharing,
    /// How long to wait for others who hold a lock, before the store is unavailable.
    pub patience: Duration,
    /// How often to look for commits of other handles, while a watch waits. Commits of the own handle wake it at
    /// once.
    pub poll_every: Duration,
    /// How many commits watches can go back. More are forgotten, oldest first.
    pub keep_commits: u64,
    /// How many reads run at the same time.
    pub readers: usize,
    /// How large the database may become before the store is full; whole pages of 4096 bytes.
    pub max_bytes: Option<u64>,
}

/// Who else may have a database open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Any number of handles of this process and of others on the same machine, all with the same schema.
    Shared,
    /// Nobody: who comes second is refused.
    Exclusive,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            sharing: Sharing::Shared,
            patience: Duration::from_secs(5),
            poll_every: Duration::from_millis(100),
            keep_commits: 10_000,
            readers: 4,
            max_bytes: None,
        }
    }
}

impl SqliteOptions {
    /// Refuses everybody else.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.sharing = Sharing::Exclusive;
        self
    }

    /// Sets how long to wait for locks.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how often to look for commits of other handles.
    #[must_use]
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll_every = interval;
        self
    }

    /// Sets how many commits watches can go back.
    #[must_use]
    pub fn keep_commits(mut self, commits: u64) -> Self {
        self.keep_commits = commits;
        self
    }

    /// Sets how many reads run at the same time; at least one does.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Sets how large the database may become.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}
