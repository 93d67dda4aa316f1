//! Errors of the server service.

use fleetwright_cloud_init::UserDataError;
use fleetwright_identity::Refused;
use fleetwright_store::{Invalid, StoreError};

use super::{
    ChangeMethod, DependencyError, Field, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, Owner, Plan,
    ServerId,
};
use crate::{ids::RegionId, secret::KeyError};

/// Why a call of [`Servers`](super::Servers) failed. Nothing was changed, unless the store reports that the outcome is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server does not exist, or is not visible to the caller.
    #[error("there is no server {0}")]
    NotFound(ServerId),
    /// The owner has no server, or it is not visible to the caller.
    #[error("there is no server of {0}")]
    NoServerOwnedBy(Owner),
    /// The caller may see the server and lacks the permission for this call.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// The region is not one that the service was built with.
    #[error("region {0} is unknown: choose a region that this service serves")]
    NoRegion(RegionId),
    /// The user data is too large.
    #[error(
        "user data of {actual} bytes is too large for server {id}: at most {MAX_USER_DATA_BYTES} are allowed"
    )]
    UserDataTooLarge {
        /// The server.
        id: ServerId,
        /// Its size in bytes.
        actual: usize,
    },
    /// cloud-init would not run the user data as intended.
    #[error("the user data of server {id} is refused")]
    UserData {
        /// The server.
        id: ServerId,
        /// Why. It never shows the user data.
        source: UserDataError,
    },
    /// The user data cannot be opened, so no machine can be launched with it and it cannot be copied.
    #[error(
        "the user data of server {id} is sealed with key {key}, which does not open it: restore that key in the keyring"
    )]
    Sealed {
        /// The server.
        id: ServerId,
        /// The id of the key.
        key: String,
    },
    /// There are too many security groups.
    #[error(
        "server {id} cannot have {actual} security groups: at most {MAX_SECURITY_GROUPS} are allowed; merge their rules into fewer groups"
    )]
    TooManySecurityGroups {
        /// The server.
        id: ServerId,
        /// How many there are.
        actual: usize,
    },
    /// A dependency of the server is missing or does not fit.
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    /// The key pair of the server could not be created.
    #[error("the key pair of server {id} could not be created; nothing was written: retry")]
    Key {
        /// The server.
        id: ServerId,
        /// Why. It contains no part of the key.
        source: KeyError,
    },
    /// The owner has another server, or the id belongs to another owner.
    #[error("server {id} of {owner} cannot be created: {reason}")]
    Taken {
        /// The requested server.
        id: ServerId,
        /// Its owner.
        owner: Owner,
        /// The obstacle.
        reason: &'static str,
    },
    /// The server is being deleted and accepts no other request.
    #[error("server {0} is being deleted: wait until it is deleted, then create it again")]
    Deleting(ServerId),
    /// The change is destructive, and the caller did not consent.
    #[error("the change of server {id} is destructive ({}): consent to it, or do not make it", losses(.plan))]
    NeedsConsent {
        /// The server.
        id: ServerId,
        /// The plan of the change.
        plan: Plan,
    },
    /// The server is not in a state that allows this request.
    #[error("server {id} is {found}: it must be {wanted}")]
    NotReady {
        /// The server.
        id: ServerId,
        /// The state it is in.
        found: &'static str,
        /// The state that the request needs.
        wanted: &'static str,
    },
    /// Other writers changed the record on every attempt.
    #[error("server {0} is being changed by others: retry")]
    Busy(ServerId),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ServerError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

fn losses(plan: &Plan) -> String {
    let losses = plan.destructive().map(|(field, way)| {
        let lost = match way {
            ChangeMethod::Replace => "its disk and addresses would be lost",
            ChangeMethod::Reimage => "the content of its root disk would be lost",
            ChangeMethod::Retag | ChangeMethod::NextLaunch | ChangeMethod::Resize => {
                "nothing would be lost"
            }
        };
        format!("{}: {lost}", name(field))
    });
    losses.collect::<Vec<_>>().join("; ")
}

fn name(field: Field) -> &'static str {
    match field {
        Field::Flavor => "flavor",
        Field::Image => "image",
        Field::Network => "network",
        Field::SecurityGroups => "security groups",
        Field::PublicIp => "public address",
        Field::SshAuthority => "SSH certificate authority",
        Field::UserData => "user data",
        Field::Tags => "tags",
    }
}
