//! Reads, each in one transaction, so that its result is from one moment.
//!
//! Owns the conversion of rows into records, pages and commits. Data that cannot be converted is
//! reported in one of two ways: a record whose value is not JSON is [`Damaged`], and a list returns
//! it beside the others; anything else that this program would not have written, such as a negative
//! revision or an invalid key, is `Corrupt`.
//!
//! Nothing here writes. The functions also run on the writing connection, inside its transaction.

use fleetwright_store::{
    Batch, Change, Commit, Damaged, History, Interest, Json, Key, Kind, Page, Plan, Range, Record,
    RecordId, Result, Revision, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use crate::{
    cache::Cache,
    error::{corrupt, store_error},
    sql,
};

/// The largest number of commits in a batch of a watch.
const BATCH: u64 = 256;
/// The number of value bytes after which a batch ends, 4 MiB. A commit is never divided, so a batch
/// can be larger by one commit.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Returns the range of revisions whose changes are stored.
pub(crate) fn history(connection: &Connection) -> Result<History> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let statement = connection.prepare_cached(sql::META);
    let found = statement.and_then(|mut statement| statement.query_row([], read));
    let (head, compacted) =
        found.map_err(|error| store_error("the store's revision cannot be read", error))?;
    Ok(History {
        head: as_revision(head)?,
        compacted: as_revision(compacted)?,
    })
}

/// Returns a record, or `None` if it does not exist.
///
/// # Errors
///
/// `Corrupt` if its value is not JSON.
pub(crate) fn record(
    connection: &Connection,
    cache: &Cache,
    id: &RecordId,
) -> Result<Option<Record>> {
    let read = |row: &Row<'_>| {
        let revision = row.get(0)?;
        Ok((revision, stored_value(row, 1, cache, id, revision)?))
    };
    let keys = params![id.kind.as_str(), id.key.as_str()];
    let statement = connection.prepare_cached(sql::RECORD);
    let found: Option<(i64, StoredValue)> = statement
        .and_then(|mut statement| statement.query_row(keys, read).optional())
        .map_err(|error| store_error(&format!("{id} cannot be read"), error))?;
    let Some((revision, value)) = found else {
        return Ok(None);
    };
    let (bytes, is_new) = (value.bytes(), value.is_new());
    let record = value.parse(id.clone(), as_revision(revision)?)?;
    if is_new {
        cache.keep(id, record.revision, &record.value, bytes);
    }
    Ok(Some(record))
}

/// Reads a page in a transaction of its own, so that the records and the revision belong together.
pub(crate) fn page(connection: &mut Connection, cache: &Cache, plan: &Plan) -> Result<Page> {
    snapshot(connection, |connection| {
        page_within(connection, cache, plan)
    })
}

/// Reads a page inside an existing transaction, with the text of every value.
pub(crate) fn page_of_texts(connection: &Connection, plan: &Plan) -> Result<Page> {
    page_within(connection, &Cache::new(0), plan)
}

/// Reads a page inside an existing transaction. Its values are not kept in the cache, because a list of everything would replace
/// what is there.
fn page_within(connection: &Connection, cache: &Cache, plan: &Plan) -> Result<Page> {
    let revision = history(connection)?.head;
    let mut rows = rows_of(connection, cache, plan)
        .map_err(|error| store_error(&format!("a page of {} cannot be read", plan.kind), error))?;
    let more = rows.len() > plan.limit;
    rows.truncate(plan.limit);
    let mut page = Page {
        records: Vec::new(),
        damaged: Vec::new(),
        next: None,
        revision,
    };
    let mut last = None;
    for row in rows {
        let key = as_key(row.key)?;
        match row.value.parse(plan.id(&key), as_revision(row.revision)?) {
            Ok(record) => page.records.push(record),
            Err(damaged) => page.damaged.push(damaged),
        }
        last = Some((key, row.entry));
    }
    let last_on_full_page = last.filter(|_| more);
    page.next = last_on_full_page.map(|(key, entry)| plan.cursor_after(key, entry));
    Ok(page)
}

/// A row of a page before its conversion. `entry` is `None` in a list of all records.
struct PageRow {
    entry: Option<Vec<u8>>,
    key: String,
    revision: i64,
    value: StoredValue,
}

