//! Queries, pages and cursors.
//!
//! A cursor is a position in an order. It is neither an offset nor a snapshot, so it stays valid
//! through writes, on every handle, and after a restart.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{
    Damaged, IndexName, IndexValue, Invalid, Key, Kind, Record, RecordId, Revision, Schema,
    limits::MAX_PAGE,
};

/// A query: which records to list, and how many per page.
///
/// ```
/// use fleetwright_store::{IndexName, Kind, MemoryStore, Query, Schema, Store as _};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let schema = Schema::builder().kind("server").index("place", ["/organization", "/project"]).build()?;
/// # let store = MemoryStore::new(schema);
/// let (server, place) = (Kind::new("server")?, IndexName::new("place")?);
/// let of_project = Query::by(server.clone(), place.clone(), ["acme", "web"]);
/// let of_organization = Query::by(server, place, "acme").limit(100);
///
/// let mut page = store.list(&of_organization).await?;
/// while let Some(cursor) = page.next.take() {
///     page = store.list(&of_organization.clone().after(cursor)).await?;
/// }
/// # let _ = of_project;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a query does nothing until a store lists it"]
pub struct Query {
    /// The kind.
    pub kind: Kind,
    /// The selection.
    pub select: Select,
    /// The page size, 1 to [`MAX_PAGE`]. Larger numbers mean [`MAX_PAGE`].
    pub limit: u32,
    /// Where to continue: [`Page::next`] of the previous page of the same query.
    pub after: Option<Cursor>,
}

/// A selection of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All records, in the order of their keys.
    All,
    /// The records whose index value is this one or starts with these parts, in the order of index
    /// value and key.
    Index(IndexName, IndexValue),
}

impl Query {
    /// Selects all records of a kind.
    pub fn all(kind: Kind) -> Self {
        Self {
            kind,
            select: Select::All,
            limit: MAX_PAGE,
            after: None,
        }
    }

    /// Selects records by an index value or its first parts.
    pub fn by(kind: Kind, index: IndexName, value: impl Into<IndexValue>) -> Self {
        Self {
            select: Select::Index(index, value.into()),
            ..Self::all(kind)
        }
    }

    /// Sets the page size.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after a page.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Resolves the query with a schema, for authors of stores.
    ///
    /// # Errors
    ///
    /// The kind or index does not exist, or the cursor belongs to another query.
    pub fn plan(&self, schema: &Schema) -> Result<Plan, Invalid> {
        if self.limit == 0 {
            return Err(Invalid::new("the page size is 0; it must be at least 1"));
        }
        schema.indexes(&self.kind)?;
        let range = match &self.select {
            Select::All => Range::Keys { after: None },
            Select::Index(index, value) => Range::Entries {
                index: index.clone(),
                prefix: schema.prefix(&self.kind, index, value)?,
                after: None,
            },
        };
        let range = match &self.after {
            Some(cursor) => cursor.decode()?.resume(&self.kind, range)?,
            None => range,
        };
        Ok(Plan {
            kind: self.kind.clone(),
            range,
            limit: self.limit.min(MAX_PAGE) as usize,
        })
    }
}

/// A resolved query, as a store executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The kind.
    pub kind: Kind,
    /// The range.
    pub range: Range,
    /// The largest number of records.
    pub limit: usize,
}

/// A range of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// The keys after a position.
    Keys {
        /// The last key of the previous page.
        after: Option<Key>,
    },
    /// The index entries with a prefix, after a position.
    Entries {
        /// The index.
        index: IndexName,
        /// The prefix of the entries.
        prefix: Vec<u8>,
        /// The last entry of the previous page, and the key of its record.
        after: Option<(Vec<u8>, Key)>,
    },
}

impl Plan {
    /// Returns the id of the record with this key.
    pub fn id(&self, key: &Key) -> RecordId {
        RecordId {
            kind: self.kind.clone(),
            key: key.clone(),
        }
    }

    /// Returns the cursor after a record. `entry` is its index entry if the range is one of an
    /// index.
    pub fn cursor_after(&self, key: Key, entry: Option<Vec<u8>>) -> Cursor {
        let index = match &self.range {
            Range::Keys { .. } => None,
            Range::Entries { index, .. } => Some(index.clone()),
        };
        Cursor::encode(&CursorContent {
            kind: self.kind.clone(),
            index,
            entry: entry.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)),
            key,
        })
    }
}

