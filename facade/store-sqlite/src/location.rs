//! Where a database is, whatever name it is opened by.
//!
//! Owns the one path that stands for a file: its lock, its write-ahead log and its shared memory are
//! named after it. If two names of one file led to two paths, two handles would not see each other's
//! lock, and two write-ahead logs would destroy the database.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleetwright_store::{Result, StoreError};

use crate::format::incompatible;

/// Returns the path of a database without symbolic links and relative parts. The file need not exist.
///
/// # Errors
///
/// `Unavailable` if the folder does not exist or cannot be read.
pub(crate) fn resolve(given: &Path) -> Result<PathBuf> {
    resolve_file(given).map_err(|error| StoreError::Unavailable {
        reason: format!("{} cannot be opened", given.display()),
        source: Some(Arc::new(error)),
    })
}

fn resolve_file(given: &Path) -> io::Result<PathBuf> {
    // An absolute path does not depend on the current folder and has no special meaning for SQLite.
    let absolute = std::path::absolute(given)?;
    match absolute.canonicalize() {
        // A file that is about to be created: its folder has one path, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match (absolute.parent(), absolute.file_name()) {
                (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
                (None | Some(_), None | Some(_)) => Err(error),
            }
        }
        resolved => resolved,
    }
}

/// Refuses a file with several names. SQLite names the write-ahead log after the path, so a second
/// name has a second log. The operating system does not tell the other names.
///
/// # Errors
///
/// `Incompatible` if there is a hard link to the file.
#[cfg(unix)]
pub(crate) fn check_single_name(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let names = std::fs::metadata(path).map_or(1, |found| found.nlink());
    if names <= 1 {
        return Ok(());
    }
    Err(incompatible(format!(
        "{} has {names} names (hard links), and may be in use under another one: remove the other names, \
         and use symbolic links instead",
        path.display()
    )))
}

/// Other systems do not tell the number of names.
#[cfg(not(unix))]
pub(crate) fn check_single_name(_: &Path) -> Result<()> {
    Ok(())
}
