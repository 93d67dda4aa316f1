//! Images that tenants create from their servers. They are records beside those of the file, and no file changes them.

use fleetwright_identity::{OrganizationId, Principal, Refused, Resource, Scope, Verb};
use fleetwright_store::{Invalid, Key, StoreError, Transaction, Versioned};

use super::{CatalogService, Image, ImageDetails, ImageRequest, ImageState, Origin, Visibility};
use crate::{
    ids::{ImageId, RegionId},
    name::Name,
};

/// How often a change is tried when others write the same record.
const ATTEMPTS: usize = 5;

/// A request for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImage {
    /// The id. The caller chooses it and it is stored first, so that a repeated request after a crash creates no second
    /// image. Ids are shared by all tenants, so choose one that cannot be guessed: a random UUID.
    pub id: ImageId,
    /// The name.
    pub name: Name,
    /// The organization that owns the image. Only its members can see it.
    pub organization: OrganizationId,
    /// The region of the server, and so of the image.
    pub region: RegionId,
    /// The image that the server boots from. It may be retired. The new image has its architecture, size, kind of machine and
    /// operating system.
    pub source: ImageId,
}

/// A step in the creation of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotProgress {
    /// The provider is creating it, with this native id.
    Started(fleetwright::ImageId),
    /// It can be booted.
    Ready,
    /// It could not be created. Final.
    Failed,
}

/// Why an image was not created, changed or retired. Nothing was changed, unless the [store error](StoreError) says that the
/// outcome is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The image does not exist, or is not visible to the caller.
    #[error("there is no image {0}")]
    NotFound(ImageId),
    /// The image is visible to the caller, who lacks the permission.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// Another image has the id. Choose another one.
    #[error("another image has the id {0}: choose another id")]
    IdTaken(ImageId),
    /// The image comes from the catalog file, and can only be changed there.
    #[error("image {0} is in the catalog file: change it there")]
    FromFile(ImageId),
    /// The image cannot change from its state to the other one.
    #[error("image {image} is {state}: it cannot become {next}")]
    InvalidTransition {
        /// The image.
        image: ImageId,
        /// Its state.
        state: ImageState,
        /// The state that was requested.
        next: ImageState,
    },
    /// Others changed the same record at every attempt. Try again.
    #[error("image {0} is being changed by others: retry")]
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
    /// Records a request for an image: pending, and visible to its organization. A repeated request returns the existing
    /// image in its current state. The image is created by [`Snapshots`](crate::snapshot::Snapshots).
    ///
    /// # Errors
    ///
    /// The principal may not create images in the organization or cannot see the source, or another image has the id.
    pub async fn add_image(
        &self,
        principal: &Principal,
        new: &NewImage,
    ) -> Result<Image, ImageError> {
        self.add_image_with_details(principal, new, ImageDetails::default())
            .await
    }

    /// Like [`add_image`](Self::add_image), with the optional properties.
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
            // Another process may have created it a moment ago.
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

    /// Returns the image of this id if it exists and was requested with the same properties.
    ///
    /// # Errors
    ///
    /// It was requested with other properties.
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

    /// Records a step in the creation of an image. A repeated step succeeds.
    ///
    /// # Errors
    ///
    /// [`InvalidTransition`](ImageError::InvalidTransition) if the step is not the next one, or the image is not visible, may
    /// not be updated, or comes from the catalog file.
    pub async fn set_progress(
        &self,
        principal: &Principal,
        id: &ImageId,
        progress: &SnapshotProgress,
    ) -> Result<Image, ImageError> {
        self.change(principal, Verb::Update, id, |image| {
            advance(image, progress)
        })
        .await
    }

    /// Retires an image of a tenant: it is no longer offered, and the servers that use it keep working. A repeated call
    /// succeeds.
    ///
    /// # Errors
    ///
    /// The image is not visible, may not be deleted by the principal, or comes from the catalog file.
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

    /// Changes an image of a tenant, and tries again if others changed it meanwhile.
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

    /// Returns an image of a tenant, if the principal has the permission for it.
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
            let visible = principal.authorize_within(Verb::Read, Resource::Images, &scope);
            return Err(visible.map_or_else(|_| hidden(), |()| refused.into()));
        }
        if found.value.origin.is_file() {
            return Err(ImageError::FromFile(id.clone()));
        }
        Ok(found)
    }
}

/// Applies a step to an image, or returns [`ImageError::InvalidTransition`].
pub(crate) fn advance(image: &mut Image, progress: &SnapshotProgress) -> Result<(), ImageError> {
    let next = match progress {
        SnapshotProgress::Started(_) => ImageState::Creating,
        SnapshotProgress::Ready => ImageState::Ready,
        SnapshotProgress::Failed => ImageState::Failed,
    };
    let invalid = || ImageError::InvalidTransition {
        image: image.id.clone(),
        state: image.state,
        next,
    };
    let known = match &image.origin {
        Origin::File => None,
        Origin::Snapshot { native, .. } => native.clone(),
    };
    let is_allowed = match (progress, image.state) {
        (SnapshotProgress::Started(_), ImageState::Pending)
        | (SnapshotProgress::Failed, ImageState::Pending) => true,
        (SnapshotProgress::Ready | SnapshotProgress::Failed, ImageState::Creating) => true,
        (SnapshotProgress::Started(native), ImageState::Creating) => known.as_ref() == Some(native),
        (SnapshotProgress::Ready, state)
        | (SnapshotProgress::Failed, state)
        | (SnapshotProgress::Started(_), state) => state == next,
    };
    if !is_allowed {
        return Err(invalid());
    }
    image.state = next;
    if let (SnapshotProgress::Started(name), Origin::Snapshot { native, .. }) =
        (progress, &mut image.origin)
    {
        *native = Some(name.clone());
    }
    Ok(())
}
