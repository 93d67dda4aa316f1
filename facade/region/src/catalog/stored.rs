//! All entries of the catalog as the store has them.

use std::collections::BTreeMap;

use fleetwright_store::{Base, Damaged, Partial, Revision, StoreError, Table, TypedPage};

use super::{Catalog, CatalogService, EntryId, Flavor, Image, entry::Entry, reload::Unread};

/// The content of the store.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) catalog: Catalog,
    /// The revision up to which every commit is included.
    pub(super) read_at: Revision,
    /// The revisions of all entries whose id can be read, damaged or not.
    pub(super) revisions: BTreeMap<EntryId, Revision>,
    /// The stored forms of the entries that can be read.
    pub(super) bases: BTreeMap<EntryId, Base>,
    /// The entries that cannot be read, also those of a newer version.
    pub(super) damaged: Vec<Damaged>,
    /// What can be shown of the flavors of a newer version.
    pub(super) newer_flavors: Vec<Partial<Flavor>>,
    /// What can be shown of the images of a newer version.
    pub(super) newer_images: Vec<Partial<Image>>,
}

impl CatalogService {
    /// Reads every entry.
    pub(super) async fn read_stored(&self) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        let mut flavors = self.flavors.list_all(&self.flavors.all()).await?;
        stored.read_at = flavors.revision;
        stored.newer_flavors = shown(&mut flavors);
        stored.catalog.flavors = stored.take(&self.flavors, flavors);
        let mut images = self.images.list_all(&self.images.all()).await?;
        stored.newer_images = shown(&mut images);
        stored.catalog.images = stored.take(&self.images, images);
        Ok(stored)
    }
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
                let unread = if damaged.is_newer {
                    Unread::Newer
                } else {
                    Unread::Damaged
                };
                self.catalog.unread.insert(id.into(), unread);
            }
        }
        self.damaged.append(&mut damaged);
        entries
    }
}

/// Takes what can be shown of the entries of a newer version. They stay among the damaged ones.
fn shown<T: Entry>(page: &mut TypedPage<T>) -> Vec<Partial<T>> {
    let newer = std::mem::take(&mut page.newer).into_iter();
    newer.filter(is_of_its_key).collect()
}

/// Returns whether an entry has the id that its key names.
pub(super) fn is_of_its_key<T: Entry>(shown: &Partial<T>) -> bool {
    shown.key.as_str() == shown.value.id().to_string()
}
