//! Images that tenants create from their servers. They are records beside those of the file, and no file changes them.

use chrono::{DateTime, Utc};
use fleetwright_identity::{
    Actor, Allocation, Amounts, AuditOutcome, Ledger, LedgerError, Principal, QuotaKind, Refused,
    Resource, Scope, ScopeClosed, Verb,
};
use fleetwright_store::{IndexName, Invalid, Key, StoreError, Transaction, Versioned};
use uuid::Uuid;

use super::{
    CatalogService, Image, ImageDetails, ImageOwner, ImageRequest, ImageState, Origin, Visibility,
};
use crate::{
    ids::{ImageId, RegionId},
    name::Name,
    schema::BY_OWNER_AND_NAME,
};

/// How often a change is tried when others write the same record.
const ATTEMPTS: usize = 5;

/// The namespace of the ids of tenants' images. Frozen, so that a repeated request has the same id.
const IMAGES: Uuid = Uuid::from_u128(0x6a0c_5d1e_93b7_4f28_8c44_17e9_b2d0_5af6);

/// A request for an image. Its id is the system's: it is derived from the request, and nobody can choose it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImage {
    /// The name, unique among the images of the project.
    pub name: Name,
    /// The project that owns the image. Its members can see it.
    pub owner: ImageOwner,
    /// The region of the server, and so of the image.
    pub region: RegionId,
    /// The image that the server boots from. It may be retired. The new image has its architecture, size, kind of machine and
    /// operating system.
    pub source: ImageId,
    /// The time of the request.
    pub requested_at: DateTime<Utc>,
}

impl NewImage {
    /// Returns the id that the image gets: a UUID, different for each request that is not a repetition.
    pub fn id(&self) -> Result<ImageId, Invalid> {
        let ImageOwner {
            organization,
            project,
        } = self.owner;
        let at = self.requested_at.timestamp_nanos_opt().unwrap_or_default();
        let text = format!(
            "{organization}/{project}/{}/{}/{at}",
            self.region, self.name
        );
        let id = Uuid::new_v5(&IMAGES, text.as_bytes())
            .hyphenated()
            .to_string();
        ImageId::new(id).map_err(|error| Invalid::new(error.to_string()))
    }
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
    /// Another image of the project has the name.
    #[error("the project has another image {0}: choose another name, or delete that image first")]
    NameTaken(Name),
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
    /// A quota would be exceeded, or the ledger failed.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The project does not exist or is being deleted.
    #[error(transparent)]
    Closed(ScopeClosed),
    /// Others changed the same record at every attempt. Try again.
    #[error("image {0} is being changed by others: retry")]
    Busy(ImageId),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<LedgerError> for ImageError {
    fn from(error: LedgerError) -> Self {
        if let LedgerError::Store(error) = error {
            return Self::Store(error);
        }
        Self::Ledger(error)
    }
}

impl From<ScopeClosed> for ImageError {
    fn from(closed: ScopeClosed) -> Self {
        if let ScopeClosed::Store(error) = closed {
            return Self::Store(error);
        }
        Self::Closed(closed)
    }
}

impl From<Invalid> for ImageError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

impl CatalogService {
    /// Records a request for an image: pending, visible to its project, and charged to it. A repeated request returns the existing
    /// image in its current state. The image is created by [`Snapshots`](crate::snapshot::Snapshots).
    ///
    /// # Errors
    ///
    /// The principal may not create images in the project or cannot see the source, another image of the project has the name, or the
    /// quota of images is used up. Images of other projects are never compared.
    pub async fn add_image(
        &self,
        principal: &Principal,
        new: &NewImage,
        ledger: &Ledger,
    ) -> Result<Image, ImageError> {
        let (requester, details) = (principal.actor(), ImageDetails::default());
        self.add_image_with_details((principal, requester), new, details, Some(ledger))
            .await
    }

