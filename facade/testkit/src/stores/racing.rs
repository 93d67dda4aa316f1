//! A store in which others are faster, or whose process dies at one call.

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

use super::RandomDelays;

/// Commits given transactions before the commits of its caller, counts what passes through it, and stops responding at a given
/// call.
#[derive(Debug)]
pub struct RacingStore {
    inner: Arc<dyn Store>,
    first: Mutex<VecDeque<Transaction>>,
    /// The call that never returns, and whether it is carried out.
    dies_at: Option<(u64, Applied)>,
    /// Delays of every call.
    delays: Option<RandomDelays>,
    /// All calls.
    pub calls: AtomicU64,
    /// Records that were read.
    pub read: AtomicU64,
    /// Records that were written.
    pub written: AtomicU64,
    /// Lists.
    pub lists: AtomicU64,
}

/// Whether a call that never returns is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl RacingStore {
    /// Passes everything through.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            first: Mutex::default(),
            dies_at: None,
            delays: None,
            calls: AtomicU64::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            lists: AtomicU64::new(0),
        }
    }

    /// Stops responding at this call, counted from 1, and at all later ones.
    pub fn dying_at(mut self, call: u64, applied: Applied) -> Self {
        self.dies_at = Some((call, applied));
        self
    }

    /// Delays every call by random times of less than 400 milliseconds, drawn from a seed.
    pub fn slow(mut self, seed: u64) -> Self {
        self.delays = Some(RandomDelays::below(400, seed));
        self
    }

    async fn pause(&self) {
        if let Some(delays) = &self.delays {
            delays.pause().await;
        }
    }

    /// Commits this first when the caller commits next. Several are taken in their order, one for each commit.
    pub fn before_next_commit(&self, transaction: Transaction) {
        self.first.lock().unwrap().push_back(transaction);
    }

    /// Whether it has stopped responding.
    pub fn is_dead(&self) -> bool {
        let calls = self.calls.load(Ordering::Relaxed);
        self.dies_at.is_some_and(|(call, _)| calls >= call)
    }

    /// Counts a call. The one it dies at, and all after it, never return.
    async fn call<T>(&self, work: impl Future<Output = T>) -> T {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.pause().await;
        match self.dies_at {
            Some((at, applied)) if call >= at => {
                if call == at && applied == Applied::Yes {
                    work.await;
                }
                std::future::pending().await
            }
            Some(_) | None => {
                let result = work.await;
                self.pause().await;
                result
            }
        }
    }

    fn add(count: &AtomicU64, many: usize) {
        count.fetch_add(many as u64, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for RacingStore {
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
