//! A store in which somebody else is always a little faster.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, Transaction, Watch,
};

/// Commits what it was told to before each commit that it is asked for.
#[derive(Debug)]
pub(crate) struct Meddler {
    inner: Arc<dyn Store>,
    first: Mutex<VecDeque<Transaction>>,
}

impl Meddler {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            first: Mutex::default(),
        }
    }

    /// One transaction for each commit to come, in the order in which they are given.
    pub(crate) fn before_next_commit(&self, transaction: Transaction) {
        self.first.lock().unwrap().push_back(transaction);
    }
}

#[async_trait]
impl Store for Meddler {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.inner.get(id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        self.inner.list(query).await
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
