//! A store in which others are faster, or in which a process dies.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
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
    /// What the lengths of its pauses are drawn from, if it makes any.
    slow: Option<AtomicU64>,
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
            slow: None,
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

    /// Every call takes a while, for each seed another one: others come between a look and a write.
    pub(crate) fn slow(mut self, seed: u64) -> Self {
        self.slow = Some(AtomicU64::new(seed));
        self
    }

    async fn pause(&self) {
        let Some(state) = &self.slow else {
            return;
        };
        let step = |state: u64| {
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let (order, change) = (Ordering::Relaxed, |state| Some(step(state)));
        let drawn = state.fetch_update(order, order, change).unwrap() >> 40;
        tokio::time::sleep(Duration::from_millis(drawn % 400)).await;
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
        self.pause().await;
        match self.dies_at {
            Some((at, done)) if call >= at => {
                if call == at && done == Done::Yes {
                    work.await;
                }
                std::future::pending().await
            }
            Some(_) | None => {
                let answer = work.await;
                self.pause().await;
                answer
            }
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
