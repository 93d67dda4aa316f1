//! Requesting an image of a server.

use std::collections::BTreeMap;

use fleetwright::{OptionalVerb, Tags};
use fleetwright_identity::{Principal, Verb};

use super::Provenance;
use crate::{
    catalog::{
        ByteSize, Image, ImageDetails, ImageError, ImageRequest, NewImage, Snapshot, Visibility,
    },
    ids::ImageId,
    machine::{MachineAccess, MachineError, RequiredState, ready_machine},
    name::Name,
    server::{Machine, Server, ServerId},
    tags::strip_reserved,
};

/// The longest description of an image, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;

/// An image to create from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSnapshot {
    /// The id, chosen by the caller, so that a repeated request creates no second image. Ids are shared by all tenants: choose a random
    /// UUID.
    pub image: ImageId,
    /// The name.
    pub name: Name,
    /// A description of at most [`MAX_DESCRIPTION_CHARS`] characters.
    pub description: Option<String>,
    /// The tags. [Reserved](crate::tags) tags are dropped.
    pub tags: BTreeMap<String, String>,
}

impl NewSnapshot {
    /// Creates a request without description and tags.
    pub fn new(image: ImageId, name: Name) -> Self {
        Self {
            image,
            name,
            description: None,
            tags: BTreeMap::new(),
        }
    }
}

impl MachineAccess {
    /// Records an image of a server's machine, and returns it: pending, and visible to the server's organization. The server must be running
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
        let verb = Verb::Snapshot;
        let server = self.permitted(principal, verb, id).await?;
        let result = self.record_request(&server, new).await;
        Self::record_outcome(verb, id, Some(&server.region), result)
    }

    async fn record_request(
        &self,
        server: &Server,
        new: &NewSnapshot,
    ) -> Result<Image, MachineError> {
        let cloud = self.offering(server, Verb::Snapshot, OptionalVerb::SnapshotImage)?;
        let actual = new
            .description
            .as_deref()
            .map_or(0, |text| text.chars().count());
        if actual > MAX_DESCRIPTION_CHARS {
            return Err(MachineError::DescriptionTooLong { actual });
        }
        let tags = strip_reserved(new.tags.clone()).map_err(MachineError::Tags)?;
        let request = request_of(server, new, &tags);
        let known = self.catalog.find_same_request(&new.image, &request);
        let refusal = |error| refusal(server, &new.image, error);
        if let Some(image) = known.await.map_err(refusal)? {
            return Ok(image);
        }
        let machine = ready_machine(server, RequiredState::RunningOrStopped)?;
        let source = machine.applied.image.clone();
        let provenance = Provenance::new(server, &new.image, &source);
        let tags = provenance.added_to(&tags);
        cloud
            .capabilities()
            .tags
            .check(&tags)
            .map_err(MachineError::Tags)?;
        let now = self.clock.now();
        let details = ImageDetails {
            description: new.description.clone(),
            tags,
            disk: self.disk(server, machine),
            snapshot: Some(Snapshot::new(
                server.id,
                machine.id.clone(),
                source.clone(),
                now,
            )),
        };
        let image = NewImage {
            id: new.image.clone(),
            name: new.name.clone(),
            organization: server.organization,
            region: server.region.clone(),
            source,
        };
        let created = self
            .catalog
            .add_image_with_details(&self.own, &image, details)
            .await;
        created.map_err(refusal)
    }

    /// Returns the size of the machine's disk: that of the flavor it was launched with, unless that is bare metal.
    fn disk(&self, server: &Server, machine: &Machine) -> Option<ByteSize> {
        let launch = server.launch.as_ref();
        let launch = launch.filter(|launch| launch.incarnation == machine.incarnation)?;
        let catalog = self.catalog.current();
        let flavor = catalog.flavor(&launch.spec.flavor)?;
        (!flavor.baremetal).then_some(flavor.disk)
    }
}

fn request_of(server: &Server, new: &NewSnapshot, tags: &Tags) -> ImageRequest {
    ImageRequest {
        name: new.name.to_string(),
        visibility: Visibility::Organization(server.organization),
        region: Some(server.region.clone()),
        server: Some(server.id),
        description: new.description.clone(),
        tags: tags.clone(),
    }
}

fn refusal(server: &Server, id: &ImageId, error: ImageError) -> MachineError {
    match error {
        ImageError::IdTaken(id) => MachineError::ImageTaken(id),
        ImageError::NotFound(image) => MachineError::NoSource {
            id: server.id,
            image,
        },
        ImageError::Store(error) => MachineError::Store(error),
        source @ (ImageError::Refused(_)
        | ImageError::FromFile(_)
        | ImageError::InvalidTransition { .. }
        | ImageError::Busy(_)) => MachineError::Image {
            id: id.clone(),
            source,
        },
    }
}
