//! Stores: in memory, in a file, and wrapped ones that are slow, count, or fail at one call.

mod racing;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright_compute::Facade;
use fleetwright_store::{
    Interest, MemoryStore, Page, Query, Record, RecordId, Revision, Schema, Store, StoreError,
    Transaction, Watch,
};
use fleetwright_store_sqlite::SqliteStore;

pub use racing::{Applied, RacingStore};

/// The schema of a whole façade.
pub fn schema() -> Schema {
    Facade::schema().unwrap()
}

/// An empty store in memory.
pub fn memory_store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(schema()))
}

/// A store in a file, which is created if it does not exist.
pub async fn sqlite_store(path: impl AsRef<Path>) -> Arc<dyn Store> {
    let store = SqliteStore::open(path.as_ref(), schema()).await;
    Arc::new(store.unwrap())
}

/// What a store does before, or instead of, a call. Every method does nothing unless it is overridden.
#[async_trait]
pub trait Interceptor: std::fmt::Debug + Send + Sync {
    /// Before a call that reads.
    async fn read(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Before a call that writes.
    async fn before_commit(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// After a successful commit.
    async fn after_commit(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// This many records were read.
    fn record_read(&self, _records: usize) {}
}

/// A store with an interceptor in front of it.
#[derive(Debug)]
pub struct InterceptedStore<I> {
    inner: Arc<dyn Store>,
    /// What is done at each call.
    pub interceptor: I,
}

impl<I: Interceptor + 'static> InterceptedStore<I> {
    /// Puts an interceptor in front of a store.
    pub fn new(inner: Arc<dyn Store>, interceptor: I) -> Arc<Self> {
        Arc::new(Self { inner, interceptor })
    }
}

#[async_trait]
impl<I: Interceptor> Store for InterceptedStore<I> {
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>, StoreError> {
        self.interceptor.read().await?;
        let found = self.inner.get(id).await?;
        self.interceptor.record_read(usize::from(found.is_some()));
        Ok(found)
    }
    async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.interceptor.read().await?;
        let page = self.inner.list(query).await?;
        self.interceptor.record_read(page.records.len());
        Ok(page)
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision, StoreError> {
        self.interceptor.before_commit().await?;
        let revision = self.inner.commit(transaction).await?;
        self.interceptor.after_commit().await?;
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

/// Every call takes a random time, drawn from a seed, so that calls of others run between a read and a write.
#[derive(Debug)]
pub struct RandomDelays {
    state: AtomicU64,
    limit: u64,
}

impl RandomDelays {
    /// Delays of less than 40 milliseconds.
    pub fn new(seed: u64) -> Self {
        Self::below(40, seed)
    }

    /// Delays of less than this many milliseconds.
    pub fn below(limit: u64, seed: u64) -> Self {
        let state = AtomicU64::new(seed);
        Self { state, limit }
    }

    async fn pause(&self) {
        let step = |state: u64| {
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        let next = |state| Some(step(state));
        let before = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let drawn = before.unwrap() >> 40;
        tokio::time::sleep(Duration::from_millis(drawn % self.limit)).await;
    }
}

#[async_trait]
impl Interceptor for RandomDelays {
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
pub struct CallCounts {
    /// Calls that read.
    pub reads: AtomicU64,
    /// Calls that write.
    pub commits: AtomicU64,
    /// Records that were returned.
    pub records: AtomicU64,
}

impl CallCounts {
    /// Reads, commits and records since the last call of this.
    pub fn take(&self) -> [u64; 3] {
        [&self.reads, &self.commits, &self.records].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

#[async_trait]
impl Interceptor for CallCounts {
    async fn read(&self) -> Result<(), StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    async fn before_commit(&self) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn record_read(&self, records: usize) {
        self.records.fetch_add(records as u64, Ordering::Relaxed);
    }
}

/// What goes wrong at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It never returns, and is never carried out.
    HangsBefore,
    /// It never returns, and a commit is carried out.
    HangsAfter,
    /// It fails and is not carried out.
    Fails,
    /// It is carried out, and the caller gets an unknown outcome.
    ResponseLost,
}

/// One call goes wrong, all others work.
#[derive(Debug)]
pub struct OneFault {
    left: AtomicI64,
    kind: FaultKind,
}

impl OneFault {
    /// Counts calls from 0.
    pub fn new(call: i64, kind: FaultKind) -> Self {
        let left = AtomicI64::new(call);
        Self { left, kind }
    }

    fn is_now(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// Whether the call was made.
    pub fn was_reached(&self) -> bool {
        self.left.load(Ordering::Relaxed) < 0
    }

    async fn inject(&self) -> Result<(), StoreError> {
        match self.kind {
            FaultKind::HangsBefore | FaultKind::HangsAfter => std::future::pending().await,
            FaultKind::Fails => Err(StoreError::Unavailable {
                reason: "injected".to_owned(),
                source: None,
            }),
            FaultKind::ResponseLost => Err(StoreError::UnknownOutcome {
                reason: "injected".to_owned(),
                source: None,
            }),
        }
    }
}

#[async_trait]
impl Interceptor for OneFault {
    async fn read(&self) -> Result<(), StoreError> {
        if self.is_now() {
            return self.inject().await;
        }
        Ok(())
    }
    async fn before_commit(&self) -> Result<(), StoreError> {
        if matches!(self.kind, FaultKind::HangsBefore | FaultKind::Fails) && self.is_now() {
            return self.inject().await;
        }
        Ok(())
    }
    async fn after_commit(&self) -> Result<(), StoreError> {
        if matches!(self.kind, FaultKind::HangsAfter | FaultKind::ResponseLost) && self.is_now() {
            return self.inject().await;
        }
        Ok(())
    }
}
