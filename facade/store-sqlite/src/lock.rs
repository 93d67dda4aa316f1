//! The lock of an open database: a file beside it, which the operating system unlocks when a
//! process dies.
//!
//! SQLite's own locks order single transactions. This lock covers the whole time that a handle is
//! open: format and schema change only under an exclusive lock, so they never change under an open
//! handle.

use std::{
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use fleetwright_store::{Result, StoreError};
use fs4::fs_std::FileExt;

use crate::{Sharing, connection::private_options, error::unavailable};

/// The delay between attempts to lock. Opening is rare, so polling is cheap.
pub(crate) const RETRY: Duration = Duration::from_millis(5);

/// The lock, released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// Whether other handles are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusivity {
    /// No other handle is open, and none can be opened.
    Alone,
    /// Other handles may be open.
    Others,
}

impl Lock {
    /// Takes the lock exclusively if possible, otherwise shared if `sharing` allows it.
    ///
    /// Creates the lock file beside the database. It is never deleted: deleting it while another
    /// process opens it would give the two processes different locks.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the lock is not free within `lock_timeout`, or cannot be taken at all.
    pub(crate) fn take(
        database: &Path,
        sharing: Sharing,
        lock_timeout: Duration,
    ) -> Result<(Self, Exclusivity)> {
        let mut path = OsString::from(database);
        path.push("-lock");
        let path = PathBuf::from(path);
        let opened = private_options().create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| cannot_lock(&path, error))?;
        let lock = Self { file, path };
        let exclusivity = lock.wait(sharing, lock_timeout)?;
        Ok((lock, exclusivity))
    }

    /// Makes the lock shared. Another process can hold it exclusively for a moment in between.
    pub(crate) fn share(&self) -> Result<()> {
        FileExt::lock_shared(&self.file).map_err(|error| cannot_lock(&self.path, error))
    }

    /// Tries every [`RETRY`] until the timeout. File locks have no call that waits for a limited
    /// time.
    fn wait(&self, sharing: Sharing, lock_timeout: Duration) -> Result<Exclusivity> {
        let since = Instant::now();
        loop {
            if let Some(exclusivity) = self.attempt(sharing)? {
                return Ok(exclusivity);
            }
            if since.elapsed() >= lock_timeout {
                let name = self.path.display();
                return Err(unavailable(format!("another handle holds {name}")));
            }
            thread::sleep(RETRY);
        }
    }

    /// Tries once. `None` means that another handle has a conflicting lock.
    fn attempt(&self, sharing: Sharing) -> Result<Option<Exclusivity>> {
        let failed = |error| cannot_lock(&self.path, error);
        if FileExt::try_lock_exclusive(&self.file).map_err(failed)? {
            return Ok(Some(Exclusivity::Alone));
        }
        match sharing {
            Sharing::Exclusive => Ok(None),
            Sharing::Shared => {
                let shared = FileExt::try_lock_shared(&self.file).map_err(failed)?;
                Ok(shared.then_some(Exclusivity::Others))
            }
        }
    }
}

/// Returns an error of the operating system's lock call.
fn cannot_lock(path: &Path, error: io::Error) -> StoreError {
    StoreError::Unavailable {
        reason: format!("{} cannot be locked", path.display()),
        source: Some(Arc::new(error)),
    }
}
