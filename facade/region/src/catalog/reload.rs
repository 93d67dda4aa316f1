//! Loading a file over the current catalog. Pure: [`CatalogService`](super::CatalogService) stores the result.

use std::{collections::BTreeMap, fmt};

use super::{CatalogFile, EntryId, Flavor, Image, entry::Entry, file::Located};
use crate::{
    file::{Problem, Problems},
    ids::{FlavorId, ImageId},
};

/// Every flavor and image that was ever added, including the retired ones.
///
/// ```
/// use fleetwright_region::catalog::{Catalog, CatalogFile};
///
/// # const TEXT: &str = include_str!("../../catalog.example.toml");
/// let file = CatalogFile::parse(TEXT)?;
/// let reload = Catalog::default().reload(&file)?;
/// assert_eq!(reload.changes.len(), file.flavors().count() + file.images().count());
/// // The same file again changes nothing.
/// assert!(reload.catalog.reload(&file)?.changes.is_empty());
/// # Ok::<(), fleetwright_region::file::Problems>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pub(super) flavors: BTreeMap<FlavorId, Flavor>,
    pub(super) images: BTreeMap<ImageId, Image>,
    /// The stored entries that cannot be read, as far as their ids can.
    pub(super) unread: BTreeMap<EntryId, Unread>,
}

/// Why a stored entry cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It does not match its type: the entry of the file replaces it.
    Damaged,
    /// A newer version of this program wrote it: it stays as it is.
    Newer,
}

/// One change of the catalog by loading a file. `Display` is one line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The entry is new.
    Added(EntryId),
    /// These fields of the entry changed.
    Changed(EntryId, Vec<&'static str>),
    /// The entry is not in the file, and is no longer offered.
    Retired(EntryId),
    /// The entry was retired and is in the file again. These fields changed.
    Returned(EntryId, Vec<&'static str>),
    /// The stored entry could not be read, and is replaced by the file's.
    Repaired(EntryId),
    /// A newer version of this program wrote the stored entry, and this one does not understand it: the file does not change it.
    LeftAlone(EntryId),
}

impl Change {
    /// Returns the entry that changes.
    pub fn id(&self) -> &EntryId {
        match self {
            Self::Added(id)
            | Self::Changed(id, _)
            | Self::Retired(id)
            | Self::Returned(id, _)
            | Self::Repaired(id)
            | Self::LeftAlone(id) => id,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(id) => write!(f, "{id} was added"),
            Self::Changed(id, fields) => write!(f, "{id} changed: {}", fields.join(", ")),
            Self::Retired(id) => write!(f, "{id} is retired: it is no longer in the file"),
            Self::Returned(id, fields) if fields.is_empty() => write!(f, "{id} is offered again"),
            Self::Returned(id, fields) => {
                write!(f, "{id} is offered again, changed: {}", fields.join(", "))
            }
            Self::Repaired(id) => write!(f, "{id} was unreadable and is repaired from the file"),
            Self::LeftAlone(id) => write!(
                f,
                "{id} is of a newer version of this program and stays as it is: upgrade this program"
            ),
        }
    }
}

/// The result of loading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// The new catalog.
    pub catalog: Catalog,
    /// Its differences from the catalog before.
    pub changes: Vec<Change>,
}

impl Catalog {
    /// Returns the catalog after loading a file. No entry is ever removed: one that is missing from the file is retired.
    ///
    /// # Errors
    ///
    /// Every field that servers rely on and that the file changes: `architecture`, `baremetal` and `gpu` of a flavor,
    /// `architecture` and `virtualization` of an image. Also every id that an image of a tenant has.
    ///
    /// An entry that a newer version of this program wrote is no error, so that an older process starts during an upgrade.
    pub fn reload(&self, file: &CatalogFile) -> Result<Reload, Problems> {
        let mut merge = Merge {
            unread: self.unread.clone(),
            changes: Vec::new(),
            problems: Vec::new(),
        };
        let catalog = Self {
            flavors: merge.all(&self.flavors, &file.flavors),
            images: merge.all(&self.images, &file.images),
            unread: merge.unread,
        };
        match Problems::from_list(merge.problems) {
            Some(problems) => Err(problems),
            None => Ok(Reload {
                catalog,
                changes: merge.changes,
            }),
        }
    }

