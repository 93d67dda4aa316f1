//! The schema: kinds and their indexes, as data that every store interprets in the same way.
//!
//! Owns the computation of index entries from a record ([`Schema::entries`]) and of the byte range
//! of a lookup ([`Schema::prefix`]). No store computes either of them itself, so that all stores
//! find the same records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    IndexName, IndexValue, Invalid, Kind,
    index::Scalar,
    limits::{MAX_ENTRIES, MAX_OPERATIONS},
};

/// The kinds of a store with their indexes. A store refuses records of other kinds.
///
/// ```
/// # use fleetwright_store::Schema;
/// let schema = Schema::builder()
///     .kind("network")
///     .kind("server")
///     .unique("owner", ["/owner"])
///     .index("project", ["/organization", "/project"])
///     .build()?;
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schema {
    kinds: BTreeMap<Kind, BTreeMap<IndexName, Index>>,
}

/// An index of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Whether two records may have the same value.
    pub holds: Holds,
    /// The paths of the parts of the value, as JSON pointers (RFC 6901).
    pub paths: Vec<String>,
}

/// How many records may have the same index value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// At most one: the index is unique.
    One,
    /// Any number.
    Many,
}

impl Schema {
    /// Starts a schema.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Iterates over the kinds with their indexes.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &BTreeMap<IndexName, Index>)> {
        self.kinds.iter()
    }

    /// Returns the indexes of a kind.
    ///
    /// # Errors
    ///
    /// The kind does not exist.
    pub fn indexes(&self, kind: &Kind) -> Result<&BTreeMap<IndexName, Index>, Invalid> {
        self.kinds
            .get(kind)
            .ok_or_else(|| Invalid::new(format!("kind {kind} is not in the schema")))
    }

    /// Returns an index of a kind.
    ///
    /// # Errors
    ///
    /// The kind or the index does not exist.
    pub fn index(&self, kind: &Kind, name: &IndexName) -> Result<&Index, Invalid> {
        self.indexes(kind)?
            .get(name)
            .ok_or_else(|| Invalid::new(format!("kind {kind} has no index {name}")))
    }

    /// Returns the bytes with which the entries of an index value start.
    ///
    /// # Errors
    ///
    /// The index does not exist or has fewer parts than `value`, or `value` has no part.
    pub fn prefix(
        &self,
        kind: &Kind,
        name: &IndexName,
        value: &IndexValue,
    ) -> Result<Vec<u8>, Invalid> {
        let index = self.index(kind, name)?;
        let (given, parts) = (value.0.len(), index.paths.len());
        if !(1..=parts).contains(&given) {
            return Err(Invalid::new(format!(
                "index {name} of {kind} has 1 to {parts} parts, and {given} were given"
            )));
        }
        value.encoded()
    }

    /// Returns the entries of a record with `value` in the indexes of its kind.
    ///
    /// # Errors
    ///
    /// The kind does not exist, or a part of an index value has no order.
    pub fn entries(&self, kind: &Kind, value: &Value) -> Result<Vec<Entry>, Invalid> {
        let mut entries = Vec::new();
        for (name, index) in self.indexes(kind)? {
            let values = index
                .values(value)
                .map_err(|invalid| invalid.within(format_args!("index {name} of {kind}")))?;
            for value in values {
                let bytes = value
                    .encoded()
                    .map_err(|invalid| invalid.within(format_args!("index {name} of {kind}")))?;
                entries.push(Entry {
                    index: name.clone(),
                    holds: index.holds,
                    value,
                    bytes,
                });
            }
        }
        Ok(entries)
    }
}

/// One entry of a record in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The index.
    pub index: IndexName,
    /// Whether other records may have the same value.
    pub holds: Holds,
    /// The value.
    pub value: IndexValue,
    /// The value as [encoded](IndexValue::encoded).
    pub bytes: Vec<u8>,
}

impl Index {
    /// Returns the distinct values of a record in this index.
    fn values(&self, record: &Value) -> Result<BTreeSet<IndexValue>, Invalid> {
        if let ([path], Some(Value::Array(items))) = (
            self.paths.as_slice(),
            self.paths.first().and_then(|path| record.pointer(path)),
        ) {
            return values_of_items(items).map_err(|invalid| invalid.within(path));
        }
        let mut parts = Vec::new();
        for path in &self.paths {
            let found = record.pointer(path).unwrap_or(&Value::Null);
            match Scalar::of(found).map_err(|invalid| invalid.within(path))? {
                Some(part) => parts.push(part),
                None => return Ok(BTreeSet::new()),
            }
        }
        Ok(BTreeSet::from([IndexValue(parts)]))
    }
}

/// Returns the distinct values of an array. Null items are not indexed.
fn values_of_items(items: &[Value]) -> Result<BTreeSet<IndexValue>, Invalid> {
    let scalars: Result<Vec<_>, _> = items.iter().map(Scalar::of).collect();
    let values: BTreeSet<_> = scalars?
        .into_iter()
        .flatten()
        .map(IndexValue::from)
        .collect();
    if values.len() > MAX_ENTRIES {
        return Err(Invalid::new(format!(
            "the indexed array has {} distinct values, more than {MAX_ENTRIES}",
            values.len()
        )));
    }
    Ok(values)
}

/// Builds a [`Schema`]. [`build`](Self::build) reports errors.
///
/// ```
/// use fleetwright_store::Schema;
///
/// let schema = Schema::builder()
///     .kind("server")
///     .unique("owner", ["/owner"]) // of the kind before it
///     .kind("network")
///     .build()?;
/// assert_eq!(schema.kinds().count(), 2);
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    schema: Schema,
    current: Option<Kind>,
    invalid: Option<Invalid>,
}

