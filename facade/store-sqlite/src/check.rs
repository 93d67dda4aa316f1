//! The integrity check of a file: SQLite's own check, then every record against its index entries.

use std::collections::BTreeSet;

use fleetwright_store::{Kind, Page, Query, Record, Result, Schema};
use rusqlite::{Connection, params};

use crate::{error::store_error, read};

/// Returns the problems of a file as messages.
pub(crate) fn problems(connection: &mut Connection, schema: &Schema) -> Result<Vec<String>> {
    let failed = |error| store_error("a check cannot begin", error);
    let transaction = connection.transaction().map_err(failed)?;
    let mut problems = of_the_file(&transaction)?;
    for (kind, _) in schema.kinds() {
        problems.extend(of_kind(&transaction, schema, kind)?);
    }
    transaction.finish().map_err(failed)?;
    Ok(problems)
}

fn of_the_file(connection: &Connection) -> Result<Vec<String>> {
    let told_by_sqlite = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("PRAGMA integrity_check")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    let lines =
        told_by_sqlite().map_err(|error| store_error("the file cannot be checked", error))?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn of_kind(connection: &Connection, schema: &Schema, kind: &Kind) -> Result<Vec<String>> {
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
                .map(|one| format!("{}: {}", one.id, one.reason)),
        );
        for record in &records {
            if record.revision > head {
                problems.push(format!("{} is ahead of the store", record.id));
            }
            let (wanted, found) = (wanted(schema, record), found(connection, record)?);
            entries += found.len();
            if wanted != found {
                problems.push(format!(
                    "{} is not in its indexes as it should be",
                    record.id
                ));
            }
        }
        match next {
            Some(cursor) => query = query.after(cursor),
            None => break,
        }
    }
    let all = count(connection, kind)?;
    if all > entries && problems.is_empty() {
        problems.push(format!(
            "{} entries of {kind} are of no record",
            all - entries
        ));
    }
    Ok(problems)
}

type Entries = BTreeSet<(String, Vec<u8>)>;

fn wanted(schema: &Schema, record: &Record) -> Entries {
    let entries = schema
        .entries(&record.id.kind, &record.value)
        .unwrap_or_default();
    let rows = entries
        .into_iter()
        .map(|entry| (entry.index.to_string(), entry.bytes));
    rows.collect()
}

fn found(connection: &Connection, record: &Record) -> Result<Entries> {
    let read = || -> rusqlite::Result<Entries> {
        let text = "SELECT name, entry FROM entries INDEXED BY entries_of_record WHERE kind = ?1 AND key = ?2";
        let mut statement = connection.prepare_cached(text)?;
        let id = params![record.id.kind.as_str(), record.id.key.as_str()];
        let rows = statement.query_map(id, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    read().map_err(|error| store_error("the indexes cannot be read", error))
}

fn count(connection: &Connection, kind: &Kind) -> Result<usize> {
    let text = "SELECT count(*) FROM entries WHERE kind = ?1";
    let all: i64 = connection
        .query_row(text, [kind.as_str()], |row| row.get(0))
        .map_err(|error| store_error("the indexes cannot be counted", error))?;
    Ok(usize::try_from(all).unwrap_or(0))
}
