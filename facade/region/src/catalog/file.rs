//! The catalog as people write it.

use std::collections::BTreeMap;

use super::{Flavor, Image, entry::Entry};
use crate::{
    file::{Fields, Problems, parsed, read_document},
    ids::{FlavorId, ImageId},
};

/// What a file says, and in which lines. It is right in itself; whether it may follow what there is, is asked by
/// [`Catalog::reload`](super::Catalog::reload).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogFile {
    pub(super) flavors: BTreeMap<FlavorId, Written<Flavor>>,
    pub(super) images: BTreeMap<ImageId, Written<Image>>,
}

/// An entry, and the line it begins in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written<T> {
    pub(super) line: usize,
    pub(super) entry: T,
}

impl CatalogFile {
    /// Reads a file, or tells everything that is wrong with it.
    ///
    /// A file without flavors or without images is refused: more often than not it was cut off, and it would retire
    /// everything.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        read_document(text, |fields| Self {
            flavors: read_all(fields, "flavor", Flavor::read),
            images: read_all(fields, "image", Image::read),
        })
    }

    /// The flavors.
    pub fn flavors(&self) -> impl Iterator<Item = &Flavor> {
        self.flavors.values().map(|written| &written.entry)
    }

    /// The images.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values().map(|written| &written.entry)
    }
}

type Read<T> = fn(&mut Fields<'_, '_>, Option<<T as Entry>::Id>) -> Option<T>;

fn read_all<T: Entry<Id: std::str::FromStr<Err: std::fmt::Display>> + Named>(
    fields: &mut Fields<'_, '_>,
    what: &'static str,
    read: Read<T>,
) -> BTreeMap<T::Id, Written<T>> {
    let tables = fields.tables(what);
    if tables.is_empty() {
        fields.missing(what, &format!("at least one [[{what}]]"));
    }
    let mut entries = BTreeMap::new();
    let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
    for mut table in tables {
        let line = table.line();
        let id = table.required("id", |value| parsed::<T::Id>("an id in quotes", value));
        if let Some(id) = &id {
            table.about(format!("{what} {id}"));
            if let Some(first) = ids.insert(id.clone(), line) {
                table.wrong_field("id", format!("the {what} in line {first} has it too"));
            }
        }
        let entry = read(&mut table, id);
        if let Some(entry) = entry {
            if let Some(first) = names.insert(entry.name().to_owned(), line) {
                table.wrong_field("name", format!("the {what} in line {first} has it too"));
            }
            entries.insert(entry.id().clone(), Written { line, entry });
        }
        table.finish();
    }
    entries
}

/// What people call it.
trait Named {
    fn name(&self) -> &str;
}

impl Named for Flavor {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Image {
    fn name(&self) -> &str {
        &self.name
    }
}
