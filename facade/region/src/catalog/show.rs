//! The catalog for people: as the store has it at this moment, also what a newer version wrote, as far as it is understood.
//!
//! Nothing is decided on what is shown here: a launch is planned with the current catalog, which has only what is understood in full.

use fleetwright_identity::{Principal, Refused, Resource, Scope, Verb};
use fleetwright_store::{Invalid, Key, Partial, StoreError, Table};

use super::{
    CatalogService, Flavor, Image, entry::Entry, service::is_visible, stored::is_of_its_key,
};
use crate::ids::{FlavorId, ImageId};

/// Why the catalog was not read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The principal lacks the permission.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ReadError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// The offered entries of one kind, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryList<T> {
    /// The entries that this version understands.
    pub items: Vec<T>,
    /// What can be shown of the entries that a newer version of this program wrote, and the places that cannot. This version launches
    /// nothing from them.
    pub newer: Vec<Partial<T>>,
}

impl CatalogService {
    /// Reads the catalog from the store, and returns the offered flavors: those of this moment, whether or not this process follows.
    ///
    /// # Errors
    ///
    /// The principal may not list flavors, or the store fails.
    pub async fn read_flavors(
        &self,
        principal: &Principal,
    ) -> Result<EntryList<Flavor>, ReadError> {
        principal.authorize_within(Verb::List, Resource::Flavors, &Scope::Global)?;
        let mut newer = self.read_again().await?.newer_flavors;
        newer.retain(|shown| !shown.value.retired);
        let items = self.flavors(principal)?;
        Ok(EntryList { items, newer })
    }

    /// Reads the catalog from the store, and returns the offered images that are visible to the principal: those of this moment, whether
    /// or not this process follows.
    ///
    /// # Errors
    ///
    /// The principal may not list images anywhere, or the store fails.
    pub async fn read_images(&self, principal: &Principal) -> Result<EntryList<Image>, ReadError> {
        principal.authorize_within(Verb::List, Resource::Images, &Scope::Global)?;
        let mut newer = self.read_again().await?.newer_images;
        newer.retain(|shown| !shown.value.retired && is_shown_to(principal, Verb::List, shown));
        let items = self.images(principal)?;
        Ok(EntryList { items, newer })
    }

    /// Returns what can be shown of a flavor, retired or not: all of it, or as much as this version understands if a newer one wrote it.
    /// Then the result names the places that are not shown, and nothing is launched with it here. `None` if it does not exist or is not
    /// visible to the principal.
    ///
    /// # Errors
    ///
    /// Nothing of it can be shown, or the store fails.
    pub async fn show_flavor(
        &self,
        principal: &Principal,
        id: &FlavorId,
    ) -> Result<Option<Partial<Flavor>>, ReadError> {
        let scope = Scope::Global;
        let read = principal.authorize_within(Verb::Read, Resource::Flavors, &scope);
        match read {
            Ok(()) => Ok(show(&self.flavors, id.as_str()).await?),
            Err(_) => Ok(None),
        }
    }

    /// Returns what can be shown of an image, as [`show_flavor`](Self::show_flavor) does. An image is visible to everyone only if this
    /// version understands that.
    ///
    /// # Errors
    ///
    /// Nothing of it can be shown and the principal may read all images, or the store fails.
    pub async fn show_image(
        &self,
        principal: &Principal,
        id: &ImageId,
    ) -> Result<Option<Partial<Image>>, ReadError> {
        match show(&self.images, id.as_str()).await {
            Ok(shown) => Ok(shown.filter(|shown| is_shown_to(principal, Verb::Read, shown))),
            Err(StoreError::Corrupt { .. } | StoreError::Incompatible { .. })
                if !may_see_all(principal, Verb::Read) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an error is about an image that cannot be read and that is not visible to the principal. For the principal, it does
    /// not exist.
    pub(crate) async fn hides_image(
        &self,
        principal: &Principal,
        id: &ImageId,
        error: &StoreError,
    ) -> bool {
        let is_unreadable = matches!(
            error,
            StoreError::Corrupt { .. } | StoreError::Incompatible { .. }
        );
        is_unreadable && matches!(self.show_image(principal, id).await, Ok(None))
    }
}

async fn show<T: Entry>(table: &Table<T>, id: &str) -> Result<Option<Partial<T>>, StoreError> {
    let shown = table.show(&Key::new(id)?).await?;
    Ok(shown.filter(is_of_its_key))
}

/// Returns whether an image is visible to the principal. Where the record says who sees it in a way that this version does not understand,
/// only those see it who see every image.
fn is_shown_to(principal: &Principal, verb: Verb, shown: &Partial<Image>) -> bool {
    if shown.shows("visibility") {
        return is_visible(principal, verb, &shown.value);
    }
    may_see_all(principal, verb)
}

fn may_see_all(principal: &Principal, verb: Verb) -> bool {
    let all = principal.authorize(verb, Resource::Images, &Scope::Global);
    all.is_ok()
}
