//! Lists in pages: what is asked for, where a page ends, and how the next one goes on.
//!
//! A cursor is a place in an order, not a number of records to skip and not a snapshot: it holds through
//! any writes, on every handle, and after a restart.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{
    Damaged, IndexName, IndexValue, Invalid, Key, Kind, Record, RecordId, Revision, Schema,
    limits::MAX_PAGE,
};

/// Which records are listed, and how many at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a query does nothing until a store lists it"]
pub struct Query {
    /// Of which kind.
    pub kind: Kind,
    /// Which of them.
    pub select: Select,
    /// How many at the most: 1 to [`MAX_PAGE`], which is what a larger number means too.
    pub limit: u32,
    /// Where to go on.
    pub after: Option<Cursor>,
}

/// Which records of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All, in the order of their keys.
    All,
    /// Those that have this under an index, or something that begins with these parts: in the order of what
    /// they have there, then of their keys.
    Index(IndexName, IndexValue),
}

impl Query {
    /// All records of a kind.
    pub fn all(kind: Kind) -> Self {
        Self {
            kind,
            select: Select::All,
            limit: MAX_PAGE,
            after: None,
        }
    }

    /// The records that have something under an index.
    pub fn by(kind: Kind, index: IndexName, value: impl Into<IndexValue>) -> Self {
        Self {
            select: Select::Index(index, value.into()),
            ..Self::all(kind)
        }
    }

    /// At most so many at once.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Goes on where a page ended.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// What the query comes to under a schema; an error if it or its cursor does not fit.
    pub fn plan(&self, schema: &Schema) -> Result<Plan, Invalid> {
        if self.limit == 0 {
            return Err(Invalid::new("a page of no records is asked for"));
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
            Some(cursor) => cursor.place()?.resume(&self.kind, range)?,
            None => range,
        };
        Ok(Plan {
            kind: self.kind.clone(),
            range,
            limit: self.limit.min(MAX_PAGE) as usize,
        })
    }
}

/// A query as a store carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Of which kind.
    pub kind: Kind,
    /// Between which places.
    pub range: Range,
    /// How many at the most.
    pub limit: usize,
}

/// A part of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// All keys after one.
    Keys {
        /// Where the last page ended.
        after: Option<Key>,
    },
    /// All entries of an index that begin with a prefix and come after a place.
    Entries {
        /// Which index.
        index: IndexName,
        /// What the entries begin with.
        prefix: Vec<u8>,
        /// Where the last page ended: the entry, and the key of its record.
        after: Option<(Vec<u8>, Key)>,
    },
}

impl Plan {
    /// What the record with this key is found by.
    pub fn id(&self, key: &Key) -> RecordId {
        RecordId {
            kind: self.kind.clone(),
            key: key.clone(),
        }
    }

    /// The cursor behind the record with this key, which is in the index under `entry`, if the order is one
    /// of an index.
    pub fn cursor_behind(&self, key: Key, entry: Option<Vec<u8>>) -> Cursor {
        let index = match &self.range {
            Range::Keys { .. } => None,
            Range::Entries { index, .. } => Some(index.clone()),
        };
        Cursor::of(&Place {
            kind: self.kind.clone(),
            index,
            entry: entry.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)),
            key,
        })
    }
}

/// Where a page ended. Opaque: made by stores, and handed back as it is. As text it fits into a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// From the text of another cursor. What is no cursor is refused by the list.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As text of letters, digits, `-` and `_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(place: &Place) -> Self {
        // A struct of strings can always be written; an empty cursor would be refused by the next list.
        let json = serde_json::to_vec(place).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(json))
    }

    fn place(&self) -> Result<Place, Invalid> {
        let json = URL_SAFE_NO_PAD.decode(&self.0).ok();
        let place = json.and_then(|json| serde_json::from_slice(&json).ok());
        place.ok_or_else(|| Invalid::new("the cursor is not one that a store has made"))
    }
}

/// What is in a cursor.
#[derive(Serialize, Deserialize)]
struct Place {
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<IndexName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    key: Key,
}

impl Place {
    /// The range from here on, if this is a place in it.
    fn resume(self, wanted: &Kind, range: Range) -> Result<Range, Invalid> {
        let other = || Invalid::new("the cursor is of another query");
        if self.kind != *wanted {
            return Err(other());
        }
        match (range, self.index, self.entry) {
            (Range::Keys { .. }, None, None) => Ok(Range::Keys {
                after: Some(self.key),
            }),
            (Range::Entries { index, prefix, .. }, Some(of), Some(entry)) if of == index => {
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

/// Some of the records of a query, all as they were at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The records, in the order of the query.
    pub records: Vec<Record>,
    /// Records in this part of the order that cannot be read. The others are not held up by them.
    pub damaged: Vec<Damaged>,
    /// Where to go on; nothing if this page is the last.
    pub next: Option<Cursor>,
    /// The moment: a watch from here shows everything that the page does not.
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
    fn a_cursor_goes_on_in_its_own_query_only() {
        let key = Key::new("ä \u{1f980}").unwrap();
        let by = |name: &str, value: &str| Query::by(kind("a"), index(name), value);
        let query = by("i", "x");
        let entry = IndexValue::from(["x", "y"]).encoded().unwrap();
        let plan = query.plan(&schema()).unwrap();
        let cursor = plan.cursor_behind(key.clone(), Some(entry.clone()));
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
    fn what_a_schema_does_not_have_is_refused() {
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
        fn no_text_is_taken_for_a_cursor(text in "\\PC{0,40}") {
            let query = Query::all(kind("a")).after(Cursor::from_text(text));
            prop_assert!(query.plan(&schema()).is_err());
        }
    }
}
