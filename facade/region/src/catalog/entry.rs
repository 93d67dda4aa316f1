//! What flavors and images have in common: what reloading and storing need of them.

use std::fmt;

use fleetwright_store::Document;

use crate::ids::{FlavorId, ImageId};

/// An entry of the catalog by its id.
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

    /// Fields that servers rely on: an entry that differs in one of them is another one.
    const IMMUTABLE: &'static [&'static str];

    fn id(&self) -> &Self::Id;

    fn retired(&mut self) -> &mut bool;

    /// Whether files say that it is there, or that it is not.
    fn is_from_file(&self) -> bool;

    /// The fields in which another entry of the same id differs, but for being retired.
    fn differences(&self, other: &Self) -> Vec<&'static str>;
}

/// The names of what is true.
pub(super) fn those(differs: &[(&'static str, bool)]) -> Vec<&'static str> {
    let those = differs.iter().filter(|(_, differs)| *differs);
    those.map(|(name, _)| *name).collect()
}
