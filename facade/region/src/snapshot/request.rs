//! Requesting an image of a server.

use std::collections::BTreeMap;

use fleetwright::{OptionalVerb, Tags};
use fleetwright_identity::{Actor, Principal, Verb};

use super::Provenance;
use crate::{
    catalog::{
        ByteSize, Image, ImageDetails, ImageError, ImageOwner, ImageRequest, NewImage, Snapshot,
    },
    machine::{MachineAccess, MachineError, RequiredState, ready_machine},
    name::Name,
    server::{Machine, Server, ServerId},
    tags::strip_reserved,
};

/// The longest description of an image, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;

/// An image to create from a server.
///
/// ```
/// use fleetwright_region::{name::Name, snapshot::NewSnapshot};
///
/// let mut golden = NewSnapshot::new(Name::new("golden")?);
/// golden.description = Some("with all updates of May".to_owned());
/// golden.tags.insert("team".to_owned(), "blue".to_owned());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSnapshot {
    /// The name, unique among the images of the server's project. A repeated request with the same name creates no second image.
    pub name: Name,
    /// A description of at most [`MAX_DESCRIPTION_CHARS`] characters.
    pub description: Option<String>,
    /// The tags. [Reserved](crate::tags) tags are dropped.
    pub tags: BTreeMap<String, String>,
}

impl NewSnapshot {
    /// Creates a request without description and tags.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            description: None,
            tags: BTreeMap::new(),
        }
    }
}

/// The result of a request for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum RequestedImage {
    /// The request was recorded by this call.
    New(Image),
    /// An earlier call recorded the same request.
    Existing(Image),
}

impl RequestedImage {
    /// Returns the image.
    pub fn into_image(self) -> Image {
        match self {
            Self::New(image) | Self::Existing(image) => image,
        }
    }
}

impl MachineAccess {
    /// Records an image of a server's machine, and returns it: pending, and visible to the server's project. The server must be running
    /// or stopped, and stays so. A repeated request returns the existing image, whatever its state and that of the machine.
    ///
    /// The image has the architecture, the kind of machine and the operating system of the image that the machine was booted from, and
    /// needs a disk as large as the machine was launched with.
    pub async fn snapshot(
        &self,
        principal: &Principal,
        id: ServerId,
        new: &NewSnapshot,
    ) -> Result<Image, MachineError> {
        let requested = self.snapshot_for(principal, principal.actor(), id, new);
        Ok(requested.await?.into_image())
    }

    /// Like [`snapshot`](Self::snapshot), for a caller on whose behalf the principal makes the call: the audit log names that caller.
    pub async fn snapshot_for(
        &self,
        principal: &Principal,
        requester: &Actor,
        id: ServerId,
        new: &NewSnapshot,
    ) -> Result<RequestedImage, MachineError> {
        let verb = Verb::Snapshot;
        let server = self.permitted(principal, verb, id).await?;
        let result = self.record_request(requester, &server, new).await;
        Self::record_outcome(verb, id, Some(&server.region), result)
    }

    async fn record_request(
        &self,
        requester: &Actor,
        server: &Server,
        new: &NewSnapshot,
    ) -> Result<RequestedImage, MachineError> {
        let cloud = self.offering(server, Verb::Snapshot, OptionalVerb::SnapshotImage)?;
        let actual = new
            .description
            .as_deref()
            .map_or(0, |text| text.chars().count());
        if actual > MAX_DESCRIPTION_CHARS {
            return Err(MachineError::DescriptionTooLong { actual });
        }
        let tags = strip_reserved(new.tags.clone()).map_err(MachineError::Tags)?;
        let owner = owner_of(server);
        let request = request_of(server, new, &tags);
        let known = self.catalog.find_same_request(owner, &new.name, &request);
        let refusal = |error| refusal(server, &new.name, error);
        if let Some(image) = known.await.map_err(refusal)? {
            return Ok(RequestedImage::Existing(image));
        }
        let machine = ready_machine(server, RequiredState::RunningOrStopped)?;
        let source = machine.applied.image.clone();
        let now = self.clock.now();
        let image = NewImage {
            name: new.name.clone(),
            owner,
            region: server.region.clone(),
            source: source.clone(),
            requested_at: now,
        };
        let provenance = Provenance::new(server, &image.id()?, &source);
        let tags = provenance.added_to(&tags);
        cloud
            .capabilities()
            .tags
            .check(&tags)
            .map_err(MachineError::Tags)?;
        let details = ImageDetails {
            description: new.description.clone(),
            tags,
            disk: self.disk(server, machine).await?,
            snapshot: Some(Snapshot::new(server.id, machine.id.clone(), source, now)),
        };
        let created = self
            .catalog
            .add_image_with_details(
                (&self.own, requester),
                &image,
                details,
                self.ledger.as_ref(),
            )
            .await;
        created.map(RequestedImage::New).map_err(refusal)
    }

    /// Returns the size of the machine's disk: that of the flavor it was launched with, unless that is bare metal.
    async fn disk(
        &self,
        server: &Server,
        machine: &Machine,
    ) -> Result<Option<ByteSize>, MachineError> {
        let launch = server.launch.as_ref();
        let Some(launch) = launch.filter(|launch| launch.incarnation == machine.incarnation) else {
            return Ok(None);
        };
        self.catalog.renew_flavor(&launch.spec.flavor).await?;
        let catalog = self.catalog.current();
        let flavor = catalog.flavor(&launch.spec.flavor);
        Ok(flavor
            .filter(|flavor| !flavor.baremetal)
            .map(|flavor| flavor.disk))
    }
}

fn owner_of(server: &Server) -> ImageOwner {
    ImageOwner {
        organization: server.organization,
        project: server.project,
    }
}

fn request_of(server: &Server, new: &NewSnapshot, tags: &Tags) -> ImageRequest {
    ImageRequest {
        name: new.name.to_string(),
        owner: Some(owner_of(server)),
        region: Some(server.region.clone()),
        server: Some(server.id),
        description: new.description.clone(),
        tags: tags.clone(),
    }
}

fn refusal(server: &Server, name: &Name, error: ImageError) -> MachineError {
    match error {
        ImageError::NameTaken(name) => MachineError::ImageNameTaken(name),
        ImageError::NotFound(image) => MachineError::NoSource {
            id: server.id,
            image,
        },
        ImageError::Store(error) => MachineError::Store(error),
        ImageError::Ledger(error) => MachineError::Ledger(error),
        ImageError::Closed(closed) => MachineError::Closed(closed),
        source @ (ImageError::Refused(_)
        | ImageError::FromFile(_)
        | ImageError::InvalidTransition { .. }
        | ImageError::Busy(_)) => MachineError::Image {
            name: name.clone(),
            source,
        },
    }
}
