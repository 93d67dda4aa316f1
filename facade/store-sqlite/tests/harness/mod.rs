//! The harness of the SQLite store.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use fleetwright_store::{Result, Schema, Store};
use fleetwright_store_contract::Harness;
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

/// A database in a folder of its own.
pub(crate) struct SqliteHarness {
    folder: PathBuf,
    /// Deletes the folder when the harness is dropped. The process that is killed does not own the
    /// folder.
    _owned: Option<TempDir>,
}

impl SqliteHarness {
    pub(crate) fn new() -> Self {
        let owned = TempDir::new().unwrap();
        Self {
            folder: owned.path().to_owned(),
            _owned: Some(owned),
        }
    }

    pub(crate) fn at(location: &str) -> Self {
        Self {
            folder: location.into(),
            _owned: None,
        }
    }
}

/// Polls other handles every two milliseconds, so that tests are short.
pub(crate) fn options() -> SqliteOptions {
    SqliteOptions::default().poll_every(Duration::from_millis(2))
}

#[async_trait]
impl Harness for SqliteHarness {
    fn name(&self) -> String {
        "sqlite".to_owned()
    }
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
        let path = self.folder.join("store.db");
        Ok(Arc::new(
            SqliteStore::open_with(path, schema, options()).await?,
        ))
    }
    fn location(&self) -> Option<String> {
        Some(self.folder.display().to_string())
    }
    async fn open_small(&self, schema: Schema) -> Result<Option<Arc<dyn Store>>> {
        let path = self.folder.join("small.db");
        let store = SqliteStore::open_with(path, schema, options().max_bytes(600_000)).await?;
        Ok(Some(Arc::new(store)))
    }
    async fn problems(&self, schema: Schema) -> Result<Vec<String>> {
        let path = self.folder.join("store.db");
        let store = SqliteStore::open_with(path, schema, options()).await?;
        store.check().await
    }
    fn model_cases(&self) -> u32 {
        32
    }
}