    /// Returns whether an entry is stored, readable or not.
    pub(crate) fn has(&self, id: &EntryId) -> bool {
        let is_readable = match id {
            EntryId::Flavor(id) => self.flavors.contains_key(id),
            EntryId::Image(id) => self.images.contains_key(id),
        };
        is_readable || self.unread.contains_key(id)
    }

    /// Returns a flavor, retired or not, without a check of permissions.
    pub fn flavor(&self, id: &FlavorId) -> Option<&Flavor> {
        self.flavors.get(id)
    }

    /// Returns an image, retired or not, without a check of permissions.
    pub fn image(&self, id: &ImageId) -> Option<&Image> {
        self.images.get(id)
    }

    /// Returns all flavors, retired or not, in the order of their ids.
    pub fn flavors(&self) -> impl Iterator<Item = &Flavor> {
        self.flavors.values()
    }

    /// Returns all images, retired or not, in the order of their ids.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values()
    }
}

struct Merge {
    unread: BTreeMap<EntryId, Unread>,
    changes: Vec<Change>,
    problems: Vec<Problem>,
}

impl Merge {
    fn all<T: Entry>(
        &mut self,
        before: &BTreeMap<T::Id, T>,
        file: &BTreeMap<T::Id, Located<T>>,
    ) -> BTreeMap<T::Id, T> {
        let mut after = before.clone();
        for (id, entry) in &mut after {
            let left_out = entry.is_from_file() && !file.contains_key(id);
            let retired = entry.retired_mut();
            if left_out && !*retired {
                *retired = true;
                self.changes.push(Change::Retired(id.clone().into()));
            }
        }
        for (id, located) in file {
            let known: EntryId = id.clone().into();
            match before.get(id) {
                Some(entry) if !entry.is_from_file() => {
                    let what = "a tenant's image has this id: expected another id";
                    let place = format!("id of {known}");
                    self.problems
                        .push(Problem::new(located.line, 1, &place, what));
                }
                Some(entry) => self.compare(known, entry.clone(), located),
                None => match self.unread.get(&known) {
                    Some(Unread::Newer) => {
                        self.changes.push(Change::LeftAlone(known));
                        continue;
                    }
                    Some(Unread::Damaged) => {
                        self.unread.remove(&known);
                        self.changes.push(Change::Repaired(known));
                    }
                    None => self.changes.push(Change::Added(known)),
                },
            }
            after.insert(id.clone(), located.entry.clone());
        }
        after
    }

    fn compare<T: Entry>(&mut self, id: EntryId, mut before: T, located: &Located<T>) {
        let differences = before.differences(&located.entry);
        for field in differences
            .iter()
            .filter(|field| T::IMMUTABLE.contains(field))
        {
            let (was, is) = (
                field_json(&before, field),
                field_json(&located.entry, field),
            );
            let what = format!(
                "it cannot change from {was} to {is} because servers rely on it: \
                 restore {was}, or add an entry with another id"
            );
            let place = format!("{field} of {id}");
            self.problems
                .push(Problem::new(located.line, 1, &place, what));
        }
        if *before.retired_mut() {
            self.changes.push(Change::Returned(id, differences));
        } else if !differences.is_empty() {
            self.changes.push(Change::Changed(id, differences));
        }
    }
}

/// Returns a field of an entry as JSON, for a message.
fn field_json<T: Entry>(entry: &T, field: &str) -> String {
    let value = serde_json::to_value(entry).ok();
    let value = value.and_then(|value| value.get(field).cloned());
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
