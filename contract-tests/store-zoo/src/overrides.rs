//! A store with some calls overridden: how mutants are written in a few lines.

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

/// The calls of a broken or unusual store. Each method defaults to the correct store's behaviour. One value serves
/// all handles, so it can keep state.
#[async_trait]
#[expect(
    missing_docs,
    reason = "each field overrides the store's method of the same name; the harness's own fields are documented"
)]
pub trait Override: Send + Sync {
    /// Returns the schema to open the correct store with.
    fn schema(&self, sound: Schema) -> Schema {
        sound
    }
    /// Returns whether every handle has records of its own.
    fn forgets_with_each_handle(&self) -> bool {
        false
    }
    async fn get(&self, at: CallContext<'_>, id: &RecordId) -> Result<Option<Record>> {
        at.store.get(id).await
    }
    async fn list(&self, at: CallContext<'_>, query: &Query) -> Result<Page> {
        at.store.list(query).await
    }
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        at.store.commit(transaction).await
    }
    async fn head(&self, at: CallContext<'_>) -> Result<Revision> {
        at.store.head().await
    }
    /// Returns an error if a watch cannot begin; [`batch`](Self::batch) returns what it shows.
    async fn can_watch(
        &self,
        at: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<()> {
        at.store.watch(after, interest.clone()).await.map(|_| ())
    }
    async fn batch(
        &self,
        at: CallContext<'_>,
        after: Revision,
        interest: &Interest,
    ) -> Result<Batch> {
        next_batch(at, after, interest).await
    }
    async fn compact(&self, at: CallContext<'_>, through: Revision) -> Result<()> {
        at.store.compact(through).await
    }
}

/// Returns the next commit of the correct store, as a batch.
pub(crate) async fn next_batch(
    at: CallContext<'_>,
    after: Revision,
    interest: &Interest,
) -> Result<Batch> {
    let mut watch = at.store.watch(after, Interest::all()).await?;
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
    /// Overrides a handle.
    pub fn new(store: Arc<dyn Store>, overrides: Arc<dyn Override>, handle: usize) -> Self {
        Self {
            store,
            overrides,
            handle,
        }
    }

    fn at(&self) -> CallContext<'_> {
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
        self.overrides.get(self.at(), id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        self.overrides.list(self.at(), query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.overrides.commit(self.at(), transaction).await
    }
    async fn head(&self) -> Result<Revision> {
        self.overrides.head(self.at()).await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.overrides
            .can_watch(self.at(), after, &interest)
            .await?;
        let source = OverriddenSource {
            handle: self.clone(),
            interest,
        };
        Ok(Watch::new(source, after))
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.overrides.compact(self.at(), through).await
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
            .batch(self.handle.at(), after, &self.interest)
            .await
    }
}

/// A harness whose handles have a overrides.
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
        let base = if self.overrides.forgets_with_each_handle() {
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
    /// Only what never comes is waited for so long.
    fn budget(&self) -> Duration {
        Duration::from_secs(1)
    }
}
