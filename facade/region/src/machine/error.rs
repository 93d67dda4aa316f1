//! Errors of the access to machines.

use std::time::Duration;

use fleetwright::{InvalidValue, ProvisionError};
use fleetwright_identity::{LedgerError, Refused, ScopeClosed, Verb};
use fleetwright_store::{Invalid, StoreError};

use crate::{
    catalog::ImageError,
    ids::{ImageId, RegionId},
    name::Name,
    secret::KeyError,
    server::ServerId,
    snapshot::MAX_DESCRIPTION_CHARS,
};

/// Why a call of [`MachineAccess`](super::MachineAccess) failed, and what to do. No error contains console output, a key, or the URL of a
/// console.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The server does not exist, or is not visible to the caller.
    #[error("there is no server {0}")]
    NotFound(ServerId),
    /// The caller may see the server and lacks the permission for this call.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// The machine is not ready for this call. Retry.
    #[error("server {id} is {found}: it must be {wanted}; retry in {retry_after:?}")]
    NotReady {
        /// The server.
        id: ServerId,
        /// The state it is in.
        found: &'static str,
        /// The state that the call needs.
        wanted: &'static str,
        /// When to retry.
        retry_after: Duration,
    },
    /// The server has no machine, and gets none until a replacement is requested.
    #[error("server {id} {found}: request a replacement, or delete it")]
    NoMachine {
        /// The server.
        id: ServerId,
        /// Why it has no machine.
        found: &'static str,
    },
    /// The server is being deleted.
    #[error("server {0} is being deleted: its machine cannot be accessed")]
    Deleting(ServerId),
    /// The region's cloud does not support this call.
    #[error("the cloud of region {region} does not support {}", .verb.as_str())]
    Unsupported {
        /// The region.
        region: RegionId,
        /// The call.
        verb: Verb,
    },
    /// The cloud cannot be used now: throttled, unreachable, or bad credentials.
    #[error("the cloud cannot perform {} for server {id} now: retry in {retry_after:?}", .verb.as_str())]
    Unavailable {
        /// The server.
        id: ServerId,
        /// The call.
        verb: Verb,
        /// When to retry.
        retry_after: Duration,
        /// The error of the cloud.
        source: ProvisionError,
    },
    /// The cloud refuses the call permanently.
    #[error("the cloud refuses {} for server {id}", .verb.as_str())]
    Declined {
        /// The server.
        id: ServerId,
        /// The call.
        verb: Verb,
        /// The error of the cloud.
        source: ProvisionError,
    },
    /// The region is not one that this service was built with.
    #[error("region {0} is not served here: send the request to the service that serves it")]
    NoRegion(RegionId),
    /// The server has no key pair.
    #[error("server {0} has no key pair")]
    NoKey(ServerId),
    /// The server has a key pair, and this program has no keyring to decrypt it.
    #[error("the key of server {0} cannot be decrypted: start this program with the keyring")]
    NoKeyring(ServerId),
    /// The key pair cannot be decrypted.
    #[error("the key of server {id} cannot be decrypted: the operator must check the keyring")]
    Key {
        /// The server.
        id: ServerId,
        /// Why. It contains no part of the key.
        source: KeyError,
    },
    /// A tag is invalid, or exceeds the limits of the cloud.
    #[error("the tags of the image are refused")]
    Tags(#[source] InvalidValue),
    /// The description is too long.
    #[error(
        "a description of {actual} characters is too long: at most {MAX_DESCRIPTION_CHARS} are allowed"
    )]
    DescriptionTooLong {
        /// Its length in characters.
        actual: usize,
    },
    /// Another image of the project has the name.
    #[error("the project has another image {0}: choose another name, or delete that image first")]
    ImageNameTaken(Name),
    /// A quota of images would be exceeded, or the ledger failed.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The project of the image does not exist or is being deleted.
    #[error(transparent)]
    Closed(ScopeClosed),
    /// The image that the machine was booted from is not in the catalog.
    #[error(
        "server {id} was booted from image {image}, which is not in the catalog: add it to the catalog again"
    )]
    NoSource {
        /// The server.
        id: ServerId,
        /// That image.
        image: ImageId,
    },
    /// The image could not be recorded.
    #[error("image {name} was not recorded: retry")]
    Image {
        /// The name of the image.
        name: Name,
        /// Why.
        source: ImageError,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl MachineError {
    /// Returns the delay before a retry, if a retry can succeed.
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
            | Self::ImageNameTaken(_)
            | Self::Ledger(_)
            | Self::Closed(_)
            | Self::NoSource { .. }
            | Self::Image { .. }
            | Self::Store(_) => None,
        }
    }

    /// Returns the name in metrics.
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
            Self::ImageNameTaken(_) => "taken",
            Self::Ledger(_) => "quota",
            Self::Closed(_) => "closed",
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
