//! Connections as this store wants them.

#[cfg(unix)]
use std::fs::File;
use std::{fs::OpenOptions, io, path::Path, sync::Arc};

use fleetwright_store::{Result, StoreError};
use rusqlite::{Connection, OpenFlags};

use crate::{SqliteOptions, error::told, format::incompatible};

/// SQLite's own default, said here because `max_bytes` counts in it.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// What is left of a log that grew large once.
const LOG_BYTES: i64 = 16_777_216;

/// How many statements stay prepared: more than there are.
const STATEMENTS: usize = 32;

/// Makes an empty file, if there is none, that only its owner can read.
///
/// The folder is synced: a file that is gone with the power takes its commits along.
pub(crate) fn make_file(path: &Path) -> Result<()> {
    let made = match private().create_new(true).open(path) {
        Ok(_) => sync_folder(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|error| StoreError::Unavailable {
        reason: format!("{} cannot be made", path.display()),
        source: Some(Arc::new(error)),
    })
}

/// What is made with these options is its owner's alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file, and does not need it.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens the file without changing what is in it.
pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let about = format!("{} cannot be opened", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error| told(&about, error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(options.patience).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Makes a connection one that writes: with a log that is on the disk before a commit is acknowledged.
pub(crate) fn make_writer(connection: &Connection, options: &SqliteOptions) -> Result<()> {
    let failed = |error| told("the database cannot be written", error);
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        let reason = "the file system does not share memory, as a write-ahead log needs";
        return Err(incompatible(reason));
    }
    connection
        .pragma_update(None, "synchronous", "full")
        .map_err(failed)?;
    connection
        .pragma_update(None, "journal_size_limit", LOG_BYTES)
        .map_err(failed)?;
    if let Some(bytes) = options.max_bytes {
        let pages = i64::try_from((bytes / PAGE_BYTES).max(1)).unwrap_or(i64::MAX);
        // Below what it has already, SQLite takes that instead.
        connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(failed)?;
    }
    Ok(())
}

/// Makes a connection one that only reads.
pub(crate) fn make_reader(connection: &Connection) -> Result<()> {
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| told("the database cannot be read", error))
}
