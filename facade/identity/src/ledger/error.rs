//! Errors of the ledger.

use std::fmt;

use fleetwright_store::{Invalid, RecordId, StoreError};
use serde::{Deserialize, Serialize};

use crate::{Account, Principal, QuotaKind, Refused, Resource, ScopeClosed, UnknownKind, Verb};

/// An error of the ledger. Nothing was written, except possibly after a store error of unknown outcome.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The charge would exceed a limit (HTTP 403).
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The new limit is below the use (HTTP 409): release something first.
    #[error(
        "a limit of {limit} {kind} is below the {used} that {account} uses; release some first"
    )]
    LimitBelowUse {
        /// The account.
        account: Account,
        /// The kind.
        kind: QuotaKind,
        /// The current use.
        used: u64,
        /// The requested limit.
        limit: u64,
    },
    /// A kind that is not in the registry.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The principal may not see or set this quota (HTTP 403).
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The record has an allocation with other amounts or for another project: use `recharge`.
    #[error(
        "{pays_for} is already charged with other amounts or to another project; recharge it, or release it first"
    )]
    AllocationMismatch {
        /// The record.
        pays_for: RecordId,
    },
    /// The record has no allocation.
    #[error("{pays_for} is not charged; charge it first")]
    NotCharged {
        /// The record.
        pays_for: RecordId,
    },
    /// The recorded use is less than an allocation that is to be released.
    #[error(
        "the recorded use of {kind} by {account} is less than its allocations; repair the ledger"
    )]
    Inconsistent {
        /// The account.
        account: Account,
        /// The kind.
        kind: QuotaKind,
    },
    /// Other commits won too often (HTTP 503): retry later.
    #[error("the accounts of organization {organization} are written too often; retry later")]
    Contended {
        /// The organization.
        organization: crate::OrganizationId,
    },
    /// The allocation changes faster than it can be read (HTTP 503): retry later.
    #[error("the allocation of {pays_for} is written too often; retry later")]
    AllocationContended {
        /// The record.
        pays_for: RecordId,
    },
    /// The organization or project does not exist or is being deleted (HTTP 404, 409).
    #[error(transparent)]
    Closed(ScopeClosed),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LedgerError {
    /// Returns whether the error was decided by combining an account and an allocation.
    pub(super) fn depends_on_sums(&self) -> bool {
        matches!(self, Self::Exceeded(_) | Self::Inconsistent { .. })
    }
}

impl From<ScopeClosed> for LedgerError {
    fn from(closed: ScopeClosed) -> Self {
        if let ScopeClosed::Store(error) = closed {
            return Self::Store(error);
        }
        Self::Closed(closed)
    }
}

impl From<Invalid> for LedgerError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}

/// A limit that a charge would exceed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// The account.
    pub account: Account,
    /// The kind.
    pub kind: QuotaKind,
    /// The total after the charge.
    pub total: u64,
    /// The limit.
    pub limit: u64,
}

impl Exceeded {
    /// Returns whether a caller may know the amounts: those of an organization only with the permission to read its quota, so that a
    /// member of a project does not learn what the other projects use.
    pub fn is_visible_to(&self, principal: &Principal) -> bool {
        match self.account {
            Account::Organization(_) => principal
                .authorize(Verb::Read, Resource::Quotas, &self.account.scope())
                .is_ok(),
            Account::Project(..) => true,
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            kind,
            total,
            limit,
        } = self;
        let limit_of = match account {
            Account::Organization(_) => "the limit",
            Account::Project(..) => "the project's limit",
        };
        write!(
            f,
            "total {kind} allocation of {total} would exceed {limit_of} of {limit}"
        )
    }
}

impl std::error::Error for Exceeded {}
