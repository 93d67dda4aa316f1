//! Why a network, a group or an authority was not made, shown or deleted.

use fleetwright_identity::Refused;
use fleetwright_runtime::entropy::EntropyError;
use fleetwright_store::{Invalid, StoreError};

use super::{InvalidNetwork, InvalidRule};
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
};

/// Why a call failed. Nothing was changed, unless the store says that it does not know.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// There is none, or the caller may not know that there is.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
    },
    /// The caller may know of it and may not do this.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// Another one in the same place has the name.
    #[error("there is a {what} {name} already: choose another name")]
    NameTaken {
        /// What.
        what: &'static str,
        /// Which name.
        name: Name,
    },
    /// Something stands on it.
    #[error("{what} {id} is in use by {by} and cannot be deleted: delete that first")]
    InUse {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
        /// The kind and the key of one that uses it.
        by: String,
    },
    /// It is being deleted, and nothing new stands on it.
    #[error("{what} {id} is being deleted")]
    Deleting {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
    },
    /// It was not asked to go.
    #[error("network {0} is not being deleted: ask for that first")]
    NotDeleting(NetworkId),
    /// It is given twice.
    #[error("{what} {id} is given twice: leave one out")]
    Duplicate {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
    },
    /// It is there, and not where it would have to be.
    #[error("{what} {id} is not in {wanted}: choose one that is")]
    NotIn {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
        /// Where it would have to be.
        wanted: String,
    },
    /// There is no such region.
    #[error("there is no region {0}: ask for one that is there")]
    NoRegion(RegionId),
    /// There are as many as there may be.
    #[error("{what} has {limit} {of} already, which is the most: delete one first")]
    TooMany {
        /// Where.
        what: String,
        /// Of what.
        of: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// What was asked for is no network.
    #[error(transparent)]
    InvalidNetwork(#[from] InvalidNetwork),
    /// What was asked for are no rules.
    #[error(transparent)]
    InvalidRule(#[from] InvalidRule),
    /// Others wrote the same records again and again.
    #[error("{what} {id} is being changed by others: ask again")]
    Busy {
        /// What.
        what: &'static str,
        /// Which.
        id: String,
    },
    /// There is no id without randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<Invalid> for RecordError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
