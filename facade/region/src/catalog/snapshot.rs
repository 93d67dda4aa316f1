//! Of what an image is made, and how the making goes.

use chrono::{DateTime, Utc};
use fleetwright::{InstanceId, Tags};
use serde::{Deserialize, Serialize};

use super::{ByteSize, Image, Origin, Visibility};
use crate::{
    ids::{ImageId, RegionId},
    server::ServerId,
    tags::strip_reserved,
};

/// Of which machine an image is made, and how the making goes. Written when the image is asked for; afterwards
/// [`Snapshots`](crate::snapshot::Snapshots) alone writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The server.
    pub server: ServerId,
    /// Its machine when that was asked. The image is of this one, whatever becomes of the server.
    pub machine: InstanceId,
    /// What the machine was booted from.
    pub source: ImageId,
    /// When it was asked for.
    pub requested_at: DateTime<Utc>,
    /// When the cloud's name for it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// How often in a row the cloud did not do it.
    #[serde(default)]
    pub failures: u32,
    /// Not before this is it asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// Why the last try failed, in words; of an image that failed, why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Snapshot {
    /// One that was not tried yet.
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

/// What is to be written of an image beside what every image has.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageDetails {
    pub(crate) description: Option<String>,
    pub(crate) tags: Tags,
    /// How large its disk is, if that is larger than its source.
    pub(crate) disk: Option<ByteSize>,
    pub(crate) snapshot: Option<Snapshot>,
}

/// What makes two requests for an image one. The rest follows from what there is when the first of them comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageRequest {
    pub(crate) name: String,
    pub(crate) visibility: Visibility,
    pub(crate) region: Option<RegionId>,
    pub(crate) server: Option<ServerId>,
    pub(crate) description: Option<String>,
    /// Without the system's own.
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
            visibility: image.visibility,
            region,
            server: image.snapshot.as_ref().map(|snapshot| snapshot.server),
            description: image.description.clone(),
            // No key of tags is empty: there is nothing to refuse.
            tags: strip_reserved(&image.tags).unwrap_or_default(),
        }
    }
}
