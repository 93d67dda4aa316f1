//! The catalog file that operators write.

use std::collections::BTreeMap;

use super::{Flavor, Image, entry::Entry};
use crate::{
    file::{Fields, Problems, parse_text, read_document},
    ids::{FlavorId, ImageId},
};

/// A catalog file that was checked by itself. Whether it may replace the current catalog is checked by
/// [`Catalog::reload`](super::Catalog::reload).
///
/// ```
/// use fleetwright_region::catalog::CatalogFile;
///
/// let file = CatalogFile::parse(r#"
///     [[flavor]]
///     id = "small"
///     cpus = 2
///     memory = "4 GiB"
///     disk = "20 GB"
///     architecture = "x86_64"
///
///     [[image]]
///     id = "debian-13"
///     architecture = "x86_64"
///     size = "10 GiB"
///     virtualization = "any"
///     visibility = "global"
///     os = { family = "debian", distro = "debian", version = "13" }
/// "#)?;
/// assert_eq!((file.flavors().count(), file.images().count()), (1, 1));
///
/// let problems = CatalogFile::parse("[[flavor]]\nid = 7").unwrap_err();
/// for problem in problems.iter() {
///     eprintln!("{problem}"); // line 2, column 6: id of flavor 1: ...
/// }
/// # Ok::<(), fleetwright_region::file::Problems>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogFile {
    pub(super) flavors: BTreeMap<FlavorId, Located<Flavor>>,
    pub(super) images: BTreeMap<ImageId, Located<Image>>,
}

/// An entry with the line in which it begins, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located<T> {
    pub(super) line: usize,
    pub(super) entry: T,
}

impl CatalogFile {
    /// Parses and checks a file.
    ///
    /// # Errors
    ///
    /// Every problem of the file, with line and column. A file without flavors or without images is refused too: it is
    /// probably truncated, and would retire every entry.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        read_document(text, |fields| Self {
            flavors: read_all(fields, "flavor", Flavor::read),
            images: read_all(fields, "image", Image::read),
        })
    }

    /// Returns the flavors in the order of their ids.
    pub fn flavors(&self) -> impl Iterator<Item = &Flavor> {
        self.flavors.values().map(|located| &located.entry)
    }

    /// Returns the images in the order of their ids.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values().map(|located| &located.entry)
    }
}

type Read<T> = fn(&mut Fields<'_, '_>, Option<<T as Entry>::Id>) -> Option<T>;

fn read_all<T: Entry<Id: std::str::FromStr<Err: std::fmt::Display>> + Named>(
    fields: &mut Fields<'_, '_>,
    what: &'static str,
    read: Read<T>,
) -> BTreeMap<T::Id, Located<T>> {
    let tables = fields.tables(what);
    if tables.is_empty() {
        fields.missing(what, &format!("at least one [[{what}]]"));
    }
    let mut entries = BTreeMap::new();
    let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
    for mut table in tables {
        let line = table.line();
        let id = table.required("id", |value| parse_text::<T::Id>("an id in quotes", value));
        if let Some(id) = &id {
            table.set_place(format!("{what} {id}"));
            if let Some(first) = ids.insert(id.clone(), line) {
                table.report_field("id", format!("the {what} in line {first} has the same id"));
            }
        }
        let entry = read(&mut table, id);
        if let Some(entry) = entry {
            if let Some(first) = names.insert(entry.name().to_owned(), line) {
                table.report_field(
                    "name",
                    format!("the {what} in line {first} has the same name"),
                );
            }
            entries.insert(entry.id().clone(), Located { line, entry });
        }
        table.finish();
    }
    entries
}

/// The display name of an entry, which is unique among entries of its kind.
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
