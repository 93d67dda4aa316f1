//! All statements that run while a store is open. A test checks the query plan of each: all of them use an index.

/// The newest revision, and the one up to which changes are forgotten.
pub(crate) const META: &str = "SELECT revision, compacted FROM meta WHERE id = 1";
pub(crate) const SET_REVISION: &str = "UPDATE meta SET revision = ?1 WHERE id = 1";
pub(crate) const SET_COMPACTED: &str = "UPDATE meta SET compacted = ?1 WHERE id = 1";
/// Writes a page without changing anything.
pub(crate) const SETTLE: &str = "UPDATE meta SET revision = revision WHERE id = 1";

pub(crate) const RECORD: &str = "SELECT revision, value FROM records WHERE kind = ?1 AND key = ?2";
pub(crate) const RECORD_REVISION: &str =
    "SELECT revision FROM records WHERE kind = ?1 AND key = ?2";
pub(crate) const PUT_RECORD: &str = "INSERT INTO records (kind, key, revision, value) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (kind, key) DO UPDATE SET revision = excluded.revision, value = excluded.value";
pub(crate) const DELETE_RECORD: &str = "DELETE FROM records WHERE kind = ?1 AND key = ?2";

pub(crate) const HOLDERS: &str = "SELECT key FROM entries WHERE kind = ?1 AND name = ?2 AND entry >= ?3 AND entry < ?4 \
    ORDER BY entry, key LIMIT 2";
pub(crate) const PUT_ENTRY: &str =
    "INSERT INTO entries (kind, name, entry, key, is_unique) VALUES (?1, ?2, ?3, ?4, ?5)";
// With the index by name, because the planner would use the primary key and read the whole kind.
pub(crate) const DELETE_ENTRIES: &str =
    "DELETE FROM entries INDEXED BY entries_of_record WHERE kind = ?1 AND key = ?2";

pub(crate) const PAGE_BY_KEY: &str = "SELECT NULL, key, revision, value FROM records WHERE kind = ?1 AND key > ?2 \
    ORDER BY key LIMIT ?3";
// A cross join fixes the order of the tables.
pub(crate) const PAGE_BY_ENTRY: &str = "SELECT entries.entry, entries.key, records.revision, records.value \
    FROM entries CROSS JOIN records ON records.kind = entries.kind AND records.key = entries.key \
    WHERE entries.kind = ?1 AND entries.name = ?2 AND (entries.entry, entries.key) > (?3, ?4) AND entries.entry < ?5 \
    ORDER BY entries.entry, entries.key LIMIT ?6";

pub(crate) const PUT_CHANGE: &str = "INSERT INTO changes (revision, position, kind, key, deleted, record_revision, value) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(crate) const CHANGES: &str = "SELECT revision, kind, key, deleted, record_revision, value FROM changes \
    WHERE revision > ?1 AND revision <= ?2 ORDER BY revision, position";
pub(crate) const FORGET_CHANGES: &str = "DELETE FROM changes WHERE revision <= ?1";

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
    DELETE_ENTRIES,
    PAGE_BY_KEY,
    PAGE_BY_ENTRY,
    PUT_CHANGE,
    CHANGES,
    FORGET_CHANGES,
];
