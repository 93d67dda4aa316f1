//! A store that fails at one commit.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, StoreError,
    Transaction, Watch,
};

/// The outcome of the failing commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitFault {
    /// Not committed, and reported so.
    Unavailable,
    /// Committed, with an unknown outcome for the caller.
    UnknownAndDone,
    /// Not committed, with an unknown outcome for the caller.
    UnknownAndNot,
}

impl CommitFault {
    pub(crate) const ALL: [Self; 3] =
        [Self::Unavailable, Self::UnknownAndDone, Self::UnknownAndNot];
}

#[derive(Debug)]
pub(crate) struct Flaky {
    store: Arc<dyn Store>,
    at: usize,
    fault: CommitFault,
    commits: AtomicUsize,
}

impl Flaky {
    /// Fails at the commit with this number, from 0.
    pub(crate) fn over(store: &Arc<dyn Store>, at: usize, fault: CommitFault) -> Arc<dyn Store> {
        Self::watched(store, at, fault)
    }

    /// Like [`over`](Self::over), as a type that reports whether the fault happened.
    pub(crate) fn watched(store: &Arc<dyn Store>, at: usize, fault: CommitFault) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            at,
            fault,
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
        let (reason, source) = ("the disk cannot be read".to_owned(), None);
        if self.commits.fetch_add(1, Ordering::Relaxed) != self.at {
            return self.store.commit(transaction).await;
        }
        match self.fault {
            CommitFault::Unavailable => Err(StoreError::Unavailable { reason, source }),
            CommitFault::UnknownAndDone => {
                self.store.commit(transaction).await?;
                Err(StoreError::UnknownOutcome { reason, source })
            }
            CommitFault::UnknownAndNot => Err(StoreError::UnknownOutcome { reason, source }),
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
