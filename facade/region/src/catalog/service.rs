//! The catalog in a store: what is in force, what survives a restart, and who sees what of it.
//!
//! Every entry is a record. A load changes those that differ, each against what was read, some hundred in one
//! transaction. A load that is cut off has changed some entries and not others; loading the same file again does
//! the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use fleetwright_identity::{Principal, Refused, Resource, Scope, Verb};
use fleetwright_store::{
    Change as Written, Check, Damaged, Interest, Invalid, Key, Revision, Store, StoreError, Table,
    Transaction, TypedPage,
};

use super::{
    Catalog, CatalogFile, Change, EntryId, Flavor, Image, Reload, current::CurrentCatalog,
    entry::Entry,
};
use crate::{
    file::Problems,
    ids::{FlavorId, ImageId},
};

/// The largest file that is read.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How many entries one transaction writes: with room below a store's limit.
const AT_ONCE: usize = 100;
/// How often a load begins again because somebody else wrote entries.
const ATTEMPTS: usize = 5;

/// Why a file was not loaded. What was in force still is.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the catalog stays as it was: {} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The file is wrong in itself, or changes what may not change.
    #[error("the catalog stays as it was: {0}")]
    Refused(Problems),
    /// The store failed. Some of the entries may be as the file has them; load it again.
    #[error("the catalog could not be stored whole: load it again")]
    Store(#[from] StoreError),
    /// Others keep writing the catalog.
    #[error("the catalog could not be stored whole: others write it too; load it again")]
    Contended,
}

impl From<Invalid> for LoadError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// The catalog in force, over a store that keeps it.
///
/// Every read of a tenant goes through [`flavors`](Self::flavors) and its siblings, which take the tenant's principal.
/// What it may not see looks like what does not exist.
#[derive(Debug)]
pub struct CatalogService {
    flavors: Table<Flavor>,
    pub(super) images: Table<Image>,
    pub(super) store: Arc<dyn Store>,
    current: RwLock<CurrentCatalog>,
}

impl CatalogService {
    /// Reads what was stored. Entries that cannot be read are answered beside it, and stop none of the others.
    pub async fn open(store: Arc<dyn Store>) -> Result<(Self, Vec<Damaged>), StoreError> {
        let keeper = Self {
            flavors: Table::new(Arc::clone(&store))?,
            images: Table::new(Arc::clone(&store))?,
            store,
            current: RwLock::default(),
        };
        let damaged = keeper.refresh().await?;
        Ok((keeper, damaged))
    }

    /// Puts into force what is stored, for a process that did not load the file itself. Answers the entries that
    /// cannot be read.
    pub async fn refresh(&self) -> Result<Vec<Damaged>, StoreError> {
        let stored = self.stored().await?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let revisions = stored.revisions;
        let written = |id: &ImageId| revisions.get(&EntryId::from(id.clone())).copied();
        current.replace(stored.read_at, stored.catalog, written);
        Ok(stored.damaged)
    }

