//! The catalog in force in one process, brought up to date by whole reads and by single writes, in whatever order they come.

use std::{collections::BTreeMap, sync::Arc};

use fleetwright_store::Revision;

use super::{Catalog, Image};
use crate::ids::ImageId;

/// The catalog in force. Nothing in it ever becomes older.
#[derive(Debug, Default)]
pub(super) struct CurrentCatalog {
    catalog: Arc<Catalog>,
    /// Everything up to here is in it.
    read_at: Revision,
    /// The images in it that were written after that, and when.
    newer: BTreeMap<ImageId, Revision>,
}

impl CurrentCatalog {
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    /// Takes a catalog that was read as a whole, with when each image in it was written, unless a later one was. Of what was
    /// written since, the later one counts.
    pub(super) fn replace(
        &mut self,
        read_at: Revision,
        mut catalog: Catalog,
        written: impl Fn(&ImageId) -> Option<Revision>,
    ) {
        if read_at < self.read_at {
            return;
        }
        let mut newer = BTreeMap::new();
        for id in catalog.images.keys() {
            if let Some(written_at) = written(id).filter(|at| *at > read_at) {
                newer.insert(id.clone(), written_at);
            }
        }
        for (id, written_at) in std::mem::take(&mut self.newer) {
            let is_later = written_at > read_at && written(&id) < Some(written_at);
            if let Some(image) = self.catalog.image(&id).filter(|_| is_later) {
                catalog.images.insert(id.clone(), image.clone());
                newer.insert(id, written_at);
            }
        }
        (self.catalog, self.read_at, self.newer) = (Arc::new(catalog), read_at, newer);
    }

    /// Takes one image as a commit wrote it, unless a later one is there.
    pub(super) fn put(&mut self, written_at: Revision, image: Image) {
        let known = self.newer.get(&image.id).copied();
        if written_at <= known.unwrap_or(self.read_at) {
            return;
        }
        self.newer.insert(image.id.clone(), written_at);
        let catalog = Arc::make_mut(&mut self.catalog);
        catalog.images.insert(image.id.clone(), image);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::image;

    /// What happens to a store of three images, of which each says in its name when it was written.
    #[derive(Clone, Debug)]
    enum Happens {
        /// One is written, and heard of after so many further events.
        Write(usize, usize),
        /// All are read, some after the moment that the read is dated by, and the answer comes after so many further events.
        Read(u64, usize),
    }

    enum Heard {
        Written(u64, Box<Image>),
        Read(u64, Catalog),
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            (0..3_usize, 0..5_usize).prop_map(|(which, late)| Happens::Write(which, late)),
            (0..4_u64, 0..5_usize).prop_map(|(past, late)| Happens::Read(past, late)),
        ]
    }

    /// When each image was written that is in force.
    fn dates(current: &CurrentCatalog) -> BTreeMap<String, u64> {
        let catalog = current.catalog();
        let images = catalog.images();
        let date = |image: &Image| (image.id.to_string(), image.name.parse().unwrap());
        images.map(date).collect()
    }

    proptest! {
        #[test]
        fn nothing_becomes_older_and_nothing_that_was_heard_is_forgotten(
            story in prop::collection::vec(happens(), 1..40),
        ) {
            let (mut current, mut stored) = (CurrentCatalog::default(), BTreeMap::new());
            let mut later: Vec<(usize, Heard)> = Vec::new();
            let mut revision = 0;
            for (step, event) in story.iter().enumerate() {
                match event {
                    Happens::Write(which, late) => {
                        revision += 1;
                        let mut written = image(&format!("i{which}"));
                        written.name = revision.to_string();
                        stored.insert(written.id.clone(), written.clone());
                        later.push((step + late, Heard::Written(revision, Box::new(written))));
                    }
                    Happens::Read(past, late) => {
                        let mut catalog = Catalog::default();
                        catalog.images.clone_from(&stored);
                        let dated = revision.saturating_sub(*past);
                        later.push((step + late, Heard::Read(dated, catalog)));
                    }
                }
                let (now, rest): (Vec<_>, Vec<_>) =
                    later.into_iter().partition(|(due, _)| *due <= step);
                later = rest;
                for (_, heard) in now {
                    let before = dates(&current);
                    match heard {
                        Heard::Read(at, catalog) => {
                            let read = catalog.clone();
                            let written = |id: &ImageId| {
                                let name = &read.image(id)?.name;
                                Some(Revision(name.parse().unwrap()))
                            };
                            let is_taken = Revision(at) >= current.read_at;
                            current.replace(Revision(at), catalog, written);
                            let after = dates(&current);
                            for image in read.images().filter(|_| is_taken) {
                                let date: u64 = image.name.parse().unwrap();
                                prop_assert!(after[image.id.as_str()] >= date);
                            }
                        }
                        Heard::Written(at, image) => {
                            let id = image.id.to_string();
                            current.put(Revision(at), *image);
                            prop_assert!(dates(&current)[&id] >= at);
                        }
                    }
                    let after = dates(&current);
                    for (id, date) in before {
                        prop_assert!(after[&id] >= date, "{id} of {date} became {:?}", after[&id]);
                    }
                }
            }
        }
    }
}
