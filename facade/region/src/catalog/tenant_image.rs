//! Images that tenants have made of their servers. They are records beside those of the file, and no file touches them.

use fleetwright_identity::{OrganizationId, Principal, Refused, Resource, Scope, Verb};
use fleetwright_store::{Invalid, Key, StoreError, Transaction, Versioned};

use super::{CatalogService, Image, ImageDetails, ImageRequest, ImageState, Origin, Visibility};
use crate::{
    ids::{ImageId, RegionId},
    name::Name,
};

/// How often a change is begun again because somebody else was faster.
const ATTEMPTS: usize = 5;

/// An image that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImage {
    /// What it is to be found by: chosen by the caller and stored before anything is made, so that asking again after
    /// a crash makes no second one. Ids are everybody's, so choose one that nobody guesses: a UUID.
    pub id: ImageId,
    /// What it is to be called.
    pub name: Name,
    /// Whose it is: all of the organization sees it, and nobody else.
    pub organization: OrganizationId,
    /// Where the server is, and so where the image will be.
    pub region: RegionId,
    /// What the server boots from. It may be retired. Processors, size, machine and system are as there.
    pub source: ImageId,
}

/// How the making of an image went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotProgress {
    /// The provider makes it, under this name.
    Started(fleetwright::ImageId),
    /// It can be booted.
    Ready,
    /// There will be none.
    Failed,
}

