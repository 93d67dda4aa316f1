//! A store in which other writers commit first, and lists can be delayed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, Transaction, Watch,
};
use tokio::sync::oneshot;

/// Commits a prepared transaction before each commit of the code under test.
#[derive(Debug)]
pub(crate) struct ContendedStore {
    inner: Arc<dyn Store>,
    first: Mutex<VecDeque<Transaction>>,
    held: Mutex<Option<oneshot::Receiver<()>>>,
}

impl ContendedStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            first: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Makes the next list read at once and return only when the sender fires.
    pub(crate) fn hold_next_list(&self) -> oneshot::Sender<()> {
        let (release, held) = oneshot::channel();
        *self.held.lock().unwrap() = Some(held);
        release
    }

    /// Queues a transaction: each one is committed before one later commit, in this order.
    pub(crate) fn before_next_commit(&self, transaction: Transaction) {
        self.first.lock().unwrap().push_back(transaction);
    }
}

#[async_trait]
impl Store for ContendedStore {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.inner.get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        let page = self.inner.list(query).await;
        let held = self.held.lock().unwrap().take();
        if let Some(held) = held {
            held.await.unwrap();
        }
        page
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        let first = self.first.lock().unwrap().pop_front();
        if let Some(first) = first {
            self.inner.commit(&first).await?;
        }
        self.inner.commit(transaction).await
    }
    async fn head(&self) -> Result<Revision> {
        self.inner.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.inner.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
