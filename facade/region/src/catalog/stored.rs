//! All entries of the catalog as the store has them.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_store::{Base, Damaged, Revision, StoreError, Table, TypedPage};

use super::{Catalog, CatalogService, EntryId, entry::Entry};

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
    pub(super) damaged: Vec<Damaged>,
    /// The entries that a newer version wrote, and that this one does not understand.
    pub(super) newer: BTreeMap<EntryId, Damaged>,
    /// The ids of the damaged entries, as far as they are valid ids.
    pub(super) unread: BTreeSet<EntryId>,
}

impl CatalogService {
    /// Reads every entry.
    pub(super) async fn read_stored(&self) -> Result<Stored, StoreError> {
        let mut stored = Stored::default();
        let flavors = self.flavors.list_all(&self.flavors.all()).await?;
        stored.read_at = flavors.revision;
        stored.catalog.flavors = stored.take(&self.flavors, flavors);
        let images = self.images.list_all(&self.images.all()).await?;
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