/// The end of a page. Opaque: stores create it, and callers pass it back. Its text fits into a URL.
///
/// ```
/// use fleetwright_store::{Cursor, Kind, MemoryStore, Query, RecordId, Schema, Store as _, Transaction};
/// # use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = MemoryStore::new(Schema::builder().kind("server").build()?);
/// # for key in ["s-1", "s-2", "s-3"] {
/// #     store.commit(&Transaction::new().put(RecordId::new("server", key)?, json!({}))).await?;
/// # }
/// let query = Query::all(Kind::new("server")?).limit(2);
/// let first = store.list(&query).await?;
/// let text = first.next.expect("there is a second page").as_str().to_owned(); // for a URL
///
/// let second = store.list(&query.after(Cursor::from_text(text))).await?;
/// assert_eq!(second.records.len(), 1);
/// assert!(second.next.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// Wraps the text of a cursor. An invalid one is refused by the list.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text: letters, digits, `-` and `_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn encode(content: &CursorContent) -> Self {
        // Serializing a struct of strings cannot fail; an empty cursor would be refused by the next
        // list.
        let json = serde_json::to_vec(content).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(json))
    }

    fn decode(&self) -> Result<CursorContent, Invalid> {
        let json = URL_SAFE_NO_PAD.decode(&self.0).ok();
        let content = json.and_then(|json| serde_json::from_slice(&json).ok());
        content.ok_or_else(|| Invalid::new("the text is not a cursor that a store has created"))
    }
}

/// The content of a cursor.
#[derive(Serialize, Deserialize)]
struct CursorContent {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<IndexName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    key: Key,
}

impl CursorContent {
    /// Returns the rest of the range, or an error if the cursor is not in it.
    fn resume(self, wanted: &Kind, range: Range) -> Result<Range, Invalid> {
        let other = || Invalid::new("the cursor belongs to another query");
        if self.kind != *wanted {
            return Err(other());
        }
        match (range, self.index, self.entry) {
            (Range::Keys { .. }, None, None) => Ok(Range::Keys {
                after: Some(self.key),
            }),
            (Range::Entries { index, prefix, .. }, Some(name), Some(entry)) if name == index => {
                let entry = URL_SAFE_NO_PAD.decode(entry).map_err(|_| other())?;
                if !entry.starts_with(&prefix) {
                    return Err(other());
                }
                let after = Some((entry, self.key));
                Ok(Range::Entries {
                    index,
                    prefix,
                    after,
                })
            }
            (Range::Keys { .. } | Range::Entries { .. }, _, _) => Err(other()),
        }
    }
}

/// A page of a query, from one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The records, in the order of the query.
    pub records: Vec<Record>,
    /// Records of this page that cannot be read. They do not affect the others.
    pub damaged: Vec<Damaged>,
    /// Where to continue, or `None` on the last page.
    pub next: Option<Cursor>,
    /// The moment of the page. A watch from here returns every later change.
    pub revision: Revision,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Schema {
        let builder = Schema::builder()
            .kind("a")
            .index("i", ["/i", "/j"])
            .index("k", ["/k"]);
        builder.kind("b").build().unwrap()
    }

    fn kind(name: &str) -> Kind {
        Kind::new(name).unwrap()
    }

    fn index(name: &str) -> IndexName {
        IndexName::new(name).unwrap()
    }

    #[test]
    fn cursor_works_only_in_its_own_query() {
        let key = Key::new("ä \u{1f980}").unwrap();
        let by = |name: &str, value: &str| Query::by(kind("a"), index(name), value);
        let query = by("i", "x");
        let entry = IndexValue::from(["x", "y"]).encoded().unwrap();
        let plan = query.plan(&schema()).unwrap();
        let cursor = plan.cursor_after(key.clone(), Some(entry.clone()));
        let resumed = query.clone().after(cursor.clone()).plan(&schema()).unwrap();
        let Range::Entries { after, .. } = resumed.range else {
            panic!("{resumed:?}");
        };
        assert_eq!(after, Some((entry, key)));
        for other in [
            by("i", "z"),
            by("k", "x"),
            Query::all(kind("a")),
            Query::all(kind("b")),
        ] {
            assert!(other.after(cursor.clone()).plan(&schema()).is_err());
        }
    }

    #[test]
    fn unknown_kinds_and_indexes_are_refused() {
        assert!(Query::all(kind("c")).plan(&schema()).is_err());
        assert!(
            Query::by(kind("b"), index("i"), "x")
                .plan(&schema())
                .is_err()
        );
        assert!(
            Query::by(kind("a"), index("k"), ["x", "y"])
                .plan(&schema())
                .is_err()
        );
        assert!(
            Query::by(kind("a"), index("k"), Vec::new())
                .plan(&schema())
                .is_err()
        );
        assert!(Query::all(kind("a")).limit(0).plan(&schema()).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_not_a_cursor(text in "\\PC{0,40}") {
            let query = Query::all(kind("a")).after(Cursor::from_text(text));
            prop_assert!(query.plan(&schema()).is_err());
        }
    }
}
