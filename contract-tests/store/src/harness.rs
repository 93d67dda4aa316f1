//! What the author of a store gives to the suite.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;

use crate::crash::Child;
use fleetwright_store::{MemoryOptions, MemoryStore, Result, Schema, Store};

/// One set of records, empty at first, and the ways to it. Dropping the harness may destroy them.
#[async_trait]
pub trait Harness: Send + Sync {
    /// What the store is called in reports.
    fn name(&self) -> String;

    /// A new handle on the records, as a process that has just started would open it.
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>>;

    /// Where the records are, if they outlive a process: what the second argument of
    /// [`store_contract_tests!`](crate::store_contract_tests) makes a harness on the same records of.
    fn location(&self) -> Option<String> {
        None
    }

    /// A handle on records of their own for which there is little room, some hundred kilobytes; nothing if the
    /// store cannot be made small.
    async fn open_small(&self, _schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        Ok(None)
    }

    /// What the store's own check finds wrong with the records, if it has one.
    async fn problems(&self, _schema: Schema) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// How long to wait for something that must happen at all.
    fn budget(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// How many sequences of calls are compared with the model.
    fn model_cases(&self) -> u32 {
        64
    }
}

/// Creates a fresh harness.
pub type Factory = Arc<dyn Fn() -> Arc<dyn Harness> + Send + Sync>;

/// What a clause that opens its own stores is given.
pub struct Environment {
    /// Creates a harness without records.
    pub factory: Factory,
    /// How to start a process that writes to a store and is killed, for stores that outlive their process.
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
#[derive(Debug, Default)]
pub struct MemoryHarness {
    store: OnceLock<MemoryStore>,
}

impl MemoryHarness {
    /// Without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle as what it is.
    pub fn memory(&self, schema: Schema) -> MemoryStore {
        self.store.get_or_init(|| MemoryStore::new(schema)).clone()
    }

    /// A handle on a store with room for 200 kilobytes.
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
