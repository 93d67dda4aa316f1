//! Why a machine was not asked, or did not answer.

use std::time::Duration;

use fleetwright::{InvalidValue, ProvisionError};
use fleetwright_identity::{Refused, Verb};
use fleetwright_store::{Invalid, StoreError};

use crate::{
    catalog::ImageError,
    ids::{ImageId, RegionId},
    secret::KeyError,
    server::ServerId,
    snapshot::MAX_DESCRIPTION_CHARS,
};

/// Why a call of [`MachineAccess`](super::MachineAccess) failed. Each sort says who can do something about it; none is a riddle. None
/// holds what a machine printed, a key, or the address of a console.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// There is no such server, or the caller may not know of it.
    #[error("there is no server {0}")]
    NotFound(ServerId),
    /// The caller may know of it and may not do this.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// Its machine is not there yet, or not in a state in which this can be asked: worth asking again.
    #[error("server {id} is {found}: it must be {wanted}; retry in {retry_after:?}")]
    NotReady {
        /// Which server.
        id: ServerId,
        /// What it is.
        found: &'static str,
        /// What it would have to be.
        wanted: &'static str,
        /// When to ask again.
        retry_after: Duration,
    },
    /// It has no machine, and will not have one unless somebody asks for it.
    #[error("server {id} {found}: request a replacement, or delete it")]
    NoMachine {
        /// Which server.
        id: ServerId,
        /// What became of its machine.
        found: &'static str,
    },
    /// It is being deleted.
    #[error("server {0} is being deleted: its machine cannot be accessed")]
    Deleting(ServerId),
    /// The region's cloud does not offer this.
    #[error("the cloud of region {region} does not support {}", .verb.as_str())]
    Unsupported {
        /// Where.
        region: RegionId,
        /// What.
        verb: Verb,
    },
    /// The cloud cannot be used now: throttled, not reached in time, credentials.
    #[error("the cloud cannot perform {} for server {id} now: retry in {retry_after:?}", .verb.as_str())]
    Unavailable {
        /// Which server.
        id: ServerId,
        /// What was asked.
        verb: Verb,
        /// When to ask again.
        retry_after: Duration,
        /// What the cloud said.
        source: ProvisionError,
    },
    /// The cloud will not do it, however often it is asked.
    #[error("the cloud refuses {} for server {id}", .verb.as_str())]
    Declined {
        /// Which server.
        id: ServerId,
        /// What was asked.
        verb: Verb,
        /// What the cloud said.
        source: ProvisionError,
    },
    /// Nobody said what the cloud of this region is.
    #[error("region {0} is not served here: send the request to the service that serves it")]
    NoRegion(RegionId),
    /// It has no key pair of its own.
    #[error("server {0} has no key pair")]
    NoKey(ServerId),
    /// It has a key pair that nobody here can open.
    #[error("the key of server {0} cannot be decrypted: this program has no keyring")]
    NoKeyring(ServerId),
    /// Its key pair cannot be shown.
    #[error("the key of server {id} cannot be decrypted: the operator must check the keyring")]
    Key {
        /// Which server.
        id: ServerId,
        /// Why. It never holds a part of the key.
        source: KeyError,
    },
    /// A tag is refused, by its key or by what the cloud can hold.
    #[error("the tags of the image are refused")]
    Tags(#[source] InvalidValue),
    /// The description is too long.
    #[error(
        "a description of {actual} characters is too long: at most {MAX_DESCRIPTION_CHARS} are allowed"
    )]
    DescriptionTooLong {
        /// How long it is.
        actual: usize,
    },
    /// Another image has the id.
    #[error("another image has the id {0}: choose another id")]
    ImageTaken(ImageId),
    /// The catalog does not have what the machine was booted from.
    #[error("server {id} was booted from image {image}, which the catalog does not have")]
    NoSource {
        /// Which server.
        id: ServerId,
        /// What it was booted from.
        image: ImageId,
    },
    /// The image could not be written down.
    #[error("image {id} was not recorded: retry")]
    Image {
        /// Which image.
        id: ImageId,
        /// Why.
        source: ImageError,
    },
    /// The store did not do it.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl MachineError {
    /// How long to wait before asking again, if that is what to do.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotReady { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                Some(*retry_after)
            }
            Self::NotFound(_)
            | Self::Refused(_)
            | Self::NoMachine { .. }
            | Self::Deleting(_)
            | Self::Unsupported { .. }
            | Self::Declined { .. }
            | Self::NoRegion(_)
            | Self::NoKey(_)
            | Self::NoKeyring(_)
            | Self::Key { .. }
            | Self::Tags(_)
            | Self::DescriptionTooLong { .. }
            | Self::ImageTaken(_)
            | Self::NoSource { .. }
            | Self::Image { .. }
            | Self::Store(_) => None,
        }
    }

    /// As metrics have it.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not-found",
            Self::Refused(_) => "refused",
            Self::NotReady { .. } => "not-ready",
            Self::NoMachine { .. } => "no-machine",
            Self::Deleting(_) => "deleting",
            Self::Unsupported { .. } => "unsupported",
            Self::Unavailable { .. } => "unavailable",
            Self::Declined { .. } => "declined",
            Self::NoRegion(_) => "no-region",
            Self::NoKey(_) => "no-key",
            Self::NoKeyring(_) | Self::Key { .. } => "key",
            Self::Tags(_) | Self::DescriptionTooLong { .. } => "invalid",
            Self::ImageTaken(_) => "taken",
            Self::NoSource { .. } => "no-source",
            Self::Image { .. } => "image",
            Self::Store(_) => "store",
        }
    }
}

impl From<Invalid> for MachineError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
