//! Opening and configuring SQLite connections.
//!
//! Owns everything that is set per connection: file permissions, busy timeout, statement cache,
//! journal mode and sync level. There are two kinds of connections. The writer uses a write-ahead
//! log with `synchronous=FULL`, so that a commit is on disk before it is acknowledged. Readers are
//! `query_only`, so a mistake in a read cannot write.
//!
//! SQLite's own mutexes are switched off: a connection is used by one thread at a time, the writer
//! behind the lock of the queue and readers from the pool.

#[cfg(unix)]
use std::fs::File;
use std::{fs::OpenOptions, io, path::Path, sync::Arc};

use fleetwright_store::{Result, StoreError};
use rusqlite::{Connection, OpenFlags};

use crate::{SqliteOptions, checkpoint::LOG_BYTES, error::store_error, format::incompatible};

/// SQLite's default page size, in bytes. `max_bytes` is rounded down to a multiple of it.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The size of the statement cache: more than there are statements.
const STATEMENTS: usize = 32;

/// Creates an empty file that only its owner can read, if there is none.
///
/// The folder is synced, because a file that is lost on power failure loses its commits.
pub(crate) fn create_file(path: &Path) -> Result<()> {
    let created = match private_options().create_new(true).open(path) {
        Ok(_) => sync_folder(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    created.map_err(|error| StoreError::Unavailable {
        reason: format!("{} cannot be created", path.display()),
        source: Some(Arc::new(error)),
    })
}

/// Options that create files for their owner only.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs the folder of a file, so that the file's name survives a power failure.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Other systems cannot open a folder as a file, and do not need it.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens the file without changing its content.
///
/// # Errors
///
/// `Unavailable` if the file cannot be opened. A file that is not a database is found only by the
/// first read.
pub(crate) fn open(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let context = format!("{} cannot be opened", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error| store_error(&context, error);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection
        .busy_timeout(options.lock_timeout)
        .map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Configures a writing connection: the log is on disk before a commit is acknowledged.
///
/// # Errors
///
/// `Incompatible` if the file system does not support a write-ahead log, as most network file
/// systems.
pub(crate) fn configure_writer(connection: &Connection, options: &SqliteOptions) -> Result<()> {
    let failed = |error| store_error("the database cannot be written", error);
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        let reason =
            "the file system does not support shared memory, which a write-ahead log needs";
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
        // SQLite uses the current size if this is smaller.
        connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(failed)?;
    }
    Ok(())
}

/// Configures a read-only connection.
pub(crate) fn configure_reader(connection: &Connection) -> Result<()> {
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| store_error("the database cannot be read", error))
}
