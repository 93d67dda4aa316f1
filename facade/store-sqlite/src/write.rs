//! Executes one transaction inside the caller's SQLite transaction.
//!
//! Owns the statements of a transaction and their order: evaluate, delete the index entries that the written records lose, write
//! records, new entries and changes in the order of the writes. An entry that a record keeps is not written. It never begins,
//! commits or rolls back, and the revision of the store is set by the [`writer`](crate::writer), once for a group. If a
//! statement fails, the caller must roll back, because some of the writes may have been executed.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_store::{
    Entry, Holds, IndexName, Key, Kind, Prepared, PreparedWrite, RecordId, Result, Revision,
    Schema, View,
};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use serde_json::Value;

use crate::{
    error::store_error,
    read::{as_key, as_number, as_revision, prefix_end},
    sql,
};

/// Evaluates and executes a transaction. Returns its revision, or `head` if it has no effect.
///
/// # Errors
///
/// `Conflict` before anything was written. Any other error requires a rollback.
pub(crate) fn execute(
    connection: &Connection,
    schema: &Schema,
    prepared: &Prepared,
    head: Revision,
) -> Result<Revision> {
    let mut view = ConnectionView {
        connection,
        revisions: BTreeMap::new(),
    };
    prepared.evaluate(&mut view)?;
    let revision = head.next();
    // Old values are released first, because another write may claim them.
    let mut kept = Vec::new();
    for write in prepared.writes() {
        let is_indexed = !schema.indexes(&write.id.kind)?.is_empty();
        let has_entries = is_indexed && view.revision(&write.id)?.is_some();
        kept.push(if has_entries {
            release_entries(connection, write)?
        } else {
            BTreeSet::new()
        });
    }
    let mut position = 0;
    for (write, kept) in prepared.writes().iter().zip(&kept) {
        let position_in_log = LogPosition { revision, position };
        if write_one(connection, write, kept, position_in_log)? {
            position += 1;
        }
    }
    Ok(if position == 0 { head } else { revision })
}

/// Sets the newest revision. Once for a group of transactions.
pub(crate) fn set_revision(connection: &Connection, revision: Revision) -> Result<()> {
    run(connection, sql::SET_REVISION, [as_number(revision)])?;
    Ok(())
}

/// An index entry as pair of index name and encoded value.
type EntryRow = (String, Vec<u8>);

/// Deletes the index entries of a record that its new value does not have, and returns the others.
fn release_entries(connection: &Connection, write: &PreparedWrite) -> Result<BTreeSet<EntryRow>> {
    let (kind, key) = (write.id.kind.as_str(), write.id.key.as_str());
    let wanted = write.put.as_ref().map_or(&[][..], |put| &put.entries);
    let is_wanted = |(index, bytes): &EntryRow| {
        let mut wanted = wanted.iter();
        wanted.any(|entry| entry.index.as_str() == index && entry.bytes == *bytes)
    };
    let stored = entries_of(connection, &write.id)?;
    let (kept, lost): (BTreeSet<_>, BTreeSet<_>) = stored.into_iter().partition(is_wanted);
    for (index, bytes) in lost {
        run(
            connection,
            sql::DELETE_ENTRY,
            params![kind, index, bytes, key],
        )?;
    }
    Ok(kept)
}