/// Reads one row more than fits into the page, to detect whether there are more.
fn rows_of(connection: &Connection, cache: &Cache, plan: &Plan) -> rusqlite::Result<Vec<PageRow>> {
    let limit = i64::try_from(plan.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let kind = plan.kind.as_str();
    let read = |row: &Row<'_>| {
        let key: String = row.get(1)?;
        let revision = row.get(2)?;
        let value = match Key::new(&key) {
            Ok(valid) => stored_value(row, 3, cache, &plan.id(&valid), revision)?,
            Err(_) => StoredValue::Text(row.get(3)?),
        };
        Ok(PageRow {
            entry: row.get(0)?,
            key,
            revision,
            value,
        })
    };
    match &plan.range {
        Range::Keys { after } => {
            // The empty string sorts before every key.
            let after = after.as_ref().map_or("", Key::as_str);
            let mut statement = connection.prepare_cached(sql::PAGE_BY_KEY)?;
            let rows = statement.query_map(params![kind, after, limit], read)?;
            rows.collect()
        }
        Range::Entries {
            index,
            prefix,
            after,
        } => {
            let (entry, key) = match after {
                Some((entry, key)) => (entry, key.as_str()),
                None => (prefix, ""),
            };
            let mut statement = connection.prepare_cached(sql::PAGE_BY_ENTRY)?;
            let range = params![kind, index.as_str(), entry, key, prefix_end(prefix), limit];
            let rows = statement.query_map(range, read)?;
            rows.collect()
        }
    }
}

/// Returns the first bytes after everything that starts with `prefix`.
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return bytes;
        }
    }
    // Only if all bytes are 0xff, with which no encoded value starts.
    vec![u8::MAX; 8]
}

/// Reads the commits after a revision, as many as fit into a batch. The batch can be empty if none
/// of them is of interest. If `through` is the start, there were no commits.
pub(crate) fn changes(
    connection: &mut Connection,
    cache: &Cache,
    after: Revision,
    interest: &Interest,
) -> Result<Batch> {
    snapshot(connection, |connection| {
        let history = history(connection)?;
        history.can_watch_from(after)?;
        let through = Revision(after.0.saturating_add(BATCH)).min(history.head);
        let (rows, through) = change_rows(connection, cache, after, through)?;
        let mut commits: Vec<Commit> = Vec::new();
        for row in rows {
            if !interest.includes(&row.id.kind) {
                continue;
            }
            let revision = row.revision;
            let change = row.change(cache)?;
            match commits
                .last_mut()
                .filter(|commit| commit.revision == revision)
            {
                Some(commit) => commit.changes.push(change),
                None => commits.push(Commit {
                    revision,
                    changes: vec![change],
                }),
            }
        }
        Ok(Batch { commits, through })
    })
}

/// A row of the change log.
struct ChangeRow {
    revision: Revision,
    id: RecordId,
    deleted: bool,
    record_revision: Revision,
    value: StoredValue,
}

impl ChangeRow {
    /// Validates the names and numbers of a row. The value is parsed only if it is of interest.
    fn read(row: &Row<'_>, cache: &Cache) -> Result<Self> {
        let raw = raw_change(row).map_err(log_error)?;
        let (revision, kind, key, deleted, record_revision) = raw;
        let id = RecordId {
            kind: as_kind(kind)?,
            key: as_key(key)?,
        };
        let value = stored_value(row, 5, cache, &id, record_revision).map_err(log_error)?;
        Ok(Self {
            revision: as_revision(revision)?,
            id,
            deleted,
            record_revision: as_revision(record_revision)?,
            value,
        })
    }

    /// Converts the row into a change.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the value is not JSON. A watch cannot skip it: that would be a gap.
    fn change(self, cache: &Cache) -> Result<Change> {
        let (bytes, is_new) = (self.value.bytes(), self.value.is_new());
        let damaged = |damaged: Damaged| {
            let location = format!("the change log at revision {}", self.revision);
            corrupt(format!("{location}: {}", damaged.reason))
        };
        let parsed = self.value.parse(self.id, self.record_revision);
        let record = parsed.map_err(damaged)?;
        // Other watches read the same, and the record probably still has this value.
        if is_new && !self.deleted {
            cache.keep(&record.id, record.revision, &record.value, bytes);
        }
        Ok(if self.deleted {
            Change::Deleted(record)
        } else {
            Change::Put(record)
        })
    }
}

