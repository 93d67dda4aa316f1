//! The catalog in a store: loading files, following other processes, and reads with a principal.
//!
//! Every entry is a record. A load writes the entries that differ, up to 50 in one transaction, each with a check of the
//! revision that was read. A load that is interrupted has written some of them; loading the same file again writes the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use fleetwright_identity::{Principal, Refused, Resource, Scope, Tenancy, Verb};
use fleetwright_store::{
    Base, Change as Written, Damaged, Interest, Invalid, Key, Revision, Store, StoreError, Table,
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

/// Why the catalog was not read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The principal lacks the permission.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// The current catalog of a process, backed by a store.
///
/// Every read takes the caller's principal; an entry that is not visible is reported as missing. One process
/// [loads](Self::load_file) the file, and the others [follow](Self::follow).
///
/// ```
/// use std::sync::Arc;
/// use fleetwright_identity::{ActorName, Permission, Principal};
/// use fleetwright_region::{catalog::CatalogService, schema};
/// use fleetwright_store::{MemoryStore, Schema};
///
/// # const TEXT: &str = include_str!("../../catalog.example.toml");
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new(schema::add_kinds(Schema::builder()).build()?));
/// let (catalog, damaged) = CatalogService::open(store).await?;
/// assert!(damaged.is_empty());
///
/// for change in catalog.load(TEXT).await? {
///     println!("{change}"); // flavor standard-4 was added
/// }
/// // A file with a problem changes nothing.
/// assert!(catalog.load("[[flavor]]").await.is_err());
///
/// let principal = Principal::service(ActorName::new("compute")?, Permission::all());
/// assert!(!catalog.flavors(&principal)?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CatalogService {
    flavors: Table<Flavor>,
    pub(super) images: Table<Image>,
    pub(super) store: Arc<dyn Store>,
    current: RwLock<CurrentCatalog>,
    pub(super) tenancy: OnceLock<Tenancy>,
}

impl CatalogService {
    /// Reads the stored catalog. Also returns the entries that cannot be read; the others are usable.
    ///
    /// # Errors
    ///
    /// The store fails, or its schema lacks the [kinds](crate::schema::add_kinds).
    pub async fn open(store: Arc<dyn Store>) -> Result<(Self, Vec<Damaged>), StoreError> {
        let service = Self {
            flavors: Table::new(Arc::clone(&store))?,
            images: Table::new(Arc::clone(&store))?,
            store,
            current: RwLock::default(),
            tenancy: OnceLock::new(),
        };
        let damaged = service.refresh().await?;
        Ok((service, damaged))
    }

    /// Refuses images in a project that does not exist or is being deleted, and adds an entry to the audit log for every change from now
    /// on: also for each entry that a loaded file changes. Without it neither is done. Only the first call has an effect.
    pub fn set_tenancy(&self, tenancy: Tenancy) {
        // A catalog that several façades of a process share keeps the first one: all of them are on the same store.
        let _ = self.tenancy.set(tenancy);
    }

    /// Reads the store again, for a process that did not load the file itself. Returns the entries that cannot be read.
    ///
    /// # Errors
    ///
    /// The store fails. The current catalog is unchanged.
    pub async fn refresh(&self) -> Result<Vec<Damaged>, StoreError> {
        let stored = self.read_stored().await?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let revisions = stored.revisions;
        let written = |id: &EntryId| revisions.get(id).copied();
        current.replace(stored.read_at, stored.catalog, written);
        Ok(stored.damaged)
    }

