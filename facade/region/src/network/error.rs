//! Why a call for a network, a security group or an authority failed.

use fleetwright_identity::{LedgerError, Principal, QuotaKind, Refused, ScopeClosed};
use fleetwright_runtime::entropy::EntropyError;
use fleetwright_store::{Invalid, StoreError};

use super::{InvalidNetwork, InvalidRule};
use crate::{
    ids::{NetworkId, RegionId},
    name::Name,
};

/// Why a call for a network, a security group or an SSH certificate authority failed. Nothing was changed, unless the
/// [store error](StoreError) says that the outcome is unknown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record does not exist, or is not visible to the caller.
    #[error("there is no {what} {id}")]
    NotFound {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// The record is visible to the caller, who lacks the permission.
    #[error("not permitted")]
    Refused(#[from] Refused),
    /// Another record in the same project, region or network has the name.
    #[error("the name {name} is taken by another {what}: choose another name")]
    NameTaken {
        /// The kind of record.
        what: &'static str,
        /// The name.
        name: Name,
    },
    /// Another record refers to it. Delete that one first.
    #[error("{what} {id} is in use by {by} and cannot be deleted: delete that first")]
    InUse {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
        /// A record that refers to it, as tenants know it: `instance` and its id for the server of an instance.
        by: String,
    },
    /// The record is being deleted and accepts nothing new.
    #[error("{what} {id} is being deleted: choose another {what}")]
    Deleting {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// The deletion of the network was not requested.
    #[error("network {0} is not being deleted: request its deletion first")]
    NotDeleting(NetworkId),
    /// The record is in the list twice.
    #[error("{what} {id} is given twice: leave one out")]
    Duplicate {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// The record belongs to another network or project.
    #[error("{what} {id} is not in {place}: choose one that is")]
    NotIn {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
        /// The network or project in which it must be.
        place: String,
    },
    /// The region does not exist.
    #[error("there is no region {0}: choose an existing one")]
    NoRegion(RegionId),
    /// The maximum is reached.
    #[error("{what} has {limit} {of} already, which is the maximum: delete one first")]
    TooMany {
        /// The network that has them.
        what: String,
        /// What is counted.
        of: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// The requested network is not valid.
    #[error(transparent)]
    InvalidNetwork(#[from] InvalidNetwork),
    /// The requested rules are not valid.
    #[error(transparent)]
    InvalidRule(#[from] InvalidRule),
    /// A quota would be exceeded, or the ledger failed.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The organization's quota would be exceeded. The caller may not read that quota, so the error has no amounts.
    #[error(
        "the organization's quota of {0} is used up: release some, or ask an administrator of the organization"
    )]
    OrganizationQuota(QuotaKind),
    /// Others changed the same records at every attempt. Try again.
    #[error("{what} {id} is being changed by others: retry")]
    Busy {
        /// The kind of record.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// No id could be created, because the system's entropy failed.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl From<LedgerError> for RecordError {
    fn from(error: LedgerError) -> Self {
        if let LedgerError::Store(error) = error {
            return Self::Store(error);
        }
        Self::Ledger(error)
    }
}

impl From<ScopeClosed> for RecordError {
    fn from(closed: ScopeClosed) -> Self {
        match closed {
            ScopeClosed::Missing { what, id } => Self::NotFound { what, id },
            ScopeClosed::Deleting { what, id } => Self::Deleting { what, id },
            ScopeClosed::Store(error) => Self::Store(error),
        }
    }
}

impl RecordError {
    /// Removes what the caller may not know of an exceeded quota.
    pub(super) fn for_caller(self, principal: &Principal) -> Self {
        if let Self::Ledger(LedgerError::Exceeded(exceeded)) = &self {
            if !exceeded.is_visible_to(principal) {
                return Self::OrganizationQuota(exceeded.kind.clone());
            }
        }
        self
    }
}

impl From<Invalid> for RecordError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
