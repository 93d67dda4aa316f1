//! The catalog of a process: following what others write to the store, and reads with a principal.
//!
//! Every entry is a record. [`load`](super::load) writes them.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use fleetwright_identity::{Principal, Refused, Resource, Scope, Tenancy, Verb};
use fleetwright_store::{
    Change as Written, Damaged, Interest, Key, Revision, Store, StoreError, Table,
};

use super::{Catalog, EntryId, Flavor, Image, current::CurrentCatalog, stored::Stored};
use crate::ids::{FlavorId, ImageId};

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
    pub(super) flavors: Table<Flavor>,
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
        Ok(self.read_again().await?.damaged)
    }

    /// Reads the store again, and returns what it has beside the current catalog.
    pub(super) async fn read_again(&self) -> Result<Stored, StoreError> {
        let mut stored = self.read_stored().await?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let written = |id: &EntryId| stored.revisions.get(id).copied();
        let catalog = std::mem::take(&mut stored.catalog);
        current.replace(stored.read_at, catalog, written);
        Ok(stored)
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

    /// Returns the current catalog without a check of permissions, for planners. Not public for that reason.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).catalog()
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
pub(super) fn is_visible(principal: &Principal, verb: Verb, image: &Image) -> bool {
    let scope = image.visibility.scope();
    principal
        .authorize_within(verb, Resource::Images, &scope)
        .is_ok()
}
