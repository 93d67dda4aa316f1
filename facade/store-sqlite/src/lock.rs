//! Who has a database open: a lock on a file beside it, which the system gives back when a process dies.
//!
//! SQLite's own locks order single transactions. This one is about the whole time that a handle is open: only
//! who is alone changes the format or the schema, so nobody's handle is ever changed under him.

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

use crate::{Sharing, connection::private, error::unavailable};

/// How long to wait before looking again.
pub(crate) const RETRY: Duration = Duration::from_millis(5);

/// The lock. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// Who else is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// Nobody, and nobody can come.
    Alone,
    /// There may be others.
    Others,
}

impl Lock {
    /// Takes the lock alone if that is possible, else together with others if that is wanted.
    pub(crate) fn take(
        database: &Path,
        sharing: Sharing,
        patience: Duration,
    ) -> Result<(Self, Company)> {
        let mut path = OsString::from(database);
        path.push("-lock");
        let path = PathBuf::from(path);
        let opened = private().create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| cannot_lock(&path, error))?;
        let lock = Self { file, path };
        let company = lock.wait(sharing, patience)?;
        Ok((lock, company))
    }

    /// Lets others come. Somebody may be alone for a moment in between.
    pub(crate) fn share(&self) -> Result<()> {
        FileExt::lock_shared(&self.file).map_err(|error| cannot_lock(&self.path, error))
    }

    fn wait(&self, sharing: Sharing, patience: Duration) -> Result<Company> {
        let since = Instant::now();
        loop {
            if let Some(company) = self.attempt(sharing)? {
                return Ok(company);
            }
            if since.elapsed() >= patience {
                let name = self.path.display();
                return Err(unavailable(format!("somebody else holds {name}")));
            }
            thread::sleep(RETRY);
        }
    }

    fn attempt(&self, sharing: Sharing) -> Result<Option<Company>> {
        let failed = |error| cannot_lock(&self.path, error);
        if FileExt::try_lock_exclusive(&self.file).map_err(failed)? {
            return Ok(Some(Company::Alone));
        }
        match sharing {
            Sharing::Exclusive => Ok(None),
            Sharing::Shared => {
                let shared = FileExt::try_lock_shared(&self.file).map_err(failed)?;
                Ok(shared.then_some(Company::Others))
            }
        }
    }
}

fn cannot_lock(path: &Path, error: io::Error) -> StoreError {
    StoreError::Unavailable {
        reason: format!("{} cannot be locked", path.display()),
        source: Some(Arc::new(error)),
    }
}