    /// Like [`add_image`](Self::add_image), with the optional properties. Without a ledger nobody is charged. The audit log names
    /// `requester`, for whom the principal makes the call.
    pub(crate) async fn add_image_with_details(
        &self,
        (principal, requester): (&Principal, &Actor),
        new: &NewImage,
        details: ImageDetails,
        ledger: Option<&Ledger>,
    ) -> Result<Image, ImageError> {
        principal.authorize(Verb::Create, Resource::Images, &new.owner.scope())?;
        // Another process may have created or changed it a moment ago.
        let missing = || ImageError::NotFound(new.source.clone());
        if let Err(error) = self.renew_image(&new.source).await {
            let is_hidden = self.hides_image(principal, &new.source, &error).await;
            return Err(if is_hidden { missing() } else { error.into() });
        }
        let source = self.image(principal, &new.source).ok_or_else(missing)?;
        let ImageOwner {
            organization,
            project,
        } = new.owner;
        let visibility = Visibility::Project(organization, project);
        let id = new.id()?;
        let mut image = Image::new(
            id.clone(),
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
            owner: Some(new.owner),
        };
        let key = Key::new(id.as_str())?;
        let mut transaction = self.images.create(Transaction::new(), &key, &image)?;
        if let Some(tenancy) = self.tenancy.get() {
            let open = tenancy.check_open(&new.owner.scope()).await?;
            transaction.checks.extend(open);
        }
        let requested = AuditOutcome::Requested;
        let transaction =
            self.add_image_entry(transaction, requester, Verb::Create, &image, requested)?;
        let committed = match ledger {
            None => self
                .store
                .commit(&transaction)
                .await
                .map_err(ImageError::from),
            Some(ledger) => {
                let amounts = Amounts::new().with(QuotaKind::images(), 1);
                let charged = self.images.id(&key);
                let allocation = Allocation::new(charged, organization, project, amounts);
                let build = || async {
                    let transaction = transaction.clone();
                    Ok::<_, ImageError>(ledger.charge(transaction, &allocation).await?)
                };
                ledger.commit(organization, build).await
            }
        };
        match committed {
            Ok(revision) => {
                self.put_current(revision, image.clone());
                Ok(image)
            }
            Err(ImageError::Store(error)) if error.conflict().is_some() => {
                let found = self
                    .find_same_request(new.owner, &new.name, &ImageRequest::of(&image))
                    .await?;
                if let (None, Some(tenancy)) = (&found, self.tenancy.get()) {
                    tenancy.check_open(&new.owner.scope()).await?;
                }
                found.ok_or(ImageError::Busy(id))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the image of this name in a project if it exists and was requested with the same properties.
    ///
    /// # Errors
    ///
    /// It was requested with other properties.
    pub(crate) async fn find_same_request(
        &self,
        owner: ImageOwner,
        name: &Name,
        intent: &ImageRequest,
    ) -> Result<Option<Image>, ImageError> {
        let index = IndexName::new(BY_OWNER_AND_NAME)?;
        let value = [
            owner.organization.to_string(),
            owner.project.to_string(),
            name.to_string(),
        ];
        match self.images.find(&index, value).await? {
            Some(found) if ImageRequest::of(&found.value) == *intent => {
                self.put_current(found.revision, found.value.clone());
                Ok(Some(found.value))
            }
            Some(_) => Err(ImageError::NameTaken(name.clone())),
            None => Ok(None),
        }
    }

    /// Shows an image of a project to its whole organization. A repeated call succeeds.
    ///
    /// # Errors
    ///
    /// The image is not visible, comes from the catalog file, or the principal may not update images of the organization: members of
    /// one project do not decide what the others see.
    pub async fn share_image(
        &self,
        principal: &Principal,
        id: &ImageId,
    ) -> Result<Image, ImageError> {
        let share = |image: &mut Image| {
            if let Some(owner) = image.owner() {
                let scope = Scope::Organization(owner.organization);
                principal.authorize(Verb::Update, Resource::Images, &scope)?;
                image.visibility = Visibility::Organization(owner.organization);
            }
            Ok(())
        };
        let update = (Verb::Update, Resource::Images);
        self.change(principal, update, id, share).await
    }

    /// Records a step in the creation of an image. A repeated step succeeds. It needs the permission to update native images, which
    /// no role grants: who names the native image decides whose disk is launched.
    ///
    /// # Errors
    ///
    /// [`InvalidTransition`](ImageError::InvalidTransition) if the step is not the next one; or the image is not visible, the permission
    /// is missing, or the image comes from the catalog file.
    pub async fn set_progress(
        &self,
        principal: &Principal,
        id: &ImageId,
        progress: &SnapshotProgress,
    ) -> Result<Image, ImageError> {
        let native = (Verb::Update, Resource::NativeImages);
        self.change(principal, native, id, |image| advance(image, progress))
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
        let delete = (Verb::Delete, Resource::Images);
        self.change(principal, delete, id, retire).await
    }

    /// Deletes an image of a tenant that is ready or failed. It is no longer offered; once no instance uses it,
    /// [`Snapshots`](crate::snapshot::Snapshots) deletes it at the cloud, and then its record and its quota. A repeated call succeeds.
    ///
    /// # Errors
    ///
    /// [`InvalidTransition`](ImageError::InvalidTransition) while it is being created; or the image is not visible, may not be deleted by
    /// the principal, or comes from the catalog file.
    pub async fn delete_image(
        &self,
        principal: &Principal,
        id: &ImageId,
    ) -> Result<Image, ImageError> {
        let delete = (Verb::Delete, Resource::Images);
        let mark = |image: &mut Image| match image.state {
            ImageState::Ready | ImageState::Failed | ImageState::Deleting => {
                image.state = ImageState::Deleting;
                image.retired = true;
                Ok(())
            }
            state @ (ImageState::Pending | ImageState::Creating) => {
                Err(ImageError::InvalidTransition {
                    image: image.id.clone(),
                    state,
                    next: ImageState::Deleting,
                })
            }
        };
        self.change(principal, delete, id, mark).await
    }

    /// Changes an image of a tenant, and tries again if others changed it meanwhile.
    pub(crate) async fn change(
        &self,
        principal: &Principal,
        permission: (Verb, Resource),
        id: &ImageId,
        change: impl Fn(&mut Image) -> Result<(), ImageError>,
    ) -> Result<Image, ImageError> {
        for _ in 0..ATTEMPTS {
            let found = self.find(principal, permission, id).await?;
            let mut image = found.value.clone();
            change(&mut image)?;
            if image == found.value {
                self.put_current(found.revision, image.clone());
                return Ok(image);
            }
            let mut transaction = self.images.replace(Transaction::new(), &found, &image)?;
            // The steps of the image controller carry out what is in the log already.
            if permission.1 == Resource::Images {
                let outcome = match image.state {
                    ImageState::Deleting => AuditOutcome::Requested,
                    ImageState::Pending
                    | ImageState::Creating
                    | ImageState::Ready
                    | ImageState::Failed => AuditOutcome::Done,
                };
                let actor = principal.actor();
                transaction =
                    self.add_image_entry(transaction, actor, permission.0, &image, outcome)?;
            }
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
        (verb, resource): (Verb, Resource),
        id: &ImageId,
    ) -> Result<Versioned<Image>, ImageError> {
        let hidden = || ImageError::NotFound(id.clone());
        let found = match self.images.get(&Key::new(id.as_str())?).await {
            Ok(found) => found.ok_or_else(hidden)?,
            Err(error) => {
                let is_hidden = self.hides_image(principal, id, &error).await;
                return Err(if is_hidden { hidden() } else { error.into() });
            }
        };
        if let Err(refused) = principal.authorize(verb, resource, &found.value.scope()) {
            // Members of a project see the images that are shared with its organization.
            let scope = found.value.visibility.scope();
            let visible = principal.authorize_within(Verb::Read, Resource::Images, &scope);
            if visible.is_err() {
                return Err(hidden());
            }
            if let Some(tenancy) = self.tenancy.get() {
                let name = Some(found.value.name.as_str());
                tenancy.audit().record_refusal(&refused, id, name).await;
            }
            return Err(refused.into());
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
