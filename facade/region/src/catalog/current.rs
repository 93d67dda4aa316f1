//! The current catalog of one process, updated by complete reads and by single writes, in any order.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_store::Revision;

use super::{Catalog, EntryId, Flavor, Image};
use crate::ids::ImageId;

/// The current catalog. No entry is ever replaced by an older version of itself.
#[derive(Debug, Default)]
pub(super) struct CurrentCatalog {
    catalog: Arc<Catalog>,
    /// The revision up to which every commit is included.
    read_at: Revision,
    /// The included entries that were written after that, with their revisions.
    newer: BTreeMap<EntryId, Revision>,
}

impl CurrentCatalog {
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    /// Replaces the catalog by a complete read, unless a later one was applied. `written` returns the revision of each entry in
    /// the read. Entries that were written later than the read are kept.
    pub(super) fn replace(
        &mut self,
        read_at: Revision,
        mut catalog: Catalog,
        written: impl Fn(&EntryId) -> Option<Revision>,
    ) {
        if read_at < self.read_at {
            return;
        }
        let mut newer = BTreeMap::new();
        let flavors = catalog.flavors.keys().cloned().map(EntryId::from);
        let images = catalog.images.keys().cloned().map(EntryId::from);
        for id in flavors.chain(images) {
            if let Some(written_at) = written(&id).filter(|at| *at > read_at) {
                newer.insert(id, written_at);
            }
        }
        for (id, written_at) in std::mem::take(&mut self.newer) {
            let is_later = written_at > read_at && written(&id) < Some(written_at);
            if is_later && copy_entry(&self.catalog, &mut catalog, &id) {
                newer.insert(id, written_at);
            }
        }
        (self.catalog, self.read_at, self.newer) = (Arc::new(catalog), read_at, newer);
    }

    /// Applies one committed image, unless a later version of it is included.
    pub(super) fn put(&mut self, written_at: Revision, image: Image) {
        if self.is_news(written_at, &image.id.clone().into()) {
            let catalog = Arc::make_mut(&mut self.catalog);
            catalog.unread.remove(&image.id.clone().into());
            catalog.images.insert(image.id.clone(), image);
        }
    }

    /// Applies one committed flavor, unless a later version of it is included.
    pub(super) fn put_flavor(&mut self, written_at: Revision, flavor: Flavor) {
        if self.is_news(written_at, &flavor.id.clone().into()) {
            let catalog = Arc::make_mut(&mut self.catalog);
            catalog.unread.remove(&flavor.id.clone().into());
            catalog.flavors.insert(flavor.id.clone(), flavor);
        }
    }

    /// Removes an image whose record was deleted. Ids of tenants' images are never used again.
    pub(super) fn remove(&mut self, id: &ImageId) {
        let entry = EntryId::from(id.clone());
        self.newer.remove(&entry);
        let catalog = Arc::make_mut(&mut self.catalog);
        catalog.unread.remove(&entry);
        catalog.images.remove(id);
    }

    /// Returns whether a version of an entry is later than the included one, and remembers it.
    fn is_news(&mut self, written_at: Revision, id: &EntryId) -> bool {
        let known = self.newer.get(id).copied();
        if written_at <= known.unwrap_or(self.read_at) {
            return false;
        }
        self.newer.insert(id.clone(), written_at);
        true
    }
}

/// Copies an entry from one catalog to another, and returns whether it is there.
fn copy_entry(from: &Catalog, to: &mut Catalog, id: &EntryId) -> bool {
    to.unread.remove(id);
    match id {
        EntryId::Flavor(id) => {
            let flavor = from.flavor(id).cloned();
            flavor
                .map(|flavor| to.flavors.insert(id.clone(), flavor))
                .is_some()
        }
        EntryId::Image(id) => {
            let image = from.image(id).cloned();
            image
                .map(|image| to.images.insert(id.clone(), image))
                .is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::image;

    /// An event at a store of three images. The name of each image is the revision that wrote it.
    #[derive(Clone, Debug)]
    enum StoreEvent {
        /// An image is written; the process applies it after that many further events.
        Write(usize, usize),
        /// All images are read, some later than the revision of the read; the process applies the result after that many
        /// further events.
        Read(u64, usize),
    }

    enum Update {
        Written(u64, Box<Image>),
        Read(u64, Catalog),
    }

    fn store_event() -> impl Strategy<Value = StoreEvent> {
        prop_oneof![
            (0..3_usize, 0..5_usize).prop_map(|(which, late)| StoreEvent::Write(which, late)),
            (0..4_u64, 0..5_usize).prop_map(|(past, late)| StoreEvent::Read(past, late)),
        ]
    }

    /// Returns the revision of each image in the current catalog.
    fn revisions(current: &CurrentCatalog) -> BTreeMap<String, u64> {
        let catalog = current.catalog();
        let images = catalog.images();
        let date = |image: &Image| (image.id.to_string(), image.name.parse().unwrap());
        images.map(date).collect()
    }

    proptest! {
        #[test]
        fn no_entry_becomes_older_and_no_update_is_lost(
            events in prop::collection::vec(store_event(), 1..40),
        ) {
            let (mut current, mut stored) = (CurrentCatalog::default(), BTreeMap::new());
            let mut later: Vec<(usize, Update)> = Vec::new();
            let mut revision = 0;
            for (step, event) in events.iter().enumerate() {
                match event {
                    StoreEvent::Write(which, late) => {
                        revision += 1;
                        let mut written = image(&format!("i{which}"));
                        written.name = revision.to_string();
                        stored.insert(written.id.clone(), written.clone());
                        later.push((step + late, Update::Written(revision, Box::new(written))));
                    }
                    StoreEvent::Read(past, late) => {
                        let mut catalog = Catalog::default();
                        catalog.images.clone_from(&stored);
                        let dated = revision.saturating_sub(*past);
                        later.push((step + late, Update::Read(dated, catalog)));
                    }
                }
                let (now, rest): (Vec<_>, Vec<_>) =
                    later.into_iter().partition(|(due, _)| *due <= step);
                later = rest;
                for (_, update) in now {
                    let before = revisions(&current);
                    match update {
                        Update::Read(at, catalog) => {
                            let read = catalog.clone();
                            let written = |id: &EntryId| {
                                let EntryId::Image(id) = id else { return None };
                                let name = &read.image(id)?.name;
                                Some(Revision(name.parse().unwrap()))
                            };
                            let is_taken = Revision(at) >= current.read_at;
                            current.replace(Revision(at), catalog, written);
                            let after = revisions(&current);
                            for image in read.images().filter(|_| is_taken) {
                                let date: u64 = image.name.parse().unwrap();
                                prop_assert!(after[image.id.as_str()] >= date);
                            }
                        }
                        Update::Written(at, image) => {
                            let id = image.id.to_string();
                            current.put(Revision(at), *image);
                            prop_assert!(revisions(&current)[&id] >= at);
                        }
                    }
                    let after = revisions(&current);
                    for (id, date) in before {
                        prop_assert!(after[&id] >= date, "{id} of {date} became {:?}", after[&id]);
                    }
                }
            }
        }
    }
}