impl SchemaBuilder {
    /// Adds a kind. The following indexes belong to it.
    #[must_use]
    pub fn kind(mut self, name: &str) -> Self {
        match Kind::new(name) {
            Ok(kind) => {
                if self
                    .schema
                    .kinds
                    .insert(kind.clone(), BTreeMap::new())
                    .is_some()
                {
                    self.record_error(Invalid::new(format!("kind {kind} is declared twice")));
                }
                self.current = Some(kind);
            }
            Err(invalid) => self.record_error(invalid),
        }
        self
    }

    /// Adds a unique index: no two records have the same value.
    #[must_use]
    pub fn unique<const N: usize>(self, name: &str, paths: [&str; N]) -> Self {
        self.add(name, Holds::One, &paths)
    }

    /// Adds an index in which any number of records may have the same value.
    ///
    /// A record is found by the scalars at all paths. If one of them is missing or null, the record
    /// is not in the index. If there is one path and its value is an array, the record is found by
    /// each item.
    #[must_use]
    pub fn index<const N: usize>(self, name: &str, paths: [&str; N]) -> Self {
        self.add(name, Holds::Many, &paths)
    }

    /// Returns the schema.
    ///
    /// # Errors
    ///
    /// The first mistake: an invalid or repeated name, an index before a kind, an invalid path.
    pub fn build(self) -> Result<Schema, Invalid> {
        match self.invalid {
            Some(invalid) => Err(invalid),
            None => Ok(self.schema),
        }
    }

    fn add(mut self, name: &str, holds: Holds, paths: &[&str]) -> Self {
        if let Err(invalid) = self.try_add(name, holds, paths) {
            self.record_error(invalid);
        }
        self
    }

    fn try_add(&mut self, name: &str, holds: Holds, paths: &[&str]) -> Result<(), Invalid> {
        let name = IndexName::new(name)?;
        let declared = self
            .current
            .as_ref()
            .and_then(|kind| self.schema.kinds.get_mut(kind));
        let indexes = declared.ok_or_else(|| {
            Invalid::new(format!("index {name} is declared before the first kind"))
        })?;
        check_paths(paths).map_err(|invalid| invalid.within(format_args!("index {name}")))?;
        let paths = paths.iter().map(ToString::to_string).collect();
        if indexes
            .insert(name.clone(), Index { holds, paths })
            .is_some()
        {
            return Err(Invalid::new(format!("index {name} is declared twice")));
        }
        Ok(())
    }

    /// Keeps the first error for [`build`](Self::build).
    fn record_error(&mut self, invalid: Invalid) {
        self.invalid.get_or_insert(invalid);
    }
}

/// Checks that there is a path and that each is a JSON pointer.
fn check_paths(paths: &[&str]) -> Result<(), Invalid> {
    if !(1..=MAX_OPERATIONS).contains(&paths.len()) {
        return Err(Invalid::new(format!(
            "an index needs 1 to {MAX_OPERATIONS} paths"
        )));
    }
    match paths.iter().find(|path| !path.starts_with('/')) {
        Some(path) => Err(Invalid::new(format!(
            "{path:?} is not a JSON pointer, which starts with '/'"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let builder = Schema::builder().kind("thing").unique("name", ["/name"]);
        builder
            .index("place", ["/org", "/project"])
            .index("tag", ["/tags"])
            .build()
            .unwrap()
    }

    fn values(value: &Value) -> Vec<String> {
        let entries = schema()
            .entries(&Kind::new("thing").unwrap(), value)
            .unwrap();
        entries
            .iter()
            .map(|entry| format!("{}{}", entry.index, entry.value))
            .collect()
    }

    #[test]
    fn record_with_a_missing_part_is_not_indexed() {
        assert_eq!(
            values(&json!({"org": "a", "project": 7})),
            ["place(\"a\", 7)"]
        );
        assert_eq!(values(&json!({"org": "a"})), [""; 0]);
        assert_eq!(values(&json!({"org": "a", "project": null})), [""; 0]);
    }

    #[test]
    fn array_has_one_entry_per_distinct_item() {
        assert_eq!(
            values(&json!({"tags": ["x", "y", "x", null]})),
            ["tag(\"x\")", "tag(\"y\")"]
        );
        assert_eq!(values(&json!({"tags": []})), [""; 0]);
    }

    #[test]
    fn unindexable_value_is_named() {
        let kind = Kind::new("thing").unwrap();
        let invalid = schema().entries(&kind, &json!({"name": {}})).unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "index name of thing: /name: expected text, a whole number or a boolean, found an object"
        );
        let many: Vec<_> = (0..=MAX_ENTRIES).collect();
        assert!(schema().entries(&kind, &json!({"tags": many})).is_err());
        assert!(
            schema()
                .entries(&kind, &json!({"name": "x".repeat(2000)}))
                .is_err()
        );
    }

    #[test]
    fn invalid_schema_is_refused_with_a_reason() {
        let builder = Schema::builder;
        let invalid = [
            (builder().kind("Bad"), "Kind"),
            (builder().index("early", ["/a"]), "before the first kind"),
            (builder().kind("a").kind("a"), "declared twice"),
            (
                builder().kind("a").index("i", ["/a"]).unique("i", ["/b"]),
                "declared twice",
            ),
            (builder().kind("a").index("i", ["a"]), "not a JSON pointer"),
            (builder().kind("a").index("i", []), "needs 1 to 128 paths"),
        ];
        for (builder, reason) in invalid {
            let message = builder.build().unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
