//! The harness: what the author of a store implements so that the clauses can run.
//!
//! Owns the trait, the environment of clauses that open their own stores, and the harness of the
//! memory store.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright_store::{MemoryOptions, MemoryStore, Result, Schema, Store};

use crate::crash::Child;

/// Access to one set of records, which is empty at first.
///
/// The kit creates a new harness for each clause, so that clauses do not see each other's records.
/// Dropping the harness may destroy the records. Only [`name`](Self::name) and [`open`](Self::open)
/// are required; a store that implements the others is tested by more clauses. The
/// crate's front page shows how to run one.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use fleetwright_store::{MemoryStore, Result, Schema, Store};
/// use fleetwright_store_contract::Harness;
///
/// #[derive(Default)]
/// struct MyHarness(tokio::sync::OnceCell<MemoryStore>);
///
/// #[async_trait]
/// impl Harness for MyHarness {
///     fn name(&self) -> String {
///         "my store".to_owned()
///     }
///     async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
///         let store = self.0.get_or_init(|| async { MemoryStore::new(schema) }).await;
///         Ok(Arc::new(store.clone())) // every handle sees the same records
///     }
/// }
/// ```
#[async_trait]
pub trait Harness: Send + Sync {
    /// Returns the name of the store for reports.
    fn name(&self) -> String;

    /// Opens a new handle on the records, like a process that has just started. Every handle of
    /// this harness sees the same records.
    ///
    /// # Errors
    ///
    /// Any error fails the clause.
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>>;

    /// Returns where the records are, if they outlive a process, for instance a path. The second
    /// argument of [`store_contract_tests!`](crate::store_contract_tests) creates a harness on the
    /// same records from it.
    ///
    /// The default, `None`, means that the records do not outlive their process: CRASH-01 is not
    /// claimed.
    fn location(&self) -> Option<String> {
        None
    }

    /// Opens a handle on a separate, empty set of records that is full after a few hundred
    /// kilobytes.
    ///
    /// The default, `None`, means that the size of the store cannot be limited: FULL-01 is not
    /// claimed.
    async fn open_small(&self, _schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        Ok(None)
    }

    /// Returns the problems that the store's own integrity check finds, if it has one. By default
    /// there are none.
    async fn problems(&self, _schema: Schema) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Returns how long to wait for something that must happen, such as the next commit of a watch.
    /// Default: 30 seconds. Only a store that fails a clause takes this long.
    fn budget(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// Returns how many random sequences of calls MODEL-01 compares with the model. Default: 64.
    fn model_cases(&self) -> u32 {
        64
    }
}

/// Creates a fresh harness without records.
pub type Factory = Arc<dyn Fn() -> Arc<dyn Harness> + Send + Sync>;

/// The environment of a clause that opens its own stores.
pub struct Environment {
    /// Creates a harness without records.
    pub factory: Factory,
    /// How to start the process that writes and is killed, for stores that outlive their process.
    pub child: Option<Child>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("child", &self.child)
            .finish_non_exhaustive()
    }
}

/// The harness of the [`MemoryStore`].
///
/// ```
/// use fleetwright_store::Store as _;
/// use fleetwright_store_contract::{Harness as _, MemoryHarness, schema};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let harness = MemoryHarness::new();
/// let store = harness.open(schema()?).await?;
/// assert_eq!(store.head().await?.0, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryHarness {
    store: OnceLock<MemoryStore>,
}

impl MemoryHarness {
    /// Creates a harness without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a handle with its concrete type. The first call sets the schema.
    pub fn memory(&self, schema: Schema) -> MemoryStore {
        self.store.get_or_init(|| MemoryStore::new(schema)).clone()
    }

    /// Creates a separate store that is full at 200 kilobytes of values.
    pub fn small(schema: Schema) -> MemoryStore {
        MemoryStore::with_options(schema, MemoryOptions::default().capacity(200_000))
    }
}

#[async_trait]
impl Harness for MemoryHarness {
    fn name(&self) -> String {
        "memory".to_owned()
    }
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.memory(schema)))
    }
    async fn open_small(&self, schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        Ok(Some(Arc::new(Self::small(schema))))
    }
}