/// Reads the changes of whole commits between two revisions, and returns up to which revision they
/// are complete: the requested one, or the one where the bytes of a batch end.
fn change_rows(
    connection: &Connection,
    cache: &Cache,
    after: Revision,
    through: Revision,
) -> Result<(Vec<ChangeRow>, Revision)> {
    let mut statement = connection.prepare_cached(sql::CHANGES).map_err(log_error)?;
    let range = [as_number(after), as_number(through)];
    let mut found = statement.query(range).map_err(log_error)?;
    let mut rows: Vec<ChangeRow> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.next().map_err(log_error)? {
        let row = ChangeRow::read(row, cache)?;
        let last = rows.last().map(|row| row.revision);
        if bytes > BATCH_BYTES && last != Some(row.revision) {
            return Ok((rows, last.unwrap_or(after)));
        }
        bytes += row.value.bytes();
        rows.push(row);
    }
    Ok((rows, through))
}

fn log_error(error: rusqlite::Error) -> StoreError {
    store_error("the change log cannot be read", error)
}

/// The columns of [`sql::CHANGES`] before the value.
type RawChange = (i64, String, String, bool, i64);

fn raw_change(row: &Row<'_>) -> rusqlite::Result<RawChange> {
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
    ))
}

/// Runs a read in one transaction, which sees the database as it was when the read started.
fn snapshot<T>(
    connection: &mut Connection,
    read: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    let failed = |error| store_error("a read cannot start", error);
    let transaction = connection.transaction().map_err(failed)?;
    let result = read(&transaction);
    // Nothing was written, so commit and rollback are the same.
    transaction.finish().map_err(failed)?;
    result
}

/// The value of a row: from the cache with the bytes that it had as text, or the text.
enum StoredValue {
    Known(Json, usize),
    Text(String),
}

/// Returns the value of a row. The text is read only if the cache does not have the value of this revision.
fn stored_value(
    row: &Row<'_>,
    column: usize,
    cache: &Cache,
    id: &RecordId,
    revision: i64,
) -> rusqlite::Result<StoredValue> {
    let revision = u64::try_from(revision).map(Revision);
    let known = revision.ok().and_then(|revision| cache.find(id, revision));
    Ok(match known {
        Some((value, bytes)) => StoredValue::Known(value, bytes),
        None => StoredValue::Text(row.get(column)?),
    })
}

impl StoredValue {
    fn bytes(&self) -> usize {
        match self {
            Self::Known(_, bytes) => *bytes,
            Self::Text(json) => json.len(),
        }
    }

    /// Whether the cache does not have it.
    fn is_new(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Returns the record with this value.
    fn parse(self, id: RecordId, revision: Revision) -> Result<Record, Damaged> {
        let value = match self {
            Self::Known(value, _) => value,
            Self::Text(json) => match serde_json::from_str::<Value>(&json) {
                Ok(value) => value.into(),
                Err(error) => {
                    let reason = format!("the value is not JSON: {error}");
                    return Err(Damaged::new(id, revision, reason));
                }
            },
        };
        Ok(Record {
            id,
            revision,
            value,
        })
    }
}

/// Converts a revision for SQLite, which has no unsigned integers. Larger ones are never committed.
pub(crate) fn as_number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// Converts a stored number into a revision.
pub(crate) fn as_revision(number: i64) -> Result<Revision> {
    let number = u64::try_from(number).map_err(|_| corrupt(format!("a revision is {number}")))?;
    Ok(Revision(number))
}

/// Validates a stored key.
pub(crate) fn as_key(text: String) -> Result<Key> {
    Key::try_from(text).map_err(|invalid| corrupt(invalid.to_string()))
}

/// Validates a stored kind.
fn as_kind(text: String) -> Result<Kind> {
    Kind::try_from(text).map_err(|invalid| corrupt(invalid.to_string()))
}
