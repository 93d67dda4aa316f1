//! The file format and its migrations.
//!
//! Owns the tables and the header: an `application_id` that identifies files of this program, and a
//! `user_version` that is the format version. A file of another program or of a newer version is
//! refused and not changed; an older one is migrated step by step in one transaction.
//!
//! The tables:
//!
//! - `meta` has one row: the newest revision, the revision up to which changes are compacted, and
//!   the schema that the indexes were built for.
//! - `records` has the current value of every record as JSON text.
//! - `entries` has the index entries. A partial unique index over them makes SQLite refuse a second
//!   holder even if the evaluation of a transaction had a bug.
//! - `changes` is the log that watches read, one row per change, ordered by revision and position.

use fleetwright_store::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension as _};

use crate::error::store_error;

/// `"flwt"`, in the file's header.
pub(crate) const APPLICATION_ID: i64 = 0x666c_7774;

/// The migrations: each step leads from the version that is its position to the next. Version 0 is
/// an empty file. Steps are added, never changed.
pub(crate) const MIGRATIONS: &[&str] = &["
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        revision INTEGER NOT NULL,
        compacted INTEGER NOT NULL,
        schema TEXT NOT NULL
    ) STRICT;
    INSERT INTO meta (id, revision, compacted, schema) VALUES (1, 0, 0, '{}');
    CREATE TABLE records (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        revision INTEGER NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT;
    CREATE TABLE entries (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        entry BLOB NOT NULL,
        key TEXT NOT NULL,
        is_unique INTEGER NOT NULL,
        PRIMARY KEY (kind, name, entry, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX entries_of_record ON entries (kind, key);
    CREATE UNIQUE INDEX one_holder ON entries (kind, name, entry) WHERE is_unique = 1;
    CREATE TABLE changes (
        revision INTEGER NOT NULL,
        position INTEGER NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        deleted INTEGER NOT NULL,
        record_revision INTEGER NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (revision, position)
    ) STRICT;
"];

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Empty or missing.
    New,
    /// A database of this program, with its format version.
    Ours(i64),
}

/// Identifies a file without changing it. `newest` is the newest format that this program knows.
///
/// # Errors
///
/// `Incompatible` for a file of another program or of a newer format.
pub(crate) fn identify(connection: &Connection, newest: usize) -> Result<Identity> {
    let application = pragma(connection, "application_id")?;
    let version = pragma(connection, "user_version")?;
    if application == APPLICATION_ID {
        let known = i64::try_from(newest).unwrap_or(i64::MAX);
        return if (1..=known).contains(&version) {
            Ok(Identity::Ours(version))
        } else {
            Err(incompatible(format!(
                "the database has format {version}, and this program knows formats 1 to {known}"
            )))
        };
    }
    if application == 0 && version == 0 && is_empty(connection)? {
        return Ok(Identity::New);
    }
    Err(incompatible(format!(
        "the database belongs to another program: application_id {application:#x}, user_version {version}"
    )))
}

/// Migrates a database to the newest version, inside the caller's transaction. Does nothing if it
/// has it.
///
/// # Errors
///
/// The file is of another program or newer, or a step failed. The caller rolls back.
pub(crate) fn migrate(connection: &Connection, steps: &[&str]) -> Result<()> {
    let from = match identify(connection, steps.len())? {
        Identity::New => 0,
        Identity::Ours(version) => usize::try_from(version).unwrap_or(0),
    };
    for (version, step) in steps.iter().enumerate().skip(from) {
        let context = format!("migration from format {version} failed");
        connection
            .execute_batch(step)
            .map_err(|error| store_error(&context, error))?;
    }
    let stamp = format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
        steps.len()
    );
    connection
        .execute_batch(&stamp)
        .map_err(|error| store_error("the database's version cannot be written", error))
}

/// Reads a number of the file's header.
fn pragma(connection: &Connection, name: &str) -> Result<i64> {
    connection
        .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
        .map_err(|error| store_error("the database's header cannot be read", error))
}

/// Returns whether the file has no table.
fn is_empty(connection: &Connection) -> Result<bool> {
    connection
        .query_row("SELECT 1 FROM sqlite_master LIMIT 1", [], |_| Ok(()))
        .optional()
        .map(|found| found.is_none())
        .map_err(|error| store_error("the database's tables cannot be listed", error))
}

/// Returns an error for a file that this program must not use as it is.
pub(crate) fn incompatible(reason: impl Into<String>) -> StoreError {
    StoreError::Incompatible {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        pragma(connection, "user_version").unwrap()
    }

    #[test]
    fn older_database_is_migrated_with_its_data() {
        let connection = Connection::open_in_memory().unwrap();
        let steps = [
            "CREATE TABLE a (x); INSERT INTO a VALUES (7);",
            "ALTER TABLE a ADD y;",
        ];
        migrate(&connection, &steps[..1]).unwrap();
        assert_eq!(version(&connection), 1);
        migrate(&connection, &steps).unwrap();
        assert_eq!(version(&connection), 2);
        let kept: i64 = connection
            .query_row("SELECT x FROM a WHERE y IS NULL", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, 7);
        migrate(&connection, &steps).unwrap();
    }

    #[test]
    fn failed_migration_is_named() {
        let connection = Connection::open_in_memory().unwrap();
        let error =
            migrate(&connection, &["CREATE TABLE a (x)", "CREATE TABLE a (x)"]).unwrap_err();
        assert!(
            error.to_string().contains("migration from format 1"),
            "{error}"
        );
    }

    #[test]
    fn newer_database_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        migrate(&connection, &["CREATE TABLE a (x)", "CREATE TABLE b (x)"]).unwrap();
        let error = migrate(&connection, &["CREATE TABLE a (x)"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "store incompatible: the database has format 2, and this program knows formats 1 to 1"
        );
    }
}
