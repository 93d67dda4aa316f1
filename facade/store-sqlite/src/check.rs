//! The integrity check of a file: SQLite's own check, then every record against its index entries.

use std::collections::BTreeSet;

use fleetwright_store::{Kind, Page, Query, Record, Result, Schema};
use rusqlite::{Connection, params};

use crate::{error::store_error, read};

/// Returns the problems of a file as messages.
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
        } = read::page_within(connection, &query.plan(schema)?)?;
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

type Entries = BTreeSet<(String, Vec<u8>)>;

fn expected_entries(schema: &Schema, record: &Record) -> Entries {
    let entries = schema
        .entries(&record.id.kind, &record.value)
        .unwrap_or_default();
    let rows = entries
        .into_iter()
        .map(|entry| (entry.index.to_string(), entry.bytes));
    rows.collect()
}

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

fn count_entries(connection: &Connection, kind: &Kind) -> Result<usize> {
    let text = "SELECT count(*) FROM entries WHERE kind = ?1";
    let all: i64 = connection
        .query_row(text, [kind.as_str()], |row| row.get(0))
        .map_err(|error| store_error("the indexes cannot be counted", error))?;
    Ok(usize::try_from(all).unwrap_or(0))
}
