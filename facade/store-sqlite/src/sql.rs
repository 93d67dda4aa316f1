//! All statements that run while a store is open.
//!
//! They are constants, so that SQLite's statement cache finds them and a test can check the query
//! plan of each: all of them use an index. Opening and checking a file have statements of their
//! own, which may scan.

/// The newest revision, and the one up to which changes are forgotten.
pub(crate) const META: &str = "SELECT revision, compacted FROM meta WHERE id = 1";
/// Raises the newest revision, once per group of transactions.
pub(crate) const SET_REVISION: &str = "UPDATE meta SET revision = ?1 WHERE id = 1";
/// Sets the revision up to which changes are forgotten.
pub(crate) const SET_COMPACTED: &str = "UPDATE meta SET compacted = ?1 WHERE id = 1";
/// Writes a page without changing anything, to overwrite a failed commit in the write-ahead log.
pub(crate) const SETTLE: &str = "UPDATE meta SET revision = revision WHERE id = 1";

/// A record by kind and key.
pub(crate) const RECORD: &str = "SELECT revision, value FROM records WHERE kind = ?1 AND key = ?2";
/// The revision of a record, without reading its value.
pub(crate) const RECORD_REVISION: &str =
    "SELECT revision FROM records WHERE kind = ?1 AND key = ?2";
/// Creates or replaces a record.
pub(crate) const PUT_RECORD: &str = "INSERT INTO records (kind, key, revision, value) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (kind, key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
/// Deletes a record.
pub(crate) const DELETE_RECORD: &str = "DELETE FROM records WHERE kind = ?1 AND key = ?2";

/// Up to two keys whose entry is in a range: two, because one of them may be the excepted record.
pub(crate) const HOLDERS: &str = "SELECT key FROM entries WHERE kind = ?1 AND name = ?2 AND entry >= ?3 AND entry < ?4 \
    ORDER BY entry, key LIMIT 2";
/// Adds an index entry.
pub(crate) const PUT_ENTRY: &str =
    "INSERT INTO entries (kind, name, entry, key, is_unique) VALUES (?1, ?2, ?3, ?4, ?5)";
/// The index entries of a record. It names the index, because the planner would use the primary key
/// and read the whole kind.
pub(crate) const ENTRIES: &str =
    "SELECT name, entry FROM entries INDEXED BY entries_of_record WHERE kind = ?1 AND key = ?2";
/// Deletes an index entry.
pub(crate) const DELETE_ENTRY: &str =
    "DELETE FROM entries WHERE kind = ?1 AND name = ?2 AND entry = ?3 AND key = ?4";

/// A page of all records of a kind, in the order of keys.
pub(crate) const PAGE_BY_KEY: &str = "SELECT NULL, key, revision, value FROM records WHERE kind = ?1 AND key > ?2 \
    ORDER BY key LIMIT ?3";
/// A page of the records with an index value, in the order of entries and keys. A cross join fixes
/// the order of the tables.
pub(crate) const PAGE_BY_ENTRY: &str = "SELECT entries.entry, entries.key, records.revision, records.value \
    FROM entries CROSS JOIN records ON records.kind = entries.kind AND records.key = entries.key \
    WHERE entries.kind = ?1 AND entries.name = ?2 AND (entries.entry, entries.key) > (?3, ?4) AND entries.entry < ?5 \
    ORDER BY entries.entry, entries.key LIMIT ?6";

/// Adds a change to the log.
pub(crate) const PUT_CHANGE: &str = "INSERT INTO changes (revision, position, kind, key, deleted, record_revision, value) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
/// The changes between two revisions, in order.
pub(crate) const CHANGES: &str = "SELECT revision, kind, key, deleted, record_revision, value FROM changes \
    WHERE revision > ?1 AND revision <= ?2 ORDER BY revision, position";
/// Deletes changes from the log.
pub(crate) const FORGET_CHANGES: &str = "DELETE FROM changes WHERE revision <= ?1";

/// Every statement, for the test of the plans.
#[cfg(test)]
pub(crate) const ALL: &[&str] = &[
    META,
    SET_REVISION,
    SET_COMPACTED,
    SETTLE,
    RECORD,
    RECORD_REVISION,
    PUT_RECORD,
    DELETE_RECORD,
    HOLDERS,
    PUT_ENTRY,
    ENTRIES,
    DELETE_ENTRY,
    PAGE_BY_KEY,
    PAGE_BY_ENTRY,
    PUT_CHANGE,
    CHANGES,
    FORGET_CHANGES,
];
