//! What the ledger refuses, and why.

use std::fmt;

use fleetwright_store::{Invalid, RecordId, StoreError};
use serde::{Deserialize, Serialize};

use crate::{Account, QuotaKind, Refused, UnknownKind};

/// Why the ledger does not do what it was asked to. Nothing was written, unless it is a store's unknown outcome.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There would be more than the limit (HTTP 403).
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// A limit would be below what is used (HTTP 409): give back first.
    #[error(
        "a limit of {limit} {kind} is below the {used} that {account} uses: release some first"
    )]
    LimitBelowUse {
        /// Whose limit.
        account: Account,
        /// Of what.
        kind: QuotaKind,
        /// What is used.
        used: u64,
        /// What the limit was to be.
        limit: u64,
    },
    /// A kind that is not in the registry.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The principal may not see or set this quota (HTTP 403).
    #[error(transparent)]
    Refused(#[from] Refused),
    /// There is an allocation for this, of another size or for another project: charge it anew with `recharge`.
    #[error(
        "{pays_for} is charged already, with other amounts or to another project: recharge it, or release it first"
    )]
    AllocationMismatch {
        /// What is paid for.
        pays_for: RecordId,
    },
    /// There is no allocation for this.
    #[error("{pays_for} is not charged: charge it first")]
    NotCharged {
        /// What was to be paid for.
        pays_for: RecordId,
    },
    /// The use on record is less than what an allocation gives back.
    #[error(
        "the use of {kind} on record for {account} is less than its allocations: repair the ledger"
    )]
    Inconsistent {
        /// Whose use.
        account: Account,
        /// Of what.
        kind: QuotaKind,
    },
    /// Others were faster too often (HTTP 503): the same again, later.
    #[error("the accounts of organization {organization} are written too often: try again later")]
    Contended {
        /// Whose accounts.
        organization: crate::OrganizationId,
    },
    /// The allocation for this changes faster than it is read (HTTP 503): the same again, later.
    #[error("the allocation for {pays_for} is written too often: try again later")]
    AllocationContended {
        /// What is paid for.
        pays_for: RecordId,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LedgerError {
    /// Whether it was decided by adding up an account and an allocation.
    pub(super) fn is_about_sums(&self) -> bool {
        matches!(self, Self::Exceeded(_) | Self::Inconsistent { .. })
    }
}

impl From<Invalid> for LedgerError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// That a limit would be exceeded, with what the total would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// Whose limit.
    pub account: Account,
    /// Of what.
    pub kind: QuotaKind,
    /// How much there would be.
    pub total: u64,
    /// How much there may be.
    pub limit: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            kind,
            total,
            limit,
        } = self;
        let whose = match account {
            Account::Organization(_) => "the limit",
            Account::Project(..) => "the project's limit",
        };
        write!(
            f,
            "total {kind} allocation of {total} would exceed {whose} of {limit}"
        )
    }
}

impl std::error::Error for Exceeded {}
