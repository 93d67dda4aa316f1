//! A store with one thing twisted: how mutants are made small.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    Batch, Interest, Page, Query, Record, RecordId, Result, Revision, Schema, Source, Store,
    Transaction, Watch,
    contract::{Factory, Harness, MemoryHarness},
};

/// Where a twisted call comes through.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The sound store behind the twisted one.
    pub store: &'a Arc<dyn Store>,
    /// Which handle it is, from 1.
    pub handle: usize,
}

/// What is twisted: every method does what the sound store does, unless it is overridden. One value serves all
/// handles, so a twist can remember things.
#[async_trait]
#[expect(
    missing_docs,
    reason = "each is the method of the same name of the store; those of the harness say what they are"
)]
pub trait Twist: Send + Sync {
    /// What the sound store is opened with.
    fn schema(&self, sound: Schema) -> Schema {
        sound
    }
    /// Whether every handle has records of its own.
    fn forgets_with_each_handle(&self) -> bool {
        false
    }
    async fn get(&self, at: At<'_>, id: &RecordId) -> Result<Option<Record>> {
        at.store.get(id).await
    }
    async fn list(&self, at: At<'_>, query: &Query) -> Result<Page> {
        at.store.list(query).await
    }
    async fn commit(&self, at: At<'_>, transaction: &Transaction) -> Result<Revision> {
        at.store.commit(transaction).await
    }
    async fn head(&self, at: At<'_>) -> Result<Revision> {
        at.store.head().await
    }
    /// Whether a watch can begin; [`batch`](Self::batch) is what it shows.
    async fn can_watch(&self, at: At<'_>, after: Revision, interest: &Interest) -> Result<()> {
        at.store.watch(after, interest.clone()).await.map(|_| ())
    }
    async fn batch(&self, at: At<'_>, after: Revision, interest: &Interest) -> Result<Batch> {
        next_batch(at, after, interest).await
    }
    async fn compact(&self, at: At<'_>, through: Revision) -> Result<()> {
        at.store.compact(through).await
    }
}

/// The next commit of the sound store, as a batch.
pub(crate) async fn next_batch(at: At<'_>, after: Revision, interest: &Interest) -> Result<Batch> {
    let mut watch = at.store.watch(after, Interest::all()).await?;
    let commit = watch.next().await?;
    Ok(Batch {
        through: commit.revision,
        commits: interest.part_of(&commit).into_iter().collect(),
    })
}

/// A handle with a twist.
#[derive(Clone)]
pub struct Twisted {
    store: Arc<dyn Store>,
    twist: Arc<dyn Twist>,
    handle: usize,
}

impl Twisted {
    /// Twists a handle.
    pub fn new(store: Arc<dyn Store>, twist: Arc<dyn Twist>, handle: usize) -> Self {
        Self {
            store,
            twist,
            handle,
        }
    }

    fn at(&self) -> At<'_> {
        At {
            store: &self.store,
            handle: self.handle,
        }
    }
}

impl fmt::Debug for Twisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Twisted({:?})", self.store)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Store for Twisted {
    fn schema(&self) -> &Schema {
        self.store.schema()
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        self.twist.get(self.at(), id).await
    }
    async fn list(&self, query: &Query) -> Result<Page> {
        self.twist.list(self.at(), query).await
    }
    async fn commit(&self, transaction: &Transaction) -> Result<Revision> {
        self.twist.commit(self.at(), transaction).await
    }
    async fn head(&self) -> Result<Revision> {
        self.twist.head(self.at()).await
    }
    async fn watch(&self, after: Revision, interest: Interest) -> Result<Watch> {
        self.twist.can_watch(self.at(), after, &interest).await?;
        let source = TwistedSource {
            handle: self.clone(),
            interest,
        };
        Ok(Watch::new(source, after))
    }
    async fn compact(&self, through: Revision) -> Result<()> {
        self.twist.compact(self.at(), through).await
    }
}

struct TwistedSource {
    handle: Twisted,
    interest: Interest,
}

#[async_trait]
impl Source for TwistedSource {
    async fn batch(&self, after: Revision) -> Result<Batch> {
        let twist = &self.handle.twist;
        twist.batch(self.handle.at(), after, &self.interest).await
    }
}

/// A harness whose handles have a twist.
pub struct TwistedHarness {
    base: MemoryHarness,
    twist: Arc<dyn Twist>,
    opened: AtomicUsize,
}

impl TwistedHarness {
    /// A factory of twisted harnesses: a new twist for each.
    pub fn factory<T: Twist + Default + 'static>() -> Factory {
        Arc::new(|| {
            Arc::new(Self {
                base: MemoryHarness::new(),
                twist: Arc::new(T::default()),
                opened: AtomicUsize::new(0),
            })
        })
    }

    fn twisted(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let handle = self.opened.fetch_add(1, Ordering::SeqCst) + 1;
        Arc::new(Twisted::new(store, Arc::clone(&self.twist), handle))
    }
}

impl fmt::Debug for TwistedHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwistedHarness").finish_non_exhaustive()
    }
}

#[async_trait]
impl Harness for TwistedHarness {
    fn name(&self) -> String {
        "twisted memory".to_owned()
    }
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
        let schema = self.twist.schema(schema);
        let base = if self.twist.forgets_with_each_handle() {
            MemoryHarness::new().memory(schema)
        } else {
            self.base.memory(schema)
        };
        Ok(self.twisted(Arc::new(base)))
    }
    async fn open_small(&self, schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        let small = MemoryHarness::small(schema);
        Ok(Some(self.twisted(Arc::new(small))))
    }
    /// Only what never comes is waited for so long.
    fn budget(&self) -> Duration {
        Duration::from_secs(1)
    }
}