/// Returns the stored index entries of a record.
fn entries_of(connection: &Connection, id: &RecordId) -> Result<Vec<EntryRow>> {
    let read = || -> rusqlite::Result<Vec<EntryRow>> {
        let mut statement = connection.prepare_cached(sql::ENTRIES)?;
        let keys = params![id.kind.as_str(), id.key.as_str()];
        let rows = statement.query_map(keys, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    read().map_err(|error| store_error("an index cannot be read", error))
}

/// Forgets the changes up to a revision, and records it, so that a watch from before is refused
/// instead of missing changes.
pub(crate) fn forget(connection: &Connection, through: Revision) -> Result<()> {
    run(connection, sql::FORGET_CHANGES, [as_number(through)])?;
    run(connection, sql::SET_COMPACTED, [as_number(through)])?;
    Ok(())
}

/// Adds the index entries of a record. It must not have them yet.
pub(crate) fn add_entries<'e>(
    connection: &Connection,
    id: &RecordId,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Result<()> {
    for entry in entries {
        let is_unique = entry.holds == Holds::One;
        let (kind, index, key) = (id.kind.as_str(), entry.index.as_str(), id.key.as_str());
        run(
            connection,
            sql::PUT_ENTRY,
            params![kind, index, entry.bytes, key, is_unique],
        )?;
    }
    Ok(())
}

/// The position of a change in the log: the revision of its transaction, and its number in it from
/// 0.
#[derive(Clone, Copy)]
struct LogPosition {
    revision: Revision,
    position: i64,
}

/// Executes one write, and returns whether it had an effect. The deletion of a record that does not
/// exist has none and adds nothing to the log.
fn write_one(
    connection: &Connection,
    write: &PreparedWrite,
    kept: &BTreeSet<EntryRow>,
    position_in_log: LogPosition,
) -> Result<bool> {
    let (kind, key) = (write.id.kind.as_str(), write.id.key.as_str());
    let now = as_number(position_in_log.revision);
    if let Some(put) = &write.put {
        run(
            connection,
            sql::PUT_RECORD,
            params![kind, key, now, put.json],
        )?;
        let is_new = |entry: &&Entry| {
            let is_same =
                |(index, bytes): &EntryRow| *index == entry.index.as_str() && *bytes == entry.bytes;
            !kept.iter().any(is_same)
        };
        add_entries(connection, &write.id, put.entries.iter().filter(is_new))?;
        let change = params![
            now,
            position_in_log.position,
            kind,
            key,
            false,
            now,
            put.json
        ];
        run(connection, sql::PUT_CHANGE, change)?;
        return Ok(true);
    }
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let before: Option<(i64, String)> = find(connection, sql::RECORD, [kind, key], read)?;
    let Some((revision, json)) = before else {
        return Ok(false);
    };
    run(connection, sql::DELETE_RECORD, [kind, key])?;
    let json = readable(json);
    let change = params![
        now,
        position_in_log.position,
        kind,
        key,
        true,
        revision,
        json
    ];
    run(connection, sql::PUT_CHANGE, change)?;
    Ok(true)
}

/// Replaces an unreadable value by null, so that the log stays readable and a damaged record can be
/// deleted.
fn readable(json: String) -> String {
    match serde_json::from_str::<Value>(&json) {
        Ok(_) => json,
        Err(_) => Value::Null.to_string(),
    }
}

/// The state that a transaction is evaluated against: the database inside the current SQLite
/// transaction, so earlier transactions of the same group are included.
struct ConnectionView<'c> {
    connection: &'c Connection,
    /// What was read already. Nothing is written during the evaluation.
    revisions: BTreeMap<RecordId, Option<Revision>>,
}

impl View for ConnectionView<'_> {
    fn revision(&mut self, id: &RecordId) -> Result<Option<Revision>> {
        if let Some(known) = self.revisions.get(id) {
            return Ok(*known);
        }
        let keys = [id.kind.as_str(), id.key.as_str()];
        let found = find(self.connection, sql::RECORD_REVISION, keys, |row| {
            row.get(0)
        })?;
        let found = found.map(as_revision).transpose()?;
        self.revisions.insert(id.clone(), found);
        Ok(found)
    }

    fn find_two_holders(
        &mut self,
        kind: &Kind,
        index: &IndexName,
        prefix: &[u8],
    ) -> Result<Vec<Key>> {
        let range = params![kind.as_str(), index.as_str(), prefix, prefix_end(prefix)];
        let keys = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare_cached(sql::HOLDERS)?;
            let rows = statement.query_map(range, |row| row.get(0))?;
            rows.collect()
        };
        let keys = keys().map_err(|error| store_error("an index cannot be read", error))?;
        keys.into_iter().map(as_key).collect()
    }
}

/// Executes a cached statement and returns the number of changed rows.
fn run(connection: &Connection, statement: &str, values: impl Params) -> Result<usize> {
    let prepared = connection.prepare_cached(statement);
    prepared
        .and_then(|mut prepared| prepared.execute(values))
        .map_err(|error| store_error("a write failed", error))
}

/// Returns the first row of a cached query, or `None`.
fn find<T>(
    connection: &Connection,
    statement: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    let prepared = connection.prepare_cached(statement);
    prepared
        .and_then(|mut prepared| prepared.query_row(values, read).optional())
        .map_err(|error| store_error("a record cannot be read", error))
}