    /// Puts one image into force as it was written, without reading all the others.
    pub(super) fn put_current(&self, written_at: Revision, image: Image) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.put(written_at, image);
    }

    /// Puts into force whatever others load, as they do, until the store fails. For a task of its own in each process
    /// that does not load the file itself; the error is for its log, after which it is called again.
    pub async fn follow(&self) -> StoreError {
        match self.follow_until().await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn follow_until(&self) -> Result<Infallible, StoreError> {
        let kinds = [self.flavors.kind().clone(), self.images.kind().clone()];
        let head = self.store.head().await?;
        let mut watch = self.store.watch(head, Interest::kinds(kinds)).await?;
        self.refresh().await?;
        loop {
            let commit = watch.next().await?;
            let images = commit.changes.iter().map(|change| match change {
                Written::Put(_) => {
                    let image = self.images.changed(change)?.ok();
                    image.filter(|image| image.value.id.as_str() == image.key.as_str())
                }
                Written::Deleted(_) => None,
            });
            match images.collect::<Option<Vec<_>>>() {
                // What tenants have made grows with them, and each of these comes alone.
                Some(images) => images
                    .into_iter()
                    .for_each(|image| self.put_current(image.revision, image.value)),
                // A file was loaded, or something cannot be read: that is rare, and all is read.
                None => drop(self.refresh().await?),
            }
        }
    }

    /// Loads a file from disk; see [`load`](Self::load).
    pub async fn load_file(&self, path: &Path) -> Result<Vec<Change>, LoadError> {
        let text = read(path).map_err(|source| LoadError::Unreadable {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        self.load(&text).await
    }

    /// Checks a file, stores what it changes, and puts it into force. Answers the changes. On any error the catalog
    /// in force is the one before.
    pub async fn load(&self, text: &str) -> Result<Vec<Change>, LoadError> {
        let file = CatalogFile::parse(text).map_err(LoadError::Refused)?;
        for _ in 0..ATTEMPTS {
            let stored = self.stored().await?;
            let reload = stored
                .catalog
                .reload_over(&file, &stored.unread)
                .map_err(LoadError::Refused)?;
            match self.write(&stored, &reload).await {
                Ok(()) => {
                    // What others wrote meanwhile is in force with it.
                    self.refresh().await?;
                    return Ok(reload.changes);
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LoadError::Contended)
    }

    /// The catalog in force, whole: for planners. Nobody outside reads it without a principal.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).catalog()
    }

    /// The flavors on offer.
    pub fn flavors(&self, principal: &Principal) -> Result<Vec<Flavor>, Refused> {
        principal.authorize_within(Verb::List, Resource::Flavors, &Scope::Global)?;
        let catalog = self.current();
        let offered = catalog.flavors().filter(|flavor| !flavor.retired);
        Ok(offered.cloned().collect())
    }

    /// A flavor, retired or not, if there is one that the principal may see.
    pub fn flavor(&self, principal: &Principal, id: &FlavorId) -> Option<Flavor> {
        let scope = Scope::Global;
        let seen = principal.authorize_within(Verb::Read, Resource::Flavors, &scope);
        seen.ok().and_then(|()| self.current().flavor(id).cloned())
    }

    /// The images on offer: those of everybody, and those of the organizations in which the principal may list images.
    pub fn images(&self, principal: &Principal) -> Result<Vec<Image>, Refused> {
        principal.authorize_within(Verb::List, Resource::Images, &Scope::Global)?;
        let catalog = self.current();
        let offered = catalog.images().filter(|image| !image.retired);
        let seen = offered.filter(|image| sees(principal, Verb::List, image));
        Ok(seen.cloned().collect())
    }

    /// An image, retired or not, if there is one that the principal may see.
    pub fn image(&self, principal: &Principal, id: &ImageId) -> Option<Image> {
        let catalog = self.current();
        let image = catalog.image(id);
        image
            .filter(|image| sees(principal, Verb::Read, image))
            .cloned()
    }

    async fn stored(&self) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        let flavors = self.flavors.list_all(&self.flavors.all()).await?;
        stored.read_at = flavors.revision;
        stored.catalog.flavors = stored.take(&self.flavors, flavors);
        let images = self.images.list_all(&self.images.all()).await?;
        stored.catalog.images = stored.take(&self.images, images);
        Ok(stored)
    }

    async fn write(&self, stored: &Stored, reload: &Reload) -> Result<(), StoreError> {
        for changes in reload.changes.chunks(AT_ONCE) {
            let mut transaction = Transaction::new();
            for change in changes {
                transaction = self.put(transaction, stored, &reload.catalog, change.id())?;
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

/// Whether an image is everybody's, or of an organization in which the principal is shown images.
fn sees(principal: &Principal, verb: Verb, image: &Image) -> bool {
    let scope = image.visibility.scope();
    principal
        .authorize_within(verb, Resource::Images, &scope)
        .is_ok()
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
    let id = table.id(&Key::new(entry.id().to_string())?);
    let value = serde_json::to_value(entry).map_err(|error| Invalid::new(error.to_string()))?;
    let check = match stored.revisions.get(&entry.id().clone().into()) {
        Some(revision) => Check::At(id.clone(), *revision),
        None => Check::Absent(id.clone()),
    };
    Ok(transaction.check(check).put(id, value))
}

/// What was found in the store.
#[derive(Default)]
struct Stored {
    catalog: Catalog,
    /// Everything up to here is in it.
    read_at: Revision,
    /// Of every entry whose id can be read, whether or not the rest can.
    revisions: BTreeMap<EntryId, Revision>,
    damaged: Vec<Damaged>,
    /// The ids of those that are damaged, as far as they are ids.
    unread: BTreeSet<EntryId>,
}

impl Stored {
    fn take<T: Entry<Id: std::str::FromStr>>(
        &mut self,
        table: &Table<T>,
        page: TypedPage<T>,
    ) -> BTreeMap<T::Id, T> {
        let mut entries = BTreeMap::new();
        let mut damaged = page.damaged;
        for found in page.items {
            if found.value.id().to_string() == found.key.as_str() {
                let id = found.value.id().clone();
                self.revisions.insert(id.clone().into(), found.revision);
                entries.insert(id, found.value);
            } else {
                damaged.push(Damaged {
                    id: table.id(&found.key),
                    revision: found.revision,
                    reason: "it says that it has another id".to_owned(),
                });
            }
        }
        for damaged in &damaged {
            if let Ok(id) = damaged.id.key.as_str().parse::<T::Id>() {
                self.revisions.insert(id.clone().into(), damaged.revision);
                self.unread.insert(id.into());
            }
        }
        self.damaged.append(&mut damaged);
        entries
    }
}

/// A whole file as text, unless it is no text or too large to be a catalog.
fn read(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_FILE_BYTES {
        let what = format!("it has {bytes} bytes, more than {MAX_FILE_BYTES}");
        return Err(std::io::Error::other(what));
    }
    std::fs::read_to_string(path)
}
