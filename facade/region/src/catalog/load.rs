//! Loading a catalog file into the store.
//!
//! Owns what a load writes: the entries that differ, up to 50 in one transaction, each with a check of the revision that was read.
//! A load that is interrupted has written some of them; loading the same file again writes the rest.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use fleetwright_store::{Base, Invalid, Key, StoreError, Table, Transaction};

use super::{
    Catalog, CatalogFile, CatalogService, Change, EntryId, Reload, entry::Entry, stored::Stored,
};
use crate::file::Problems;

/// The largest catalog file that is read, in bytes: 4 MiB.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How many entries one transaction writes, each with an entry of the audit log: below a store's limit of 128.
const BATCH: usize = 50;
/// How often a load is tried when others write entries.
const ATTEMPTS: usize = 5;

/// Why a file was not loaded. The current catalog of this process is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the catalog is unchanged: {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system, or that the file is too large.
        source: Arc<std::io::Error>,
    },
    /// The file has problems by itself, or changes fields that servers rely on.
    #[error("the catalog is unchanged: {0}")]
    Refused(Problems),
    /// The store failed. Some entries may be stored already: load the file again.
    #[error("the catalog may be stored only in part: load it again")]
    Store(#[from] StoreError),
    /// Others wrote the catalog at every attempt. Some entries may be stored already: load the file again.
    #[error("the catalog may be stored only in part, because others write it too: load it again")]
    Contended,
}

impl From<Invalid> for LoadError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl CatalogService {
    /// Loads a file of at most [`MAX_FILE_BYTES`] from disk, as [`load`](Self::load) does.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the errors of [`load`](Self::load).
    pub async fn load_file(&self, path: &Path) -> Result<Vec<Change>, LoadError> {
        let text = read(path).map_err(|source| LoadError::Unreadable {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        self.load(&text).await
    }

    /// Checks the text of a catalog file, stores the entries that it changes, and makes it the current catalog. Returns the
    /// changes; a text that was loaded before changes nothing. An entry of a newer version of this program stays as it is, and is
    /// returned as [`LeftAlone`](Change::LeftAlone).
    ///
    /// # Errors
    ///
    /// The file has a problem, or the store fails. On any error the current catalog is unchanged.
    pub async fn load(&self, text: &str) -> Result<Vec<Change>, LoadError> {
        let file = CatalogFile::parse(text).map_err(LoadError::Refused)?;
        for _ in 0..ATTEMPTS {
            let stored = self.read_stored().await?;
            let reload = stored.catalog.reload(&file).map_err(LoadError::Refused)?;
            match self.write(&stored, &reload).await {
                Ok(()) => {
                    // This includes what others wrote meanwhile.
                    self.refresh().await?;
                    return Ok(reload.changes);
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LoadError::Contended)
    }

    async fn write(&self, stored: &Stored, reload: &Reload) -> Result<(), StoreError> {
        let is_written = |change: &&Change| !matches!(change, Change::LeftAlone(_));
        let changes: Vec<_> = reload.changes.iter().filter(is_written).collect();
        for changes in changes.chunks(BATCH) {
            let mut transaction = Transaction::new();
            for change in changes {
                transaction = self.put(transaction, stored, &reload.catalog, change.id())?;
                transaction = self.add_file_entry(transaction, change)?;
            }
            self.store.commit(&transaction).await?;
        }
        Ok(())
    }

    fn put(
        &self,
        transaction: Transaction,
        stored: &Stored,
        catalog: &Catalog,
        id: &EntryId,
    ) -> Result<Transaction, StoreError> {
        match id {
            EntryId::Flavor(key) => put(&self.flavors, transaction, stored, catalog.flavor(key)),
            EntryId::Image(key) => put(&self.images, transaction, stored, catalog.image(key)),
        }
    }
}

fn put<T: Entry>(
    table: &Table<T>,
    transaction: Transaction,
    stored: &Stored,
    entry: Option<&T>,
) -> Result<Transaction, StoreError> {
    let Some(entry) = entry else {
        return Ok(transaction);
    };
    let key = Key::new(entry.id().to_string())?;
    let entry_id = entry.id().clone().into();
    if let Some(base) = stored.bases.get(&entry_id) {
        return table.replace_base(transaction, &key, base, entry);
    }
    match stored.revisions.get(&entry_id) {
        // A damaged entry is replaced by the one of the file.
        Some(revision) => {
            let base = Base::without_form(*revision);
            table.replace_base(transaction, &key, &base, entry)
        }
        None => table.create(transaction, &key, entry),
    }
}

/// Reads a file of at most [`MAX_FILE_BYTES`] as text.
fn read(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_FILE_BYTES {
        let what = format!("it has {bytes} bytes, more than {MAX_FILE_BYTES}");
        return Err(std::io::Error::other(what));
    }
    std::fs::read_to_string(path)
}
