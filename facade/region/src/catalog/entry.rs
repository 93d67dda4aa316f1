//! The common interface of flavors and images, for loading and storing them.

use std::fmt;

use fleetwright_store::Document;

use crate::ids::{FlavorId, ImageId};

/// The id of a catalog entry, with its kind. `Display` shows both: `flavor small`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryId {
    /// A flavor.
    Flavor(FlavorId),
    /// An image.
    Image(ImageId),
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flavor(id) => write!(f, "flavor {id}"),
            Self::Image(id) => write!(f, "image {id}"),
        }
    }
}

impl From<FlavorId> for EntryId {
    fn from(id: FlavorId) -> Self {
        Self::Flavor(id)
    }
}

impl From<ImageId> for EntryId {
    fn from(id: ImageId) -> Self {
        Self::Image(id)
    }
}

/// A flavor or an image.
pub(super) trait Entry: Document + Clone + Eq {
    type Id: Clone + Ord + fmt::Display + Into<EntryId>;

    /// The fields that servers rely on. They never change under an id.
    const IMMUTABLE: &'static [&'static str];

    fn id(&self) -> &Self::Id;

    fn retired_mut(&mut self) -> &mut bool;

    /// Returns whether the entry comes from the catalog file, so that a file can change or retire it.
    fn is_from_file(&self) -> bool;

    /// Returns the names of the fields that differ from another entry of the same id. `retired` does not count.
    fn differences(&self, other: &Self) -> Vec<&'static str>;
}

/// Returns the names of the fields that differ.
pub(super) fn differing(fields: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = fields.iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| *name).collect()
}
