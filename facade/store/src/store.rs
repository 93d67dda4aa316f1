//! The trait, with its promises, and conveniences for every store.

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
/// `docs/store-contract.md` has every promise with its reason and the clause that tests it; in short:
///
/// - **Linearizable.** A call sees all that was acknowledged before it began, through whatever handle
///   (RACE-01 to RACE-03).
/// - **All or nothing.** A transaction is committed as a whole, also when its future is dropped or its process dies
///   (TXN-05, DROP-01, CRASH-01).
/// - **Durable as declared.** What a durable store has acknowledged is there after a kill (CRASH-01, CRASH-02), and a
///   full one loses nothing of it (FULL-01).
/// - **Indexes are part of the record.** They never lag, and unique ones never hold two (UNIQUE-01 to
///   UNIQUE-05, INDEX-01 to INDEX-05).
/// - **Pages are stable.** What is there throughout a list is seen exactly once (PAGE-01 to PAGE-06).
/// - **Watches are complete.** Every commit once, in order, or an error (WATCH-01 to WATCH-10).
/// - **Records are kept exactly** (RECORD-01 to RECORD-06), and all of it holds in any order of calls (MODEL-01).
///
/// # Caveats
///
/// Pages of one list are of different moments, each named in its page. What a transaction reads beforehand
/// can change until it is committed: that is what checks are for.
#[async_trait]
pub trait Store: Send + Sync + Debug {
    /// The kinds and indexes that the store was opened with.
    fn schema(&self) -> &Schema;

    /// A record as it is now, if it is there.
    async fn get(&self, id: &RecordId) -> Result<Option<Record>>;

    /// A page of records.
    async fn list(&self, query: &Query) -> Result<Page>;

    /// Commits a transaction, and answers its revision once that is as durable as the store makes it. A
    /// transaction without effect answers the revision of the store and does not raise it.
    ///
    /// Dropping the call leaves all of the transaction or nothing.
    async fn commit(&self, transaction: &Transaction) -> Result<Revision>;

    /// Where the store is.
    async fn head(&self) -> Result<Revision>;

    /// Shows every commit after a revision. [`Revision::ZERO`] is before the first. Kinds that are not in the
    /// schema are refused.
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch>;

    /// Forgets the changes up to a revision, which is moved to the store's head if it is beyond that. Records
    /// are not touched; watches from before are told.
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

/// Conveniences in terms of the trait.
#[async_trait]
pub trait StoreExt: Store {
    /// The one record that has a value under an index, if there is one. With two it is the first by key.
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

    /// All pages of a query as one. Its revision is the first page's: a watch from there misses nothing.
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

    /// Reads a record, lets `change` make its next value, and commits that if nobody was faster; if somebody
    /// was, begins again. Answers the revision, or nothing if `change` wants nothing changed.
    ///
    /// `change` gets null for a record that is not there. An unknown outcome is not repeated.
    async fn update<F>(&self, id: &RecordId, mut change: F) -> Result<Option<Revision>>
    where
        F: FnMut(Value) -> Option<Value> + Send,
    {
        loop {
            let before = self.get(id).await?;
            let revision = before.as_ref().map(|record| record.revision);
            let value = before.map_or(Value::Null, |record| record.value);
            let Some(after) = change(value) else {
                return Ok(None);
            };
            let transaction = match revision {
                Some(read_at) => Transaction::new().replace(id.clone(), read_at, after),
                None => Transaction::new().create(id.clone(), after),
            };
            match self.commit(&transaction).await {
                Err(error) if is_a_race(&error) => {}
                answer => return answer.map(Some),
            }
        }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Somebody was faster with the record itself. A unique value that is taken stays taken.
fn is_a_race(error: &StoreError) -> bool {
    let by_check = error
        .conflict()
        .is_some_and(|conflict| matches!(conflict.part, crate::Part::Check(_)));
    by_check && error.advice() == Advice::ReadAgain
}
