//! Pages of records in the order of their keys, continued after a key instead of an offset.

use fleetwright_store::{
    Damaged, Document, Invalid, Key, Partial, Query, Schema, Select, StoreError, Table,
};

/// The largest page.
pub const MAX_LIST_PAGE: u32 = 500;

/// Which page of a list to return.
///
/// ```
/// use fleetwright_identity::PageRequest;
///
/// let first = PageRequest::default().limit(50);
/// assert_eq!((first.limit, first.after), (50, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// The largest number of records, 1 to [`MAX_LIST_PAGE`]. Larger numbers mean [`MAX_LIST_PAGE`], and 0 means 1.
    pub limit: u32,
    /// Where to continue: [`ListPage::next`] of the page before. Any other text is a position too, and shows nothing that the caller may
    /// not see.
    pub after: Option<String>,
}

impl Default for PageRequest {
    /// The first page of 100 records.
    fn default() -> Self {
        Self {
            limit: 100,
            after: None,
        }
    }
}

impl PageRequest {
    /// Sets the largest number of records.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after a page.
    #[must_use]
    pub fn after(mut self, position: impl Into<String>) -> Self {
        self.after = Some(position.into());
        self
    }

    /// The page size within its bounds.
    pub(crate) fn size(&self) -> u32 {
        self.limit.clamp(1, MAX_LIST_PAGE)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListPage<T> {
    /// The records.
    pub items: Vec<T>,
    /// What can be shown of the records that a newer version of this program wrote, and the places that cannot.
    pub newer: Vec<Partial<T>>,
    /// Records of this page that cannot be read. They do not affect the others.
    pub damaged: Vec<Damaged>,
    /// Where to continue, or `None` on the last page.
    pub next: Option<String>,
}

/// What a list reads: a range of the store, or single records.
pub(crate) enum Source {
    /// All records of a query. If it is one by an index, its value is complete, so that the records are in the order of their keys.
    Range(Query),
    /// The records with these keys, as far as they exist.
    Keys(Vec<Key>),
}

/// Returns a page of a source. Its cost depends on the page alone, and on the number of single records.
pub(crate) async fn page<T: Document>(
    table: &Table<T>,
    schema: &Schema,
    source: Source,
    request: &PageRequest,
) -> Result<ListPage<T>, StoreError> {
    match source {
        Source::Range(query) => {
            let query = match &request.after {
                Some(after) => continue_after(query, schema, after)?,
                None => query,
            };
            let mut page = table.list(&query.limit(request.size())).await?;
            let readable = page.items.iter().map(|found| &found.key);
            let damaged = page.damaged.iter().map(|damaged| &damaged.id.key);
            let last = readable.chain(damaged).max().map(ToString::to_string);
            Ok(ListPage {
                next: page.next.take().and(last),
                newer: page.take_newer(),
                items: page.items.into_iter().map(|found| found.value).collect(),
                damaged: page.damaged,
            })
        }
        Source::Keys(mut keys) => {
            keys.sort();
            keys.dedup();
            let mut page = ListPage {
                items: Vec::new(),
                newer: Vec::new(),
                damaged: Vec::new(),
                next: None,
            };
            let after = request.after.as_deref();
            let mut last = None;
            for key in keys
                .iter()
                .filter(|key| after.is_none_or(|after| key.as_str() > after))
            {
                if page.items.len() + page.newer.len() == request.size() as usize {
                    page.next = last;
                    break;
                }
                match table.get(key).await {
                    Ok(found) => page.items.extend(found.map(|found| found.value)),
                    Err(StoreError::Incompatible { .. }) => {
                        page.newer.extend(table.show(key).await?);
                    }
                    Err(error) => return Err(error),
                }
                last = Some(key.to_string());
            }
            Ok(page)
        }
    }
}

/// Continues a query after the record with this key, whether it exists or not.
pub(crate) fn continue_after(query: Query, schema: &Schema, key: &str) -> Result<Query, Invalid> {
    let entry = match &query.select {
        Select::All => None,
        Select::Index(_, value) => Some(value.encoded()?),
    };
    let cursor = query.plan(schema)?.cursor_after(Key::new(key)?, entry);
    Ok(query.after(cursor))
}
