//! Opening a database: identifies the file, migrates its format and updates its indexes.
//!
//! Owns the order of the steps, which makes opening safe while other processes do the same:
//!
//! 1. Take the lock: exclusively if no other handle is open, otherwise shared.
//! 2. Create the file if necessary, check that it has one name, and open it.
//! 3. Identify it, before anything is changed: a file of another program is left as it is.
//! 4. With an exclusive lock, migrate the format and rebuild the indexes that differ from the
//!    schema, in one transaction. Then make the lock shared, unless the handle is exclusive.
//! 5. Check that format and schema are the expected ones. If they are not, other handles are open:
//!    wait until they close and start again.

use std::{path::Path, thread, time::Instant};

use fleetwright_store::{Entry, Holds, Kind, Plan, Query, Record, Result, Schema, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::{
    SqliteOptions, connection,
    error::{corrupt, store_error},
    format::{self, Identity, MIGRATIONS, incompatible},
    location,
    lock::{self, Exclusivity, Lock},
    options::Sharing,
    read, write,
};

/// The number of records that are read at once while indexes are rebuilt.
const REINDEX_PAGE: u32 = 500;

/// An open database with its lock.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) writer: Connection,
    pub(crate) lock: Lock,
}

/// Opens a database.
///
/// With an exclusive lock, format and indexes are updated if necessary. Otherwise the database must
/// be up to date; if it is not, the call waits for other handles to close and fails after the lock
/// timeout.
pub(crate) fn open(path: &Path, schema: &Schema, options: &SqliteOptions) -> Result<Opened> {
    let since = Instant::now();
    loop {
        match attempt(path, schema, options)? {
            Attempt::Ready(opened) => return Ok(opened),
            Attempt::OthersOpen(refusal) if since.elapsed() >= options.lock_timeout => {
                return Err(refusal);
            }
            Attempt::OthersOpen(_) => thread::sleep(lock::RETRY),
        }
    }
}

/// What came of one attempt to open a database.
enum Attempt {
    /// The database is open and up to date.
    Ready(Opened),
    /// The database must be changed, and other handles are open.
    OthersOpen(StoreError),
}

/// Runs all steps once.
fn attempt(path: &Path, schema: &Schema, options: &SqliteOptions) -> Result<Attempt> {
    let (lock, exclusivity) = Lock::take(path, options.sharing, options.lock_timeout)?;
    connection::create_file(path)?;
    location::check_single_name(path)?;
    let mut writer = connection::open(path, options)?;
    // Before anything is changed: a file of another program is not touched.
    format::identify(&writer, MIGRATIONS.len())?;
    connection::configure_writer(&writer, options)?;
    if exclusivity == Exclusivity::Alone {
        update_database(&mut writer, schema)?;
        if options.sharing == Sharing::Shared {
            lock.share()?;
        }
    }
    // Also after an exclusive lock: another process may have had it exclusively while it became
    // shared.
    Ok(match find_incompatibility(&writer, schema)? {
        None => Attempt::Ready(Opened { writer, lock }),
        Some(refusal) => Attempt::OthersOpen(refusal),
    })
}

/// Updates format and indexes in one transaction.
fn update_database(connection: &mut Connection, schema: &Schema) -> Result<()> {
    let failed = |error| store_error("the database cannot be updated", error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    format::migrate(&transaction, MIGRATIONS)?;
    let before = stored_schema(&transaction)?;
    if before != *schema {
        reindex(&transaction, &before, schema)?;
        let json = serde_json::to_string(schema).map_err(|error| corrupt(error.to_string()))?;
        transaction
            .execute("UPDATE meta SET schema = ?1 WHERE id = 1", [json])
            .map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// Returns why the database cannot be used as it is, or `None` if it can.
fn find_incompatibility(connection: &Connection, schema: &Schema) -> Result<Option<StoreError>> {
    let newest = MIGRATIONS.len();
    let is_newest = match format::identify(connection, newest)? {
        Identity::New => false,
        Identity::Ours(version) => usize::try_from(version) == Ok(newest),
    };
    if !is_newest {
        let reason = "the database has an older format and is in use, so it cannot be migrated";
        return Ok(Some(incompatible(reason)));
    }
    let is_same = stored_schema(connection)? == *schema;
    Ok((!is_same).then(|| incompatible("the database is in use with another schema")))
}

/// Returns the schema that the indexes in the file were built for.
fn stored_schema(connection: &Connection) -> Result<Schema> {
    let json: String = connection
        .query_row("SELECT schema FROM meta WHERE id = 1", [], |row| row.get(0))
        .map_err(|error| store_error("the schema in the database cannot be read", error))?;
    serde_json::from_str(&json).map_err(|error| {
        corrupt(format!(
            "the schema in the database cannot be read: {error}"
        ))
    })
}

/// Rebuilds the entries of every kind whose indexes changed. Records of removed kinds stay in the
/// file.
fn reindex(connection: &Connection, before: &Schema, schema: &Schema) -> Result<()> {
    for (kind, _) in before.kinds() {
        if before.indexes(kind).ok() != schema.indexes(kind).ok() {
            connection
                .execute("DELETE FROM entries WHERE kind = ?1", [kind.as_str()])
                .map_err(|error| store_error("an index cannot be removed", error))?;
        }
    }
    for (kind, indexes) in schema.kinds() {
        if before.indexes(kind).ok() != Some(indexes) {
            index_all(connection, schema, kind)?;
        }
    }
    Ok(())
}

/// Adds the index entries of every record of a kind, page by page.
fn index_all(connection: &Connection, schema: &Schema, kind: &Kind) -> Result<()> {
    // A kind that was removed and added again has no entries.
    let mut query = Query::all(kind.clone()).limit(REINDEX_PAGE);
    loop {
        let page = read::page_of_texts(connection, &query.plan(schema)?)?;
        // A damaged record can be found only by its key.
        for record in &page.records {
            index_one(connection, schema, record)?;
        }
        match page.next {
            Some(cursor) => query = query.after(cursor),
            None => return Ok(()),
        }
    }
}

/// Adds the index entries of one record.
///
/// # Errors
///
/// `Incompatible` if the value cannot be indexed, or another record has the value of a unique
/// index. The message names both records, so that an operator can change one of them with the old
/// schema.
fn index_one(connection: &Connection, schema: &Schema, record: &Record) -> Result<()> {
    let id = &record.id;
    let entries = schema
        .entries(&id.kind, &record.value)
        .map_err(|invalid| incompatible(format!("{id} does not fit the schema: {invalid}")))?;
    for entry in entries.iter().filter(|entry| entry.holds == Holds::One) {
        if let Some(holder) = find_holder(connection, schema, record, entry)? {
            return Err(incompatible(format!(
                "index {} of {} cannot be unique: {} and {holder} both have {}",
                entry.index, id.kind, id.key, entry.value
            )));
        }
    }
    write::add_entries(connection, id, &entries)
}

/// Returns the key of a record that already has a unique value.
fn find_holder(
    connection: &Connection,
    schema: &Schema,
    record: &Record,
    entry: &Entry,
) -> Result<Option<String>> {
    let query = Query::by(
        record.id.kind.clone(),
        entry.index.clone(),
        entry.value.0.clone(),
    );
    let plan: Plan = query.limit(1).plan(schema)?;
    let page = read::page_of_texts(connection, &plan)?;
    Ok(page.records.first().map(|holder| holder.id.key.to_string()))
}
