//! A store that does not go along at one commit.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, StoreError,
    Transaction, Watch,
};

/// What happens to the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// It is not committed, and the caller is told so.
    Unavailable,
    /// It is committed, and nobody knows.
    UnknownAndDone,
    /// It is not committed, and nobody knows.
    UnknownAndNot,
}

impl Mishap {
    pub(crate) const ALL: [Self; 3] =
        [Self::Unavailable, Self::UnknownAndDone, Self::UnknownAndNot];
}

#[derive(Debug)]
pub(crate) struct Flaky {
    store: Arc<dyn Store>,
    at: usize,
    mishap: Mishap,
    commits: AtomicUsize,
}

impl Flaky {
    /// At the commit of this number, from 0.
    pub(crate) fn over(store: &Arc<dyn Store>, at: usize, mishap: Mishap) -> Arc<dyn Store> {
        Self::watched(store, at, mishap)
    }

    /// The same, to be asked whether it came to that.
    pub(crate) fn watched(store: &Arc<dyn Store>, at: usize, mishap: Mishap) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            at,
            mishap,
            commits: AtomicUsize::new(0),
        })
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.commits.load(Ordering::Relaxed) > self.at
    }
}

#[async_trait]
impl Store for Flaky {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.store.get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        self.store.list(query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        let (reason, source) = ("the disk is away".to_owned(), None);
        if self.commits.fetch_add(1, Ordering::Relaxed) != self.at {
            return self.store.commit(transaction).await;
        }
        match self.mishap {
            Mishap::Unavailable => Err(StoreError::Unavailable { reason, source }),
            Mishap::UnknownAndDone => {
                self.store.commit(transaction).await?;
                Err(StoreError::UnknownOutcome { reason, source })
            }
            Mishap::UnknownAndNot => Err(StoreError::UnknownOutcome { reason, source }),
        }
    }
    async fn head(&self) -> Result<Revision> {
        self.store.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.store.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.store.compact(through).await
    }
}
