//! What follows when a file is loaded over what there is. Pure: the keeper stores what comes of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{CatalogFile, EntryId, Flavor, Image, entry::Entry, file::Written};
use crate::{
    file::{Problem, Problems},
    ids::{FlavorId, ImageId},
};

/// Every flavor and image that there ever was, the retired ones among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pub(super) flavors: BTreeMap<FlavorId, Flavor>,
    pub(super) images: BTreeMap<ImageId, Image>,
}

/// What loading a file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It is new.
    Added(EntryId),
    /// It differs in these fields.
    Changed(EntryId, Vec<&'static str>),
    /// It is not in the file, and no longer offered.
    Retired(EntryId),
    /// It was retired, and is in the file again. These fields differ from what it had.
    Returned(EntryId, Vec<&'static str>),
    /// What was stored of it could not be read, and the file says what it is.
    Repaired(EntryId),
}

impl Change {
    /// Which entry it is about.
    pub fn id(&self) -> &EntryId {
        match self {
            Self::Added(id)
            | Self::Changed(id, _)
            | Self::Retired(id)
            | Self::Returned(id, _)
            | Self::Repaired(id) => id,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(id) => write!(f, "{id} is new"),
            Self::Changed(id, fields) => write!(f, "{id} has another {}", fields.join(", ")),
            Self::Retired(id) => write!(f, "{id} is retired: it is no longer in the file"),
            Self::Returned(id, fields) if fields.is_empty() => write!(f, "{id} is offered again"),
            Self::Returned(id, fields) => {
                write!(
                    f,
                    "{id} is offered again, with another {}",
                    fields.join(", ")
                )
            }
            Self::Repaired(id) => write!(f, "{id} was damaged and is as the file has it"),
        }
    }
}

/// A catalog and how it came of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// What is in force once this is stored.
    pub catalog: Catalog,
    /// What is new in it.
    pub changes: Vec<Change>,
}

impl Catalog {
    /// The catalog after a file. Nothing is ever taken out of it. A file that changes what servers rely on is refused,
    /// with every such change.
    pub fn reload(&self, file: &CatalogFile) -> Result<Reload, Problems> {
        self.reload_over(file, &BTreeSet::new())
    }

    /// As [`reload`](Self::reload), where what was stored of some entries could not be read.
    pub(super) fn reload_over(
        &self,
        file: &CatalogFile,
        damaged: &BTreeSet<EntryId>,
    ) -> Result<Reload, Problems> {
        let mut merge = Merge {
            damaged,
            changes: Vec::new(),
            problems: Vec::new(),
        };
        let catalog = Self {
            flavors: merge.all(&self.flavors, &file.flavors),
            images: merge.all(&self.images, &file.images),
        };
        match Problems::of(merge.problems) {
            Some(problems) => Err(problems),
            None => Ok(Reload {
                catalog,
                changes: merge.changes,
            }),
        }
    }

    /// A flavor, retired or not. It is not asked whether anybody may see it.
    pub fn flavor(&self, id: &FlavorId) -> Option<&Flavor> {
        self.flavors.get(id)
    }

    /// An image, retired or not. It is not asked whether anybody may see it.
    pub fn image(&self, id: &ImageId) -> Option<&Image> {
        self.images.get(id)
    }

    /// All flavors, retired or not, by id.
    pub fn flavors(&self) -> impl Iterator<Item = &Flavor> {
        self.flavors.values()
    }

    /// All images, retired or not, by id.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.images.values()
    }
}

struct Merge<'d> {
    damaged: &'d BTreeSet<EntryId>,
    changes: Vec<Change>,
    problems: Vec<Problem>,
}

impl Merge<'_> {
    fn all<T: Entry>(
        &mut self,
        before: &BTreeMap<T::Id, T>,
        file: &BTreeMap<T::Id, Written<T>>,
    ) -> BTreeMap<T::Id, T> {
        let mut after = before.clone();
        for (id, entry) in &mut after {
            let left_out = entry.is_from_file() && !file.contains_key(id);
            let retired = entry.retired();
            if left_out && !*retired {
                *retired = true;
                self.changes.push(Change::Retired(id.clone().into()));
            }
        }
        for (id, written) in file {
            let known: EntryId = id.clone().into();
            match before.get(id) {
                Some(entry) if !entry.is_from_file() => {
                    let what = "a tenant has it already: want another id";
                    let place = format!("id of {known}");
                    self.problems
                        .push(Problem::new(written.line, 1, &place, what));
                }
                Some(entry) => self.compare(known, entry.clone(), written),
                None if self.damaged.contains(&known) => {
                    self.changes.push(Change::Repaired(known));
                }
                None => self.changes.push(Change::Added(known)),
            }
            after.insert(id.clone(), written.entry.clone());
        }
        after
    }

    fn compare<T: Entry>(&mut self, id: EntryId, mut before: T, written: &Written<T>) {
        let differences = before.differences(&written.entry);
        for field in differences
            .iter()
            .filter(|field| T::IMMUTABLE.contains(field))
        {
            let (was, is) = (shown(&before, field), shown(&written.entry, field));
            let what = format!(
                "servers rely on {was}, and {is} stands here: \
                 put it back, or give what is new an id of its own"
            );
            let place = format!("{field} of {id}");
            self.problems
                .push(Problem::new(written.line, 1, &place, what));
        }
        if *before.retired() {
            self.changes.push(Change::Returned(id, differences));
        } else if !differences.is_empty() {
            self.changes.push(Change::Changed(id, differences));
        }
    }
}

/// A field of an entry, as JSON has it.
fn shown<T: Entry>(entry: &T, field: &str) -> String {
    let value = serde_json::to_value(entry).ok();
    let value = value.and_then(|value| value.get(field).cloned());
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