    /// Applies one committed image to the current catalog, without reading the others.
    pub(super) fn put_current(&self, written_at: Revision, image: Image) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.put(written_at, image);
    }

    /// Reads a flavor and an image from the store, so that nothing is refused because of an older version of them, or because this
    /// process does not know them yet. Two reads by key, whatever the size of the catalog.
    ///
    /// # Errors
    ///
    /// The store fails. An entry that cannot be read stays as it is known.
    pub async fn renew(&self, flavor: &FlavorId, image: &ImageId) -> Result<(), StoreError> {
        self.renew_flavor(flavor).await?;
        self.renew_image(image).await
    }

    pub(crate) async fn renew_flavor(&self, id: &FlavorId) -> Result<(), StoreError> {
        let found = readable(self.flavors.get(&Key::new(id.as_str())?).await)?;
        if let Some(found) = found.flatten().filter(|found| found.value.id == *id) {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            current.put_flavor(found.revision, found.value);
        }
        Ok(())
    }

    pub(crate) async fn renew_image(&self, id: &ImageId) -> Result<(), StoreError> {
        let known = self.current().image(id).is_some();
        let found = readable(self.images.get(&Key::new(id.as_str())?).await)?;
        match found {
            Some(Some(found)) if found.value.id == *id => {
                self.put_current(found.revision, found.value);
            }
            // It was known before the read, so it does not exist any more.
            Some(None) if known => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                current.remove(id);
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Applies the changes of other processes until the store fails, and returns that error.
    ///
    /// The façade runs it. In a process that does not, the calls that check a request read
    /// what they need from the store, and lists are as new as the store with [`read_flavors`](Self::read_flavors) and
    /// [`read_images`](Self::read_images).
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
                // Tenants' images are many and are written one by one.
                Some(images) => images
                    .into_iter()
                    .for_each(|image| self.put_current(image.revision, image.value)),
                // A file was loaded, or a record cannot be read. That is rare, so everything is read again.
                None => drop(self.refresh().await?),
            }
        }
    }

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
    /// changes; a text that was loaded before changes nothing.
    ///
    /// # Errors
    ///
    /// The file has a problem, or the store fails. On any error the current catalog is unchanged.
    pub async fn load(&self, text: &str) -> Result<Vec<Change>, LoadError> {
        let file = CatalogFile::parse(text).map_err(LoadError::Refused)?;
        for _ in 0..ATTEMPTS {
            let stored = self.read_stored().await?;
            let reload = stored
                .catalog
                .reload_over(&file, &stored.unread)
                .map_err(LoadError::Refused)?;
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

    /// Returns the current catalog without a check of permissions, for planners. Not public for that reason.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).catalog()
    }

    /// Reads the catalog from the store, and returns the offered flavors: those of this moment, whether or not this process follows.
    ///
    /// # Errors
    ///
    /// The principal may not list flavors, or the store fails.
    pub async fn read_flavors(&self, principal: &Principal) -> Result<Vec<Flavor>, ReadError> {
        principal.authorize_within(Verb::List, Resource::Flavors, &Scope::Global)?;
        self.refresh().await?;
        Ok(self.flavors(principal)?)
    }

    /// Reads the catalog from the store, and returns the offered images that are visible to the principal: those of this moment, whether
    /// or not this process follows.
    ///
    /// # Errors
    ///
    /// The principal may not list images anywhere, or the store fails.
    pub async fn read_images(&self, principal: &Principal) -> Result<Vec<Image>, ReadError> {
        principal.authorize_within(Verb::List, Resource::Images, &Scope::Global)?;
        self.refresh().await?;
        Ok(self.images(principal)?)
    }

    /// Returns a flavor, retired or not, from the store if this process does not know it. `None` if it does not exist or is not visible to
    /// the principal. What servers rely on never changes under an id, so a known version is as good as the stored one for that.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn known_flavor(
        &self,
        principal: &Principal,
        id: &FlavorId,
    ) -> Result<Option<Flavor>, StoreError> {
        if let Some(flavor) = self.flavor(principal, id) {
            return Ok(Some(flavor));
        }
        self.renew_flavor(id).await?;
        Ok(self.flavor(principal, id))
    }

    /// Returns the offered flavors, in the order of their ids, as this process has last read or followed them.
    ///
    /// # Errors
    ///
    /// The principal may not list flavors.
    pub fn flavors(&self, principal: &Principal) -> Result<Vec<Flavor>, Refused> {
        principal.authorize_within(Verb::List, Resource::Flavors, &Scope::Global)?;
        let catalog = self.current();
        let offered = catalog.flavors().filter(|flavor| !flavor.retired);
        Ok(offered.cloned().collect())
    }

    /// Returns a flavor as this process has last read or followed it, retired or not. `None` if it does not exist or is not visible to the principal.
    pub fn flavor(&self, principal: &Principal, id: &FlavorId) -> Option<Flavor> {
        let scope = Scope::Global;
        let visible = principal.authorize_within(Verb::Read, Resource::Flavors, &scope);
        visible
            .ok()
            .and_then(|()| self.current().flavor(id).cloned())
    }

    /// Returns the offered images as this process has last read or followed them, in the order of their ids: the global ones, and those of the organizations in which the
    /// principal may list images.
    ///
    /// # Errors
    ///
    /// The principal may not list images anywhere.
    pub fn images(&self, principal: &Principal) -> Result<Vec<Image>, Refused> {
        principal.authorize_within(Verb::List, Resource::Images, &Scope::Global)?;
        let catalog = self.current();
        let offered = catalog.images().filter(|image| !image.retired);
        let visible = offered.filter(|image| is_visible(principal, Verb::List, image));
        Ok(visible.cloned().collect())
    }

    /// Returns an image as this process has last read or followed it, retired or not. `None` if it does not exist or is not visible to the principal.
    pub fn image(&self, principal: &Principal, id: &ImageId) -> Option<Image> {
        let catalog = self.current();
        let image = catalog.image(id);
        image
            .filter(|image| is_visible(principal, Verb::Read, image))
            .cloned()
    }

    async fn read_stored(&self) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        let flavors = self.flavors.list_all(&self.flavors.all()).await?;
        stored.read_at = flavors.revision;
        stored.catalog.flavors = stored.take(&self.flavors, flavors);
        let images = self.images.list_all(&self.images.all()).await?;
        stored.catalog.images = stored.take(&self.images, images);
        Ok(stored)
    }

    async fn write(&self, stored: &Stored, reload: &Reload) -> Result<(), StoreError> {
        for changes in reload.changes.chunks(BATCH) {
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

/// Returns `None` for a record that cannot be read.
fn readable<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether an image is global, or belongs to an organization in which the principal has the permission on images.
fn is_visible(principal: &Principal, verb: Verb, image: &Image) -> bool {
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
    let key = Key::new(entry.id().to_string())?;
    let entry_id = entry.id().clone().into();
    if let Some(newer) = stored.newer.get(&entry_id) {
        return Err(newer.clone().into());
    }
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

/// The content of the store.
#[derive(Default)]
struct Stored {
    catalog: Catalog,
    /// The revision up to which every commit is included.
    read_at: Revision,
    /// The revisions of all entries whose id can be read, damaged or not.
    revisions: BTreeMap<EntryId, Revision>,
    /// The stored forms of the entries that can be read.
    bases: BTreeMap<EntryId, Base>,
    damaged: Vec<Damaged>,
    /// The entries that a newer version wrote, and that this one does not understand.
    newer: BTreeMap<EntryId, Damaged>,
    /// The ids of the damaged entries, as far as they are valid ids.
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
                self.bases.insert(id.clone().into(), found.base());
                entries.insert(id, found.value);
            } else {
                let id = table.id(&found.key);
                let reason = "its id does not match its key";
                damaged.push(Damaged::new(id, found.revision, reason));
            }
        }
        for damaged in &damaged {
            if let Ok(id) = damaged.id.key.as_str().parse::<T::Id>() {
                self.revisions.insert(id.clone().into(), damaged.revision);
                self.unread.insert(id.clone().into());
                if damaged.is_newer {
                    self.newer.insert(id.into(), damaged.clone());
                }
            }
        }
        self.damaged.append(&mut damaged);
        entries
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
