//! Which kinds there are, and by what their records are found: data, so that every store reads the same.

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

/// By what records of a kind are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Whether two records may have the same value under it.
    pub holds: Holds,
    /// Where the parts of the value are, as JSON pointers (RFC 6901).
    pub paths: Vec<String>,
}

/// How many records may have one value under an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// At most one.
    One,
    /// Any number.
    Many,
}

impl Schema {
    /// Begins a schema.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Every kind with its indexes.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &BTreeMap<IndexName, Index>)> {
        self.kinds.iter()
    }

    /// The indexes of a kind, or that there is no such kind.
    pub fn indexes(&self, kind: &Kind) -> Result<&BTreeMap<IndexName, Index>, Invalid> {
        self.kinds
            .get(kind)
            .ok_or_else(|| Invalid::new(format!("kind {kind} is not in the schema")))
    }

    /// An index of a kind, or that there is none.
    pub fn index(&self, kind: &Kind, name: &IndexName) -> Result<&Index, Invalid> {
        self.indexes(kind)?
            .get(name)
            .ok_or_else(|| Invalid::new(format!("kind {kind} has no index {name}")))
    }

    /// The bytes that everything with `value` under the index begins with; an error if the index is not
    /// there or has fewer parts than `value`, or if `value` has none.
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
                "index {name} of {kind} is over {parts} parts, and {given} are given"
            )));
        }
        value.encoded()
    }

    /// What a record of `kind` with `value` has under the kind's indexes.
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

/// One value that a record has under one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which index.
    pub index: IndexName,
    /// Whether others may have the same.
    pub holds: Holds,
    /// The value.
    pub value: IndexValue,
    /// The same as [`IndexValue::encoded`] writes it.
    pub bytes: Vec<u8>,
}

impl Index {
    /// Every value that a record has under this index, each once.
    fn values(&self, record: &Value) -> Result<BTreeSet<IndexValue>, Invalid> {
        if let ([path], Some(Value::Array(items))) = (
            self.paths.as_slice(),
            self.paths.first().and_then(|path| record.pointer(path)),
        ) {
            return each_of(items).map_err(|invalid| invalid.within(path));
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

fn each_of(items: &[Value]) -> Result<BTreeSet<IndexValue>, Invalid> {
    let scalars: Result<Vec<_>, _> = items.iter().map(Scalar::of).collect();
    let values: BTreeSet<_> = scalars?
        .into_iter()
        .flatten()
        .map(IndexValue::from)
        .collect();
    if values.len() > MAX_ENTRIES {
        return Err(Invalid::new(format!(
            "{} values stand in an array that is indexed, more than {MAX_ENTRIES}",
            values.len()
        )));
    }
    Ok(values)
}

/// Collects a [`Schema`]; what is wrong is told by [`build`](Self::build).
#[derive(Clone, Debug, Default)]
pub struct SchemaBuilder {
    schema: Schema,
    current: Option<Kind>,
    wrong: Option<Invalid>,
}

impl SchemaBuilder {
    /// Adds a kind. The indexes that follow are its own.
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
                    self.complain(Invalid::new(format!("kind {kind} is declared twice")));
                }
                self.current = Some(kind);
            }
            Err(wrong) => self.complain(wrong),
        }
        self
    }

    /// Adds an index under which no two records have the same value.
    #[must_use]
    pub fn unique<const N: usize>(self, name: &str, paths: [&str; N]) -> Self {
        self.add(name, Holds::One, &paths)
    }

    /// Adds an index under which any number of records have the same value.
    ///
    /// A record is found by the scalars at all the paths. If one of them is missing or null it is not in the
    /// index. If there is one path and an array stands there, the record is found by each item.
    #[must_use]
    pub fn index<const N: usize>(self, name: &str, paths: [&str; N]) -> Self {
        self.add(name, Holds::Many, &paths)
    }

    /// The schema, or the first thing that is wrong with it.
    pub fn build(self) -> Result<Schema, Invalid> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.schema),
        }
    }

    fn add(mut self, name: &str, holds: Holds, paths: &[&str]) -> Self {
        if let Err(wrong) = self.try_add(name, holds, paths) {
            self.complain(wrong);
        }
        self
    }

    fn try_add(&mut self, name: &str, holds: Holds, paths: &[&str]) -> Result<(), Invalid> {
        let name = IndexName::new(name)?;
        let declared = self
            .current
            .as_ref()
            .and_then(|kind| self.schema.kinds.get_mut(kind));
        let indexes = declared
            .ok_or_else(|| Invalid::new(format!("index {name} stands before the first kind")))?;
        check_paths(paths).map_err(|wrong| wrong.within(format_args!("index {name}")))?;
        let paths = paths.iter().map(ToString::to_string).collect();
        if indexes
            .insert(name.clone(), Index { holds, paths })
            .is_some()
        {
            return Err(Invalid::new(format!("index {name} is declared twice")));
        }
        Ok(())
    }

    fn complain(&mut self, wrong: Invalid) {
        self.wrong.get_or_insert(wrong);
    }
}

fn check_paths(paths: &[&str]) -> Result<(), Invalid> {
    if !(1..=MAX_OPERATIONS).contains(&paths.len()) {
        return Err(Invalid::new("it is over no field"));
    }
    match paths.iter().find(|path| !path.starts_with('/')) {
        Some(path) => Err(Invalid::new(format!(
            "{path:?} is no JSON pointer: it begins with '/'"
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
    fn a_record_is_found_by_all_its_parts_or_not_at_all() {
        assert_eq!(
            values(&json!({"org": "a", "project": 7})),
            ["place(\"a\", 7)"]
        );
        assert_eq!(values(&json!({"org": "a"})), [""; 0]);
        assert_eq!(values(&json!({"org": "a", "project": null})), [""; 0]);
    }

    #[test]
    fn an_array_is_an_entry_for_each_item_once() {
        assert_eq!(
            values(&json!({"tags": ["x", "y", "x", null]})),
            ["tag(\"x\")", "tag(\"y\")"]
        );
        assert_eq!(values(&json!({"tags": []})), [""; 0]);
    }

    #[test]
    fn what_cannot_be_indexed_is_named() {
        let kind = Kind::new("thing").unwrap();
        let wrong = schema().entries(&kind, &json!({"name": {}})).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "index name of thing: /name: an object stands where one value belongs"
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
    fn a_wrong_schema_says_what_is_wrong() {
        let builder = Schema::builder;
        let wrong = [
            (builder().kind("Bad"), "Kind"),
            (builder().index("early", ["/a"]), "before the first kind"),
            (builder().kind("a").kind("a"), "declared twice"),
            (
                builder().kind("a").index("i", ["/a"]).unique("i", ["/b"]),
                "declared twice",
            ),
            (builder().kind("a").index("i", ["a"]), "no JSON pointer"),
            (builder().kind("a").index("i", []), "over no field"),
        ];
        for (builder, reason) in wrong {
            let told = builder.build().unwrap_err().to_string();
            assert!(told.contains(reason), "{told}");
        }
    }
}
