//! The store for tests and simulations: in memory, without background tasks.
//!
//! Every call runs inline under one lock, which is never held across an await. It works under a
//! paused clock and on any executor, and is deterministic. Its content is lost with its last
//! handle.

mod state;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Batch, Interest, Page, Prepared, Query, Record, RecordId, Result, Revision, Schema, Source,
    Store, Transaction, Watch,
};
use state::State;

/// A store in memory. Clones are handles on the same records.
///
/// ```
/// use fleetwright_store::{MemoryOptions, MemoryStore, Schema};
///
/// let schema = Schema::builder().kind("server").build()?;
/// let store = MemoryStore::with_options(schema, MemoryOptions::default().keep_commits(100));
/// # let _ = store;
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    schema: Schema,
    state: Mutex<State>,
    /// The newest revision, for waiting watches.
    head: watch::Sender<Revision>,
}

/// The limits of a [`MemoryStore`].
///
/// ```
/// use fleetwright_store::{MemoryOptions, MemoryStore, Schema};
///
/// let options = MemoryOptions::default().keep_commits(100).capacity(1_000_000);
/// let store = MemoryStore::with_options(Schema::builder().kind("server").build()?, options);
/// # Ok::<(), fleetwright_store::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// The number of commits that watches can go back. Older ones are forgotten. Default: 10,000.
    pub keep_commits: usize,
    /// The largest sum of all values in bytes, or `None` for no limit, the default. A delete always
    /// succeeds.
    pub capacity: Option<usize>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            keep_commits: 10_000,
            capacity: None,
        }
    }
}

impl MemoryOptions {
    /// Sets the number of commits that watches can go back.
    #[must_use]
    pub fn keep_commits(mut self, commits: usize) -> Self {
        self.keep_commits = commits;
        self
    }

    /// Sets the largest sum of all values, in bytes.
    #[must_use]
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(schema: Schema) -> Self {
        Self::with_options(schema, MemoryOptions::default())
    }

    /// Creates an empty store with limits.
    pub fn with_options(schema: Schema, options: MemoryOptions) -> Self {
        let shared = Shared {
            schema,
            state: Mutex::new(State::new(options)),
            head: watch::Sender::new(Revision::ZERO),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl Shared {
    /// A poisoned lock is safe to use: a commit changes the state only after everything that can
    /// fail.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.schema().indexes(&id.kind)?;
        Ok(self.shared.state().record(id))
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        let plan = query.plan(self.schema())?;
        Ok(self.shared.state().page(&plan))
    }

    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        let prepared = Prepared::new(transaction, self.schema())?;
        let mut state = self.shared.state();
        prepared.evaluate(&mut *state)?;
        let revision = state.apply(prepared.writes())?;
        // Under the lock, so that revisions are sent in order.
        self.shared.head.send_replace(revision);
        Ok(revision)
    }

    async fn head(&self) -> Result<Revision> {
        Ok(self.shared.state().history().head)
    }

    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        interest.fits(self.schema())?;
        self.shared.state().history().can_watch_from(after)?;
        let source = MemorySource {
            shared: Arc::clone(&self.shared),
            interest,
        };
        Ok(Watch::new(source, after))
    }

    async fn compact(&self, through: Revision) -> Result<()> {
        self.shared.state().compact(through);
        Ok(())
    }
}

struct MemorySource {
    shared: Arc<Shared>,
    interest: Interest,
}

#[async_trait]
impl Source for MemorySource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        let mut head = self.shared.head.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = head.wait_for(|head| *head > after).await;
        self.shared.state().changes(after, &self.interest)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.shared.state().history().head;
        f.debug_struct("MemoryStore")
            .field("head", &head)
            .finish_non_exhaustive()
    }
}
