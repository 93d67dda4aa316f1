//! The wish for an image of a server.

use std::collections::BTreeMap;

use fleetwright::{OptionalVerb, Tags};
use fleetwright_identity::{Principal, Verb};

use super::Provenance;
use crate::{
    catalog::{ByteSize, Details, Image, ImageError, Intent, NewImage, Snapshot, Visibility},
    ids::ImageId,
    machine::{MachineAccess, MachineError, RequiredState, ready_machine},
    name::Name,
    server::{Machine, Server, ServerId},
    tags::strip_reserved,
};

/// The longest description of an image.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;

/// An image of a server that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSnapshot {
    /// What it is to be found by: chosen by the caller, so that asking again makes no second one. Ids are everybody's:
    /// choose a UUID that nobody guesses.
    pub image: ImageId,
    /// What it is to be called.
    pub name: Name,
    /// What is to be said of it.
    pub description: Option<String>,
    /// What it is to be tagged with. [Reserved](crate::tags) tags are left out, whatever they are.
    pub tags: BTreeMap<String, String>,
}

impl NewSnapshot {
    /// Without a description or tags.
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
    /// Writes down that an image of a server's machine is to be made, and answers it: pending, seen by all of the server's
    /// organization. The server runs or is stopped, and stays so. The same again answers the image that there is, however
    /// far it is and whatever has become of the server's machine.
    ///
    /// The image has the processors, the sort of machine and the system of what the machine was booted from, and takes a disk
    /// as large as the machine was launched with.
    pub async fn snapshot(
        &self,
        who: &Principal,
        id: ServerId,
        new: &NewSnapshot,
    ) -> Result<Image, MachineError> {
        let verb = Verb::Snapshot;
        let server = self.permitted(who, verb, id).await?;
        let answer = self.write_down(&server, new).await;
        Self::ended(verb, id, Some(&server.region), answer)
    }

    async fn write_down(&self, server: &Server, new: &NewSnapshot) -> Result<Image, MachineError> {
        let cloud = self.offering(server, Verb::Snapshot, OptionalVerb::SnapshotImage)?;
        let actual = new
            .description
            .as_deref()
            .map_or(0, |text| text.chars().count());
        if actual > MAX_DESCRIPTION_CHARS {
            return Err(MachineError::DescriptionTooLong { actual });
        }
        let tags = strip_reserved(new.tags.clone()).map_err(MachineError::Tags)?;
        let asked = intent(server, new, &tags);
        let known = self.catalog.same_intent(&new.image, &asked);
        let unmade = |error| unmade(server, &new.image, error);
        if let Some(image) = known.await.map_err(unmade)? {
            return Ok(image);
        }
        let machine = ready_machine(server, RequiredState::AtRest)?;
        let source = machine.applied.image.clone();
        let provenance = Provenance::new(server, &new.image, &source);
        let tags = provenance.added_to(&tags);
        cloud
            .capabilities()
            .tags
            .check(&tags)
            .map_err(MachineError::Tags)?;
        let now = self.clock.now();
        let details = Details {
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
        let made = self.catalog.add_detailed(&self.own, &image, details).await;
        made.map_err(unmade)
    }

    /// How large the machine's disk is: that of the flavor it was launched with, unless it is a machine of its own.
    fn disk(&self, server: &Server, machine: &Machine) -> Option<ByteSize> {
        let launch = server.launch.as_ref();
        let launch = launch.filter(|launch| launch.incarnation == machine.incarnation)?;
        let catalog = self.catalog.current();
        let flavor = catalog.flavor(&launch.spec.flavor)?;
        (!flavor.baremetal).then_some(flavor.disk)
    }
}

fn intent(server: &Server, new: &NewSnapshot, tags: &Tags) -> Intent {
    Intent {
        name: new.name.to_string(),
        visibility: Visibility::Organization(server.organization),
        region: Some(server.region.clone()),
        server: Some(server.id),
        description: new.description.clone(),
        tags: tags.clone(),
    }
}

fn unmade(server: &Server, id: &ImageId, error: ImageError) -> MachineError {
    match error {
        ImageError::Taken(id) => MachineError::ImageTaken(id),
        ImageError::NotFound(image) => MachineError::NoSource {
            id: server.id,
            image,
        },
        ImageError::Store(error) => MachineError::Store(error),
        source @ (ImageError::Refused(_)
        | ImageError::OfFile(_)
        | ImageError::OutOfOrder { .. }
        | ImageError::Busy(_)) => MachineError::Image {
            id: id.clone(),
            source,
        },
    }
}