/// Why an image was not made, changed or retired. Nothing was done, unless the store says that it does not know.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// There is none, or the caller may not know that there is.
    #[error("there is no image {0}")]
    NotFound(ImageId),
    /// The caller may know of it and may not do this.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// Another image has the id.
    #[error("another image has the id {0}: choose another id")]
    IdTaken(ImageId),
    /// It is of the catalog's file.
    #[error("image {0} is in the catalog's file: change it there")]
    FromFile(ImageId),
    /// It cannot go on like that.
    #[error("image {image} is {state}: it does not become {next}")]
    InvalidTransition {
        /// Which.
        image: ImageId,
        /// How far it is.
        state: ImageState,
        /// What it was to become.
        next: ImageState,
    },
    /// Others wrote the same record again and again.
    #[error("image {0} is being changed by others: ask again")]
    Busy(ImageId),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ImageError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl CatalogService {
    /// Stores that an image is to be made: pending, and seen by its organization. The same again answers the one
    /// there is, however far it is.
    pub async fn add_image(
        &self,
        principal: &Principal,
        new: &NewImage,
    ) -> Result<Image, ImageError> {
        self.add_image_with_details(principal, new, ImageDetails::default())
            .await
    }

    /// The same, with all that may be said of it.
    pub(crate) async fn add_image_with_details(
        &self,
        principal: &Principal,
        new: &NewImage,
        details: ImageDetails,
    ) -> Result<Image, ImageError> {
        let scope = Scope::Organization(new.organization);
        principal.authorize(Verb::Create, Resource::Images, &scope)?;
        let source = match self.image(principal, &new.source) {
            Some(source) => source,
            // Another process may have had it made a moment ago.
            None => {
                self.refresh().await?;
                let source = self.image(principal, &new.source);
                source.ok_or_else(|| ImageError::NotFound(new.source.clone()))?
            }
        };
        let visibility = Visibility::Organization(new.organization);
        let mut image = Image::new(
            new.id.clone(),
            source.architecture,
            details
                .disk
                .map_or(source.size, |disk| disk.max(source.size)),
            source.os,
            visibility,
        );
        image.name = new.name.to_string();
        image.virtualization = source.virtualization;
        image.state = ImageState::Pending;
        image.description = details.description;
        image.tags = details.tags;
        image.snapshot = details.snapshot;
        image.origin = Origin::Snapshot {
            region: new.region.clone(),
            native: None,
        };
        let key = Key::new(new.id.as_str())?;
        let transaction = self.images.create(Transaction::new(), &key, &image)?;
        match self.store.commit(&transaction).await {
            Ok(revision) => {
                self.put_current(revision, image.clone());
                Ok(image)
            }
            Err(error) if error.conflict().is_some() => {
                let found = self
                    .find_same_request(&new.id, &ImageRequest::of(&image))
                    .await?;
                found.ok_or_else(|| ImageError::Busy(new.id.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The image of this id, if there is one, and it was asked for in the same words.
    pub(crate) async fn find_same_request(
        &self,
        id: &ImageId,
        intent: &ImageRequest,
    ) -> Result<Option<Image>, ImageError> {
        let found = self.images.get(&Key::new(id.as_str())?).await?;
        match found {
            Some(found) if ImageRequest::of(&found.value) == *intent => {
                self.put_current(found.revision, found.value.clone());
                Ok(Some(found.value))
            }
            Some(_) => Err(ImageError::IdTaken(id.clone())),
            None => Ok(None),
        }
    }

    /// Stores how the making went on. The same again is no error; going back is.
    pub async fn set_progress(
        &self,
        principal: &Principal,
        id: &ImageId,
        making: &SnapshotProgress,
    ) -> Result<Image, ImageError> {
        self.change(principal, Verb::Update, id, |image| advance(image, making))
            .await
    }

    /// Retires an image that was made. What stands on it goes on.
    pub async fn retire_image(
        &self,
        principal: &Principal,
        id: &ImageId,
    ) -> Result<Image, ImageError> {
        let retire = |image: &mut Image| {
            image.retired = true;
            Ok(())
        };
        self.change(principal, Verb::Delete, id, retire).await
    }

    /// Changes an image that was made, as it is found, again if somebody else is faster.
    pub(crate) async fn change(
        &self,
        principal: &Principal,
        verb: Verb,
        id: &ImageId,
        change: impl Fn(&mut Image) -> Result<(), ImageError>,
    ) -> Result<Image, ImageError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(principal, verb, id).await?;
            let mut image = found.value.clone();
            change(&mut image)?;
            if image == found.value {
                self.put_current(found.revision, image.clone());
                return Ok(image);
            }
            let transaction = self.images.replace(Transaction::new(), &found, &image)?;
            match self.store.commit(&transaction).await {
                Ok(revision) => {
                    self.put_current(revision, image.clone());
                    return Ok(image);
                }
                Err(error) if error.conflict().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ImageError::Busy(id.clone()))
    }

    /// An image that was made, if the principal may do that to it.
    async fn find(
        &self,
        principal: &Principal,
        verb: Verb,
        id: &ImageId,
    ) -> Result<Versioned<Image>, ImageError> {
        let hidden = || ImageError::NotFound(id.clone());
        let found = self.images.get(&Key::new(id.as_str())?).await?;
        let found = found.ok_or_else(hidden)?;
        let scope = found.value.visibility.scope();
        if let Err(refused) = principal.authorize(verb, Resource::Images, &scope) {
            // Members of a project see the images of its organization.
            let sees = principal.authorize_within(Verb::Read, Resource::Images, &scope);
            return Err(sees.map_or_else(|_| hidden(), |()| refused.into()));
        }
        if found.value.origin.is_file() {
            return Err(ImageError::FromFile(id.clone()));
        }
        Ok(found)
    }
}

/// Takes an image on to how its making went on, or says that it does not go like that.
pub(crate) fn advance(image: &mut Image, making: &SnapshotProgress) -> Result<(), ImageError> {
    let next = match making {
        SnapshotProgress::Started(_) => ImageState::Creating,
        SnapshotProgress::Ready => ImageState::Ready,
        SnapshotProgress::Failed => ImageState::Failed,
    };
    let out_of_order = || ImageError::InvalidTransition {
        image: image.id.clone(),
        state: image.state,
        next,
    };
    let known = match &image.origin {
        Origin::File => None,
        Origin::Snapshot { native, .. } => native.clone(),
    };
    let is_allowed = match (making, image.state) {
        (SnapshotProgress::Started(_), ImageState::Pending)
        | (SnapshotProgress::Failed, ImageState::Pending) => true,
        (SnapshotProgress::Ready | SnapshotProgress::Failed, ImageState::Creating) => true,
        (SnapshotProgress::Started(native), ImageState::Creating) => known.as_ref() == Some(native),
        (SnapshotProgress::Ready, state)
        | (SnapshotProgress::Failed, state)
        | (SnapshotProgress::Started(_), state) => state == next,
    };
    if !is_allowed {
        return Err(out_of_order());
    }
    image.state = next;
    if let (SnapshotProgress::Started(name), Origin::Snapshot { native, .. }) =
        (making, &mut image.origin)
    {
        *native = Some(name.clone());
    }
    Ok(())
}
