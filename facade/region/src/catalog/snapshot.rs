//! The source of a tenant's image, and the progress of its creation.

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, Tags};
use serde::{Deserialize, Serialize};

use super::{ByteSize, Image, ImageOwner, Origin};
use crate::{
    ids::{ImageId, RegionId},
    server::ServerId,
    tags::strip_reserved,
};

/// The machine that an image is created from, and the progress of the creation. Written when the image is requested;
/// afterwards only [`Snapshots`](crate::snapshot::Snapshots) changes it.
///
/// ```
/// use chrono::DateTime;
/// use fleetwright::InstanceId;
/// use fleetwright_region::{catalog::Snapshot, ids::ImageId, server::ServerId};
/// use uuid::Uuid;
///
/// let (server, machine) = (ServerId::from_uuid(Uuid::from_u128(7)), InstanceId::new("i-1")?);
/// let snapshot = Snapshot::new(server, machine, ImageId::new("debian-13")?, DateTime::UNIX_EPOCH);
/// assert_eq!((snapshot.started_at, snapshot.failures), (None, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The server.
    pub server: ServerId,
    /// The server's machine at the time of the request. The image is of this machine, even if the server gets another one.
    pub machine: InstanceId,
    /// The image that the machine was booted from.
    pub source: ImageId,
    /// The time of the request.
    pub requested_at: DateTime<Utc>,
    /// The time at which the cloud's id of the image was stored. `None` until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// The number of failed attempts in a row.
    #[serde(default)]
    pub failures: u32,
    /// The time before which there is no further attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// The message of the last failed attempt. For a failed image, the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Snapshot {
    /// Creates the state before the first attempt.
    pub fn new(
        server: ServerId,
        machine: InstanceId,
        source: ImageId,
        requested_at: DateTime<Utc>,
    ) -> Self {
        Self {
            server,
            machine,
            source,
            requested_at,
            started_at: None,
            failures: 0,
            not_before: None,
            last_error: None,
        }
    }
}

/// The optional properties of a tenant's new image.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageDetails {
    pub(crate) description: Option<String>,
    pub(crate) tags: Tags,
    /// The disk of the machine. The image needs a disk of at least this size.
    pub(crate) disk: Option<ByteSize>,
    pub(crate) snapshot: Option<Snapshot>,
}

/// The properties of a request for an image. A request of the same project with the same name and the same properties is a repetition;
/// everything else about an image follows from the state at the first request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageRequest {
    pub(crate) name: String,
    pub(crate) owner: Option<ImageOwner>,
    pub(crate) region: Option<RegionId>,
    pub(crate) server: Option<ServerId>,
    pub(crate) description: Option<String>,
    /// The tags without the reserved ones.
    pub(crate) tags: Tags,
}

impl ImageRequest {
    pub(crate) fn of(image: &Image) -> Self {
        let region = match &image.origin {
            Origin::File => None,
            Origin::Snapshot { region, .. } => Some(region.clone()),
        };
        Self {
            name: image.name.clone(),
            owner: image.owner(),
            region,
            server: image.snapshot.as_ref().map(|snapshot| snapshot.server),
            description: image.description.clone(),
            // Stripping fails only for an empty key, and tags have none.
            tags: strip_reserved(&image.tags).unwrap_or_default(),
        }
    }
}
