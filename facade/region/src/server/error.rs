//! Why a server was not changed or shown.

use fleetwright_cloud_init::UserDataError;
use fleetwright_identity::Refused;
use fleetwright_store::{Invalid, StoreError};

use super::{
    ChangeMethod, DependencyError, Field, MAX_SECURITY_GROUPS, MAX_USER_DATA_BYTES, Owner, Plan,
    ServerId,
};
use crate::{ids::RegionId, secret::KeyError};

/// Why a call of [`Servers`](super::Servers) failed. Nothing was changed, unless the store says that it does not know.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is no such server, or the caller may not know of it.
    #[error("there is no server {0}")]
    NotFound(ServerId),
    /// There is no server of this owner, or the caller may not know of it.
    #[error("there is no server of {0}")]
    NoServerOwnedBy(Owner),
    /// The caller may know of it and may not do this.
    #[error("not permitted")]
    Refused(#[source] Refused),
    /// Nobody said what this region's cloud can do.
    #[error("there is no region {0} here: ask for a server in one that is")]
    NoRegion(RegionId),
    /// The user data does not fit into a record.
    #[error(
        "user data of {actual} bytes is too large for server {id}: at most {MAX_USER_DATA_BYTES} are taken"
    )]
    UserDataTooLarge {
        /// Which server.
        id: ServerId,
        /// How large it is.
        actual: usize,
    },
    /// A machine would not boot with the user data as they are meant.
    #[error("the user data of server {id} are not taken")]
    UserData {
        /// Which server.
        id: ServerId,
        /// Why. It never shows them.
        source: UserDataError,
    },
    /// There are more security groups than a server takes.
    #[error(
        "server {id} cannot have {actual} security groups: at most {MAX_SECURITY_GROUPS} are taken; put their rules into fewer"
    )]
    TooManySecurityGroups {
        /// Which server.
        id: ServerId,
        /// How many they are.
        actual: usize,
    },
    /// It may not stand where it was asked to.
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    /// Its key pair could not be made.
    #[error("the key pair of server {id} could not be made: nothing was; ask again")]
    Key {
        /// Which server.
        id: ServerId,
        /// Why. It never holds a part of the key.
        source: KeyError,
    },
    /// The owner's server is another one, or the id is another owner's.
    #[error("server {id} of {owner} cannot be made: {reason}")]
    Taken {
        /// The server that was asked for.
        id: ServerId,
        /// Its owner.
        owner: Owner,
        /// What is in the way.
        reason: &'static str,
    },
    /// It is being deleted, and takes no other wish.
    #[error("server {0} is being deleted: wait until it is gone, then make it anew")]
    Deleting(ServerId),
    /// The change would destroy something, and the caller did not consent.
    #[error("the change of server {id} is destructive ({}): consent to it, or leave it", words(.plan))]
    NeedsConsent {
        /// Which server.
        id: ServerId,
        /// What would happen.
        plan: Plan,
    },
    /// It is not in a state in which that can be asked for.
    #[error("server {id} is {found}: it must be {wanted}")]
    NotReady {
        /// Which server.
        id: ServerId,
        /// What it is.
        found: &'static str,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// Others wrote the record again and again.
    #[error("server {0} is being changed by others: ask again")]
    Busy(ServerId),
    /// The store did not do it.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for ServerError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

fn words(plan: &Plan) -> String {
    let words = plan.destructive().map(|(field, way)| {
        let lost = match way {
            ChangeMethod::Replace => "its disk and addresses would be lost",
            ChangeMethod::Reimage => "what is on its root disk would be lost",
            ChangeMethod::Retag | ChangeMethod::NextLaunch | ChangeMethod::Resize => {
                "nothing would be lost"
            }
        };
        format!("{}: {lost}", name(field))
    });
    words.collect::<Vec<_>>().join("; ")
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
