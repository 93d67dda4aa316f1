//! Stores that are slow, count, fail or stop, for what tests want to see.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright_store::{
    Interest, Page, Query, Record, RecordId, Revision, Schema, Store, StoreError, Transaction,
    Watch,
};

/// What a store does before, or instead of, a call.
#[async_trait]
pub(crate) trait Whim: std::fmt::Debug + Send + Sync {
    /// Before a call that reads.
    async fn read(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Before a call that writes.
    async fn before_commit(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// After a commit that went well.
    async fn after_commit(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// So many records were read.
    fn seen(&self, _records: usize) {}
}

/// A store with a whim.
#[derive(Debug)]
pub(crate) struct Moody<W> {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) whim: W,
}

impl<W: Whim + 'static> Moody<W> {
    pub(crate) fn new(inner: Arc<dyn Store>, whim: W) -> Arc<Self> {
        Arc::new(Self { inner, whim })
    }
}

#[async_trait]
impl<W: Whim> Store for Moody<W> {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        self.whim.read().await?;
        let found = self.inner.get(id).await?;
        self.whim.seen(usize::from(found.is_some()));
        Ok(found)
    }
    async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.whim.read().await?;
        let page = self.inner.list(query).await?;
        self.whim.seen(page.records.len());
        Ok(page)
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision, StoreError> {
        self.whim.before_commit().await?;
        let revision = self.inner.commit(transaction).await?;
        self.whim.after_commit().await?;
        Ok(revision)
    }
    async fn head(&self) -> Result<Revision, StoreError> {
        self.inner.head().await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch, StoreError> {
        self.inner.watch(after, interest).await
    }
    async fn compact(&self, through: Revision) -> Result<(), StoreError> {
        self.inner.compact(through).await
    }
}

/// Every call takes a while, for each seed another one: others come between a look and a write.
#[derive(Debug)]
pub(crate) struct Slow(AtomicU64);

impl Slow {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    async fn pause(&self) {
        let step = |state: u64| {
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let next = |state| Some(step(state));
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let chosen = before.unwrap() >> 40;
        tokio::time::sleep(Duration::from_millis(chosen % 40)).await;
    }
}

#[async_trait]
impl Whim for Slow {
    async fn read(&self) -> Result<(), StoreError> {
        self.pause().await;
        Ok(())
    }
    async fn before_commit(&self) -> Result<(), StoreError> {
        self.pause().await;
        Ok(())
    }
}

/// Counts calls and records.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) reads: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) records: AtomicU64,
}

impl Counting {
    pub(crate) fn take(&self) -> [u64; 3] {
        [&self.reads, &self.commits, &self.records].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

#[async_trait]
impl Whim for Counting {
    async fn read(&self) -> Result<(), StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    async fn before_commit(&self) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn seen(&self, records: usize) {
        self.records.fetch_add(records as u64, Ordering::Relaxed);
    }
}

/// What happens at the call of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It never answers, and never begins.
    HangsBefore,
    /// It never answers, and if it is a commit it was committed.
    HangsAfter,
    /// It cannot be made.
    Fails,
    /// It was made, and nobody knows.
    AnswerLost,
}

/// One call goes wrong, the others do not.
#[derive(Debug)]
pub(crate) struct Fated {
    left: AtomicI64,
    fate: Fate,
}

impl Fated {
    pub(crate) fn new(call: i64, fate: Fate) -> Self {
        let left = AtomicI64::new(call);
        Self { left, fate }
    }

    fn is_now(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// Whether the call came.
    pub(crate) fn came(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    async fn strike(&self) -> Result<(), StoreError> {
        match self.fate {
            Fate::HangsBefore | Fate::HangsAfter => std::future::pending().await,
            Fate::Fails => Err(StoreError::Unavailable {
                reason: "the test wants it so".to_owned(),
                source: None,
            }),
            Fate::AnswerLost => Err(StoreError::UnknownOutcome {
                reason: "the test wants it so".to_owned(),
                source: None,
            }),
        }
    }
}

#[async_trait]
impl Whim for Fated {
    async fn read(&self) -> Result<(), StoreError> {
        if self.is_now() {
            return self.strike().await;
        }
        Ok(())
    }
    async fn before_commit(&self) -> Result<(), StoreError> {
        if matches!(self.fate, Fate::HangsBefore | Fate::Fails) && self.is_now() {
            return self.strike().await;
        }
        Ok(())
    }
    async fn after_commit(&self) -> Result<(), StoreError> {
        if matches!(self.fate, Fate::HangsAfter | Fate::AnswerLost) && self.is_now() {
            return self.strike().await;
        }
        Ok(())
    }
}
