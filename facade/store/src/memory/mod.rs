//! The store of tests and simulations: all in the memory of the process, nothing in the background.
//!
//! Every call is carried out inline, under one lock that is never held across an await. So it works under a
//! paused clock and on any executor, and a seed replays. It forgets everything with its last handle.

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
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    schema: Schema,
    state: Mutex<State>,
    /// The store's revision, for those who wait for the next.
    head: watch::Sender<Revision>,
}

/// How much a [`MemoryStore`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// How many commits watches can go back. More are forgotten, oldest first.
    pub keep_commits: usize,
    /// How many bytes all values may have together before the store is full; deleting always goes.
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
    /// Sets how many commits watches can go back.
    #[must_use]
    pub fn keep_commits(mut self, commits: usize) -> Self {
        self.keep_commits = commits;
        self
    }

    /// Sets how many bytes all values may have together.
    #[must_use]
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(schema: Schema) -> Self {
        Self::with_options(schema, MemoryOptions::default())
    }

    /// An empty store that keeps so much.
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
    /// A panic elsewhere leaves the state as it was: a commit changes it only after everything that can fail.
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
        prepared.judge(&mut *state)?;
        let revision = state.carry_out(prepared.writes())?;
        // Under the lock, so that the heads are sent in order.
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
        // The sender lives as long as `self` does, so that waiting does not fail.
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
