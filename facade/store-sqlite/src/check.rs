//! The integrity check of a file: SQLite's own check, then every record against its index entries.
//!
//! The whole check runs in one read transaction, so it compares data of one moment while others
//! write. It only reads: it repairs nothing. A problem is one line that names the record, for an
//! operator to act on.
//!
//! Four things are checked, in this order:
//!
//! 1. the pages and B-trees of the file, by `PRAGMA integrity_check`;
//! 2. that every value is JSON;
//! 3. that no record is newer than the store, which would break compare-and-set;
//! 4. that the index entries of every record are the ones that its value has under the schema, and
//!    that there are no others.

use std::collections::BTreeSet;

use fleetwright_store::{Kind, Page, Query, Record, Result, Schema};
use rusqlite::{Connection, params};

use crate::{error::store_error, read};

/// Returns the problems of a file as messages; none means that the file is intact.
///
/// # Errors
///
/// The check itself could not be completed, so nothing is known about the rest of the file.
pub(crate) fn find_problems(connection: &mut Connection, schema: &Schema) -> Result<Vec<String>> {
    let failed = |error| store_error("a check cannot start", error);
    let transaction = connection.transaction().map_err(failed)?;
    let mut problems = find_file_problems(&transaction)?;
    for (kind, _) in schema.kinds() {
        problems.extend(find_kind_problems(&transaction, schema, kind)?);
    }
    transaction.finish().map_err(failed)?;
    Ok(problems)
}

/// Returns what SQLite's own check reports about pages, B-trees and constraints.
fn find_file_problems(connection: &Connection) -> Result<Vec<String>> {
    let integrity_check = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA integrity_check")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    let lines =
        integrity_check().map_err(|error| store_error("the file cannot be checked", error))?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Checks the records of one kind, page by page, and counts their entries to find entries without a
/// record.
fn find_kind_problems(
    connection: &Connection,
    schema: &Schema,
    kind: &Kind,
) -> Result<Vec<String>> {
    let head = read::history(connection)?.head;
    let mut problems = Vec::new();
    let mut entries = 0;
    let mut query = Query::all(kind.clone());
    loop {
        let Page {
            records,
            damaged,
            next,
            ..
        } = read::page_of_texts(connection, &query.plan(schema)?)?;
        problems.extend(
            damaged
                .iter()
                .map(|record| format!("{}: {}", record.id, record.reason)),
        );
        for record in &records {
            if record.revision > head {
                problems.push(format!("{} has a revision newer than the store", record.id));
            }
            let (expected, found) = (
                expected_entries(schema, record),
                stored_entries(connection, record)?,
            );
            entries += found.len();
            if expected != found {
                problems.push(format!(
                    "{} has index entries that do not match its value",
                    record.id
                ));
            }
        }
        match next {
            Some(cursor) => query = query.after(cursor),
            None => break,
        }
    }
    let all = count_entries(connection, kind)?;
    if all > entries && problems.is_empty() {
        problems.push(format!(
            "{} index entries of {kind} belong to no record",
            all - entries
        ));
    }
    Ok(problems)
}

/// Index entries as pairs of index name and encoded value.
type Entries = BTreeSet<(String, Vec<u8>)>;

/// Returns the entries that the schema computes from the value. A value that cannot be indexed has
/// none.
fn expected_entries(schema: &Schema, record: &Record) -> Entries {
    let entries = schema
        .entries(&record.id.kind, &record.value)
        .unwrap_or_default();
    let rows = entries
        .into_iter()
        .map(|entry| (entry.index.to_string(), entry.bytes));
    rows.collect()
}

/// Returns the entries that the file has for a record.
fn stored_entries(connection: &Connection, record: &Record) -> Result<Entries> {
    let read = || -> rusqlite::Result<Entries> {
        let text = "SELECT name, entry FROM entries INDEXED BY entries_of_record WHERE kind = ?1 AND key = ?2";
        let mut statement = connection.prepare_cached(text)?;
        let id = params![record.id.kind.as_str(), record.id.key.as_str()];
        let rows = statement.query_map(id, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    read().map_err(|error| store_error("the indexes cannot be read", error))
}

/// Returns the number of entries of a kind, with and without a record.
fn count_entries(connection: &Connection, kind: &Kind) -> Result<usize> {
    let text = "SELECT count(*) FROM entries WHERE kind = ?1";
    let all: i64 = connection
        .query_row(text, [kind.as_str()], |row| row.get(0))
        .map_err(|error| store_error("the indexes cannot be counted", error))?;
    Ok(usize::try_from(all).unwrap_or(0))
}
