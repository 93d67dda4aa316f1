//! Opening: whose file it is, which format it has, and whether its indexes are those of the schema.

use std::{path::Path, thread, time::Instant};

use fleetwright_store::{Entry, Holds, Kind, Plan, Query, Record, Result, Schema, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::{
    SqliteOptions, connection,
    error::{corrupt, told},
    format::{self, Identity, MIGRATIONS, incompatible},
    lock::{self, Company, Lock},
    options::Sharing,
    read, write,
};

/// How many records are indexed anew at once.
const REINDEX_PAGE: u32 = 500;

/// A database that is ready, and the lock that keeps it so.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) writer: Connection,
    pub(crate) lock: Lock,
}

/// Opens a database: who is alone makes it what it should be, who is not finds it so or waits for the others to
/// go, and is refused when that takes too long.
pub(crate) fn open(path: &Path, schema: &Schema, options: &SqliteOptions) -> Result<Opened> {
    let since = Instant::now();
    loop {
        match attempt(path, schema, options)? {
            Attempt::Ready(opened) => return Ok(opened),
            Attempt::NotAlone(refusal) if since.elapsed() >= options.patience => {
                return Err(refusal);
            }
            Attempt::NotAlone(_) => thread::sleep(lock::RETRY),
        }
    }
}

enum Attempt {
    Ready(Opened),
    /// Something has to be changed, and others have the database open.
    NotAlone(StoreError),
}

fn attempt(path: &Path, schema: &Schema, options: &SqliteOptions) -> Result<Attempt> {
    let (lock, company) = Lock::take(path, options.sharing, options.patience)?;
    connection::make_file(path)?;
    let mut writer = connection::open(path, options)?;
    // Before anything is changed: a foreign file is left as it is.
    format::identify(&writer, MIGRATIONS.len())?;
    connection::make_writer(&writer, options)?;
    if company == Company::Alone {
        bring_up(&mut writer, schema)?;
        if options.sharing == Sharing::Shared {
            lock.share()?;
        }
    }
    // Also for who was alone: in the moment of sharing somebody else may have been.
    Ok(match what_must_change(&writer, schema)? {
        None => Attempt::Ready(Opened { writer, lock }),
        Some(refusal) => Attempt::NotAlone(refusal),
    })
}

/// Format and indexes, in one transaction.
fn bring_up(connection: &mut Connection, schema: &Schema) -> Result<()> {
    let failed = |error| told("the database cannot be brought up to date", error);
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

/// Why the database cannot be used as it is, if it cannot.
fn what_must_change(connection: &Connection, schema: &Schema) -> Result<Option<StoreError>> {
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

fn stored_schema(connection: &Connection) -> Result<Schema> {
    let json: String = connection
        .query_row("SELECT schema FROM meta WHERE id = 1", [], |row| row.get(0))
        .map_err(|error| told("the schema in the database cannot be read", error))?;
    serde_json::from_str(&json).map_err(|error| {
        corrupt(format!(
            "the schema in the database cannot be read: {error}"
        ))
    })
}

/// Makes the entries of every kind whose indexes have changed anew. Records of kinds that are no longer there
/// stay where they are.
fn reindex(connection: &Connection, before: &Schema, schema: &Schema) -> Result<()> {
    for (kind, _) in before.kinds() {
        if before.indexes(kind).ok() != schema.indexes(kind).ok() {
            connection
                .execute("DELETE FROM entries WHERE kind = ?1", [kind.as_str()])
                .map_err(|error| told("an index cannot be removed", error))?;
        }
    }
    for (kind, indexes) in schema.kinds() {
        if before.indexes(kind).ok() != Some(indexes) {
            index_all(connection, schema, kind)?;
        }
    }
    Ok(())
}

fn index_all(connection: &Connection, schema: &Schema, kind: &Kind) -> Result<()> {
    // A kind that was there once, went and comes back has none.
    let mut query = Query::all(kind.clone()).limit(REINDEX_PAGE);
    loop {
        let page = read::page_within(connection, &query.plan(schema)?)?;
        // A damaged record is found by its key alone.
        for record in &page.records {
            index_one(connection, schema, record)?;
        }
        match page.next {
            Some(cursor) => query = query.after(cursor),
            None => return Ok(()),
        }
    }
}

fn index_one(connection: &Connection, schema: &Schema, record: &Record) -> Result<()> {
    let id = &record.id;
    let entries = schema
        .entries(&id.kind, &record.value)
        .map_err(|invalid| incompatible(format!("{id} does not fit the schema: {invalid}")))?;
    for entry in entries.iter().filter(|entry| entry.holds == Holds::One) {
        if let Some(holder) = holder(connection, schema, record, entry)? {
            return Err(incompatible(format!(
                "index {} of {} cannot be unique: {} and {holder} both have {}",
                entry.index, id.kind, id.key, entry.value
            )));
        }
    }
    write::add_entries(connection, id, &entries)
}

fn holder(
    connection: &Connection,
    schema: &Schema,
    record: &Record,
    entry: &Entry,
) -> Result<Option<String>> {
    let by = Query::by(
        record.id.kind.clone(),
        entry.index.clone(),
        entry.value.0.clone(),
    );
    let plan: Plan = by.limit(1).plan(schema)?;
    let page = read::page_within(connection, &plan)?;
    Ok(page.records.first().map(|holder| holder.id.key.to_string()))
}
