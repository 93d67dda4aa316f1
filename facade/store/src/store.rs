//! The trait `Store` with its promises, and conveniences for every store.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use serde_json::Value;

use crate::{
    Advice, IndexName, IndexValue, Interest, Kind, Page, Query, Record, RecordId, Result, Revision,
    Schema, StoreError, Transaction, Watch,
};

/// Versioned records with transactions, indexes, pages and watches.
///
/// # Contract
///
/// `docs/store-contract.md` has every promise with its reason and its clause. In short:
///
/// - **Linearizable.** A call sees everything that was acknowledged before it started, through any
///   handle (RACE-01 to RACE-03).
/// - **All or nothing.** A transaction is committed as a whole, also if its future is dropped or
///   its process dies (TXN-05, DROP-01, CRASH-01).
/// - **Durable as declared.** Acknowledged commits of a durable store survive a kill (CRASH-01,
///   CRASH-02) and a full disk (FULL-01).
/// - **Indexes are consistent.** They are updated with the record, and unique ones never contain
///   two records (UNIQUE-01 to UNIQUE-05, INDEX-01 to INDEX-05).
/// - **Pages are stable.** A record that exists during the whole list is returned exactly once
///   (PAGE-01 to PAGE-06).
/// - **Watches are complete.** They return every commit once and in order, or an error (WATCH-01 to
///   WATCH-10).
/// - **Values are stored exactly** (RECORD-01 to RECORD-06), and everything holds in any order of
///   calls (MODEL-01).
///
/// # Caveats
///
/// The pages of one list are from different moments; each page has its revision. Data that was read
/// before a transaction can change until the commit: add checks for it.
///
/// # Example
///
/// ```
/// use fleetwright_store::{MemoryStore, RecordId, Schema, Store as _, Transaction};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new(Schema::builder().kind("server").build()?);
/// let id = RecordId::new("server", "s-1")?;
/// store.commit(&Transaction::new().create(id.clone(), json!({ "power": "off" }))).await?;
///
/// // Read, decide, and write only if nobody else has written since.
/// let read = store.get(&id).await?.expect("it was created");
/// let update = Transaction::new().replace(id, read.revision, json!({ "power": "on" }));
/// store.commit(&update).await?;
/// assert!(store.commit(&update).await.unwrap_err().conflict().is_some());
/// # Ok(())
/// # }
/// ```
///
/// The crate's first page shows indexes, lists and watches too.
#[async_trait]
pub trait Store: Send + Sync + Debug {
    /// Returns the schema that the store was opened with.
    fn schema(&self) -> &Schema;

    /// Returns a record, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Invalid`](StoreError::Invalid) if the schema does not have the kind,
    /// [`Corrupt`](StoreError::Corrupt) if the record cannot be read.
    async fn get(&self, id: &RecordId) -> Result<Option<Record>>;

    /// Returns a page of records. Records that cannot be read are in [`Page::damaged`].
    ///
    /// # Errors
    ///
    /// [`Invalid`](StoreError::Invalid) for an unknown kind or index, a page size of 0, or a cursor
    /// of another query.
    async fn list(&self, query: &Query) -> Result<Page>;

    /// Commits a transaction and returns its revision, once it is as durable as the store promises.
    /// A transaction without effect returns the current revision and does not raise it.
    ///
    /// If the call is dropped, all of the transaction is committed, or nothing.
    ///
    /// # Errors
    ///
    /// [`Conflict`](StoreError::Conflict) if a check failed: read and decide again. After
    /// [`UnknownOutcome`](StoreError::UnknownOutcome), read to find out. For other errors see
    /// [`StoreError::advice`].
    async fn commit(&self, transaction: &Transaction) -> Result<Revision>;

    /// Returns the newest revision.
    async fn head(&self) -> Result<Revision>;

    /// Returns every commit after a revision. [`Revision::ZERO`] is before the first commit.
    ///
    /// # Errors
    ///
    /// A kind is not in the schema, or the changes after the revision were compacted.
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch>;

    /// Forgets the changes up to a revision, at most up to the newest one. Records are not
    /// affected. A watch from an earlier position gets [`Compacted`](StoreError::Compacted).
    async fn compact(&self, through: Revision) -> Result<()>;
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn schema(&self) -> &Schema {
        (**self).schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        (**self).get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        (**self).list(query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        (**self).commit(transaction).await
    }
    async fn head(&self) -> Result<Revision> {
        (**self).head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        (**self).watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        (**self).compact(through).await
    }
}

/// Conveniences for every store. They are provided methods over [`Store`], so no store implements
/// them.
///
/// ```
/// use fleetwright_store::{MemoryStore, RecordId, Schema, Store as _, StoreExt as _};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new(Schema::builder().kind("counter").build()?);
/// let id = RecordId::new("counter", "launches")?;
/// for _ in 0..3 {
///     store.update(&id, |value| Some(json!(value.as_u64().unwrap_or(0) + 1))).await?;
/// }
/// assert_eq!(store.get(&id).await?.map(|record| record.value), Some(json!(3).into()));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StoreExt: Store {
    /// Returns the record with an index value, or `None`. If several records have it, returns the
    /// first by key.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](StoreError::Corrupt) if the record cannot be read, or the errors of
    /// [`Store::list`].
    async fn find(
        &self,
        kind: &Kind,
        index: &IndexName,
        value: IndexValue,
    ) -> Result<Option<Record>> {
        let query = Query::by(kind.clone(), index.clone(), value.0).limit(1);
        let page = self.list(&query).await?;
        match page.damaged.into_iter().next() {
            Some(damaged) => Err(damaged.into()),
            None => Ok(page.records.into_iter().next()),
        }
    }

    /// Returns all pages of a query as one, with the revision of the first page, so that a watch
    /// from there misses nothing.
    async fn list_all(&self, query: &Query) -> Result<Page> {
        let mut all = self.list(query).await?;
        while let Some(cursor) = all.next.take() {
            let page = self.list(&query.clone().after(cursor)).await?;
            all.records.extend(page.records);
            all.damaged.extend(page.damaged);
            all.next = page.next;
        }
        Ok(all)
    }

    /// Reads a record, passes it to `change`, and commits the new value. Starts again if another
    /// commit changed the record meanwhile. Returns the revision, or `None` if `change` returns
    /// `None`.
    ///
    /// `change` gets null for a record that does not exist, and can be called several times. An
    /// unknown outcome is not retried.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::get`] and [`Store::commit`], except for a conflict with another write
    /// of the record.
    async fn update<F>(&self, id: &RecordId, mut change: F) -> Result<Option<Revision>>
    where
        F: FnMut(Value) -> Option<Value> + Send,
    {
        loop {
            let before = self.get(id).await?;
            let revision = before.as_ref().map(|record| record.revision);
            let value = before.map_or(Value::Null, |record| record.value.into_value());
            let Some(after) = change(value) else {
                return Ok(None);
            };
            let transaction = match revision {
                Some(read_at) => Transaction::new().replace(id.clone(), read_at, after),
                None => Transaction::new().create(id.clone(), after),
            };
            match self.commit(&transaction).await {
                Err(error) if is_race(&error) => {}
                result => return result.map(Some),
            }
        }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Returns whether another commit changed the record. A unique value that is taken is not a race.
fn is_race(error: &StoreError) -> bool {
    let by_check = error
        .conflict()
        .is_some_and(|conflict| matches!(conflict.part, crate::Part::Check(_)));
    by_check && error.advice() == Advice::ReadAgain
}
