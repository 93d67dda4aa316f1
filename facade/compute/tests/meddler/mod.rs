//! A store in which others are faster, or in which a process dies.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Store, Transaction, Watch,
};

/// Commits what it was told to before each commit that it is asked for, counts what passes through it, and stops answering
/// at a call that it was told.
#[derive(Debug)]
pub(crate) struct Meddler {
    inner: Arc<dyn Store>,
    first: Mutex<VecDeque<Transaction>>,
    /// The call that is never answered; and whether what it asks for is done.
    dies_at: Option<(u64, Done)>,
    pub(crate) calls: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) lists: AtomicU64,
}

/// Whether a call that is never answered was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Yes,
    No,
}

impl Meddler {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            first: Mutex::default(),
            dies_at: None,
            calls: AtomicU64::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            lists: AtomicU64::new(0),
        }
    }

    pub(crate) fn dying_at(mut self, call: u64, done: Done) -> Self {
        self.dies_at = Some((call, done));
        self
    }

    pub(crate) fn before_next_commit(&self, transaction: Transaction) {
        self.first.lock().unwrap().push_back(transaction);
    }

    pub(crate) fn is_dead(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        self.dies_at.is_some_and(|(call, _)| calls >= call)
    }

    /// Counts a call; the one it dies at, and all after it, are never answered.
    async fn call<T>(&self, work: impl Future<Output = T>) -> T {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.dies_at {
            Some((at, done)) if call >= at => {
                if call == at && done == Done::Yes {
                    work.await;
                }
                std::future::pending().await
            }
            Some(_) | None => work.await,
        }
    }

    fn add(count: &AtomicU64, many: usize) {
        count.fetch_add(many as u64, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for Meddler {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        Self::add(&self.read, 1);
        self.call(self.inner.get(id)).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        let page = self.call(self.inner.list(query)).await?;
        Self::add(&self.read, page.records.len());
        Self::add(&self.lists, 1);
        Ok(page)
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        let first = self.first.lock().unwrap().pop_front();
        if let Some(first) = first {
            self.inner.commit(&first).await?;
        }
        Self::add(&self.written, transaction.writes.len());
        self.call(self.inner.commit(transaction)).await
    }
    async fn head(&self) -> Result<Revision> {
        self.call(self.inner.head()).await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.call(self.inner.watch(after, interest)).await
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.inner.compact(through).await
    }
}
