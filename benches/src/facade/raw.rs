//! Raw transactions with `rusqlite`: the rows of a create, written again with other keys.

use std::path::Path;

use fleetwright_store::Json;
use rusqlite::{Connection, params};
use serde_json::Value;

/// The unique name of the last instance that [`super::world::World`] has created.
const NAME: &str = "web-00000001";

/// One record that a create writes.
#[derive(Debug)]
pub(super) struct RecordRows {
    pub(super) kind: String,
    key: String,
    value: String,
    /// The value as the store gets it.
    parsed: Value,
    /// The same, for writes that do not change it.
    json: Json,
    /// Whether each create writes a new one. Accounts are replaced.
    is_new: bool,
    /// The index, its entry, and whether it is unique.
    entries: Vec<(String, Vec<u8>, bool)>,
}

/// The rows of the last create in a file.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) records: Vec<RecordRows>,
}

impl RecordRows {
    pub(super) fn key(&self, number: usize) -> String {
        if self.is_new {
            with_number(&self.key, number)
        } else {
            self.key.clone()
        }
    }

    /// The value of a new record, with its key replaced wherever it occurs, and its unique name.
    pub(super) fn value(&self, number: usize) -> String {
        if !self.is_new {
            return self.value.clone();
        }
        let value = self.value.replace(&self.key, &self.key(number));
        value.replace(NAME, &format!("raw-{number:08}"))
    }

    /// What [`value`](Self::value) returns, without parsing it: a service has a value and no text.
    pub(super) fn json(&self, number: usize) -> Json {
        if !self.is_new {
            return self.json.clone();
        }
        let mut value = self.parsed.clone();
        let (key, name) = (self.key(number), format!("raw-{number:08}"));
        rename(&mut value, &[(&self.key, &key), (NAME, &name)]);
        value.into()
    }
}

/// Replaces parts of all texts in a value.
fn rename(value: &mut Value, names: &[(&str, &str)]) {
    match value {
        Value::String(text) => {
            for (before, after) in names {
                if text.contains(before) {
                    *text = text.replace(before, after);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the end of a key by a number. The length stays.
fn with_number(key: &str, number: usize) -> String {
    let kept = key.len().saturating_sub(10);
    format!("{}{number:010}", &key[..kept])
}

impl Rows {
    /// Reads the rows of the last commit.
    pub(super) fn last(path: &Path) -> Self {
        let connection = Connection::open(path).expect("a database");
        let sql = "SELECT c.kind, c.key, c.value, NOT EXISTS (SELECT 1 FROM changes o WHERE o.kind = c.kind \
             AND o.key = c.key AND o.revision < c.revision) FROM changes c WHERE c.revision = (SELECT revision FROM meta)";
        let mut statement = connection.prepare(sql).expect("a statement");
        let records = statement.query_map([], |row| {
            let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
            let entries = entries(&connection, &kind, &key)?;
            let value: String = row.get(2)?;
            let parsed: Value = serde_json::from_str(&value).expect("a value");
            Ok(RecordRows {
                kind,
                key,
                json: parsed.clone().into(),
                parsed,
                value,
                is_new: row.get(3)?,
                entries,
            })
        });
        let records = records.expect("rows").map(|record| record.expect("a row"));
        Self {
            records: records.collect(),
        }
    }
}

type Entries = Vec<(String, Vec<u8>, bool)>;

fn entries(connection: &Connection, kind: &str, key: &str) -> rusqlite::Result<Entries> {
    let sql = "SELECT name, entry, is_unique FROM entries WHERE kind = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([kind, key], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    rows.collect()
}

/// A database with the tables of the store, and a connection with its settings.
pub(super) struct Raw {
    connection: Connection,
    rows: Rows,
    written: usize,
    revision: i64,
}

impl Raw {
    /// Copies the database of a store, whose last commit is a create.
    pub(super) fn new(folder: &Path) -> Self {
        let (from, to) = (folder.join("fleet.db"), folder.join("raw.db"));
        let rows = Rows::last(&from);
        let original = Connection::open(&from).expect("a database");
        let copy = original.execute("VACUUM INTO ?1", [to.to_str().expect("a path")]);
        copy.expect("a copy");
        let connection = Connection::open(&to).expect("a database");
        connection
            .execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = full;")
            .expect("settings");
        connection.set_prepared_statement_cache_capacity(32);
        let revision = connection.query_row("SELECT revision FROM meta", [], |row| row.get(0));
        Self {
            revision: revision.expect("a revision"),
            connection,
            rows,
            written: 0,
        }
    }

    /// Writes the rows of `count` creates, `group` of them in each transaction.
    pub(super) fn write(&mut self, count: usize, group: usize) {
        let mut left = count;
        while left > 0 {
            let now = left.min(group);
            self.connection
                .execute_batch("BEGIN IMMEDIATE")
                .expect("a transaction");
            for _ in 0..now {
                self.write_one().expect("a write");
            }
            self.connection.execute_batch("COMMIT").expect("a commit");
            left -= now;
        }
    }

    fn write_one(&mut self) -> rusqlite::Result<()> {
        let (number, revision) = (self.written, self.revision + 1);
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            self.connection.prepare_cached(sql)?.execute(values)
        };
        for (position, record) in self.rows.records.iter().enumerate() {
            let (key, value) = (record.key(number), record.value(number));
            run(
                "INSERT INTO records (kind, key, revision, value) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (kind, key) \
                 DO UPDATE SET revision = excluded.revision, value = excluded.value",
                params![record.kind, key, revision, value],
            )?;
            for (name, entry, is_unique) in record.entries.iter().filter(|_| record.is_new) {
                let mut entry = entry.clone();
                if *is_unique {
                    let digits = number.to_be_bytes();
                    let end = entry.len().saturating_sub(digits.len() + 1);
                    entry.truncate(end);
                    entry.extend(digits);
                }
                run(
                    "INSERT INTO entries (kind, name, entry, key, is_unique) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![record.kind, name, entry, key, is_unique],
                )?;
            }
            run(
                "INSERT INTO changes (revision, position, kind, key, deleted, record_revision, value) \
                 VALUES (?1, ?2, ?3, ?4, 0, ?1, ?5)",
                params![revision, position as i64, record.kind, key, value],
            )?;
        }
        run(
            "UPDATE meta SET revision = ?1 WHERE id = 1",
            params![revision],
        )?;
        self.written += 1;
        self.revision = revision;
        Ok(())
    }
}
