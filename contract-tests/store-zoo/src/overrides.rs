//! A store with some calls overridden: how mutants are written in a few lines.
//!
//! Owns the trait with all overridable calls, the store that applies it, and the harness for the
//! kit. Every call that is not overridden is passed to the correct store behind it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use fleetwright_store::{
    Batch, Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Source, Store,
    Transaction, Watch,
};
use fleetwright_store_contract::{Factory, Harness, MemoryHarness};

/// What an overridden call can use.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// The correct store behind the overridden one.
    pub store: &'a Arc<dyn Store>,
    /// The number of the handle, from 1.
    pub handle: usize,
}

/// The calls of a broken or unusual store. Each method defaults to the correct store's behaviour.
/// One value serves all handles, so it can keep state.
#[async_trait]
#[expect(
    missing_docs,
    reason = "each method overrides the store's method of the same name; the harness's own methods are documented"
)]
pub trait Override: Send + Sync {
    /// Returns the schema to open the correct store with.
    fn schema(&self, schema: Schema) -> Schema {
        schema
    }
    /// Returns whether every handle has its own records, so that reopening loses them.
    fn has_records_per_handle(&self) -> bool {
        false
    }
    async fn get(&self, call: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        call.store.get(id).await
    }
    async fn list(&self, call: CallContext<'_>, query: &Query) -> Result<Page> {
        call.store.list(query).await
    }
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        call.store.commit(transaction).await
    }
    async fn head(&self, call: CallContext<'_>) -> Result<Revision> {
        call.store.head().await
    }
    /// Returns an error if a watch cannot begin; [`batch`](Self::batch) returns what it shows.
    async fn can_watch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<()> {
        call.store.watch(after, interest.clone()).await.map(|_| ())
    }
    async fn batch(
        &self,
        call: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        next_batch(call, after, interest).await
    }
    async fn compact(&self, call: CallContext<'_>, through: Revision) -> Result<()> {
        call.store.compact(through).await
    }
}

/// Returns the next commit of the correct store, as a batch.
pub(crate) async fn next_batch(
    call: CallContext<'_>,
    after: Revision,
    interest: &Interest,
) -> Result<Batch> {
    let mut watch = call.store.watch(after, Interest::all()).await?;
    let commit = watch.next().await?;
    Ok(Batch {
        through: commit.revision,
        commits: interest.part_of(&commit).into_iter().collect(),
    })
}

/// A handle whose calls are overridden.
#[derive(Clone)]
pub struct OverriddenStore {
    store: Arc<dyn Store>,
    overrides: Arc<dyn Override>,
    handle: usize,
}

impl OverriddenStore {
    /// Overrides the calls of a handle. `handle` is its number, from 1.
    pub fn new(store: Arc<dyn Store>, overrides: Arc<dyn Override>, handle: usize) -> Self {
        Self {
            store,
            overrides,
            handle,
        }
    }

    fn call(&self) -> CallContext<'_> {
        CallContext {
            store: &self.store,
            handle: self.handle,
        }
    }
}

impl fmt::Debug for OverriddenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OverriddenStore({:?})", self.store)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for OverriddenStore {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.overrides.get(self.call(), id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        self.overrides.list(self.call(), query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.overrides.commit(self.call(), transaction).await
    }
    async fn head(&self) -> Result<Revision> {
        self.overrides.head(self.call()).await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.overrides
            .can_watch(self.call(), after, &interest)
            .await?;
        let source = OverriddenSource {
            handle: self.clone(),
            interest,
        };
        Ok(Watch::new(source, after))
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.overrides.compact(self.call(), through).await
    }
}

struct OverriddenSource {
    handle: OverriddenStore,
    interest: Interest,
}

#[async_trait]
impl Source for OverriddenSource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        let overrides = &self.handle.overrides;
        overrides
            .batch(self.handle.call(), after, &self.interest)
            .await
    }
}

/// A harness of the memory store whose handles have their calls overridden.
pub struct OverrideHarness {
    base: MemoryHarness,
    overrides: Arc<dyn Override>,
    opened: AtomicUsize,
}

impl OverrideHarness {
    /// Returns a factory of harnesses, each with a new `T`.
    pub fn factory<T: Override + Default + 'static>() -> Factory {
        Arc::new(|| {
            Arc::new(Self {
                base: MemoryHarness::new(),
                overrides: Arc::new(T::default()),
                opened: AtomicUsize::new(0),
            })
        })
    }

    fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let handle = self.opened.fetch_add(1, Ordering::SeqCst) + 1;
        Arc::new(OverriddenStore::new(
            store,
            Arc::clone(&self.overrides),
            handle,
        ))
    }
}

impl fmt::Debug for OverrideHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverrideHarness").finish_non_exhaustive()
    }
}

#[async_trait]
impl Harness for OverrideHarness {
    fn name(&self) -> String {
        "memory with overrides".to_owned()
    }
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
        let schema = self.overrides.schema(schema);
        let base = if self.overrides.has_records_per_handle() {
            MemoryHarness::new().memory(schema)
        } else {
            self.base.memory(schema)
        };
        Ok(self.wrap(Arc::new(base)))
    }
    async fn open_small(&self, schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        let small = MemoryHarness::small(schema);
        Ok(Some(self.wrap(Arc::new(small))))
    }
    /// Short, because a mutant that loses a commit makes the clause wait this long.
    fn budget(&self) -> Duration {
        Duration::from_secs(1)
    }
}
