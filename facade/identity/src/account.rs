//! Accounts: the limits and the use of an organization or a project.
//!
//! Owns the arithmetic of the ledger as pure functions. It never reads or writes a store.

use std::fmt;

use fleetwright_store::{Document, Invalid, Key, RecordId};
use serde::{Deserialize, Serialize};

use crate::{
    Amounts, Exceeded, LedgerError, Limits, OrganizationId, ProjectId, QuotaKind, QuotaKinds, Scope,
};

/// The owner of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// An organization with all its projects.
    Organization(OrganizationId),
    /// One project of an organization.
    Project(OrganizationId, ProjectId),
}

impl Account {
    /// Returns the organization that pays.
    pub fn organization(&self) -> OrganizationId {
        match self {
            Self::Organization(organization) | Self::Project(organization, _) => *organization,
        }
    }

    /// Returns the scope of the account.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Organization(organization) => Scope::Organization(*organization),
            Self::Project(organization, project) => Scope::Project(*organization, *project),
        }
    }

    pub(crate) fn key(&self) -> Result<Key, Invalid> {
        match self {
            Self::Organization(organization) => Key::new(organization.to_string()),
            Self::Project(organization, project) => Key::new(format!("{organization}/{project}")),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.scope(), f)
    }
}

/// The stored account.
///
/// `limits` is written by [`Ledger::set_limits`](crate::Ledger::set_limits), `used` by charges. Both
/// are in one record, so that one check of its revision covers both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountRecord {
    pub(crate) organization: OrganizationId,
    pub(crate) project: Option<ProjectId>,
    pub(crate) limits: Limits,
    pub(crate) used: Amounts,
}

impl Document for AccountRecord {
    const KIND: &'static str = "quota-account";
}

impl AccountRecord {
    /// The id of the record of an account.
    pub(crate) fn id(account: &Account) -> Result<RecordId, Invalid> {
        RecordId::new(Self::KIND, account.key()?.as_str())
    }

    pub(crate) fn empty(account: &Account) -> Self {
        Self {
            organization: account.organization(),
            project: account.scope().project(),
            limits: Limits::new(),
            used: Amounts::new(),
        }
    }

    /// Returns whether the record can be deleted, because it says the same as its absence.
    ///
    /// The record of an organization is deleted only with the organization: an audit relies on its revision, which would
    /// repeat after a deletion.
    pub(crate) fn is_deletable(&self) -> bool {
        self.project.is_some() && self.limits.is_empty() && self.used.is_zero()
    }

    pub(crate) fn account(&self) -> Account {
        match self.project {
            Some(project) => Account::Project(self.organization, project),
            None => Account::Organization(self.organization),
        }
    }

    /// Returns the limit of a kind: the one that was set, or the default.
    ///
    /// `None` means that a project is limited only by its organization.
    pub(crate) fn limit(&self, kinds: &QuotaKinds, kind: &QuotaKind) -> Option<u64> {
        let defaults = kinds.defaults(kind).ok()?;
        let default = match self.account() {
            Account::Organization(_) => Some(defaults.organization),
            Account::Project(..) => defaults.project,
        };
        self.limits.of(kind).or(default)
    }

    /// Returns the use after an allocation changed from `before` to `after`.
    ///
    /// Only a kind that grows is compared with its limit, so an account above a lowered default can
    /// still release.
    pub(crate) fn used_after(
        &self,
        kinds: &QuotaKinds,
        before: &Amounts,
        after: &Amounts,
    ) -> Result<Amounts, LedgerError> {
        let mut used = self.used.clone();
        for kind in before.kinds_with(after) {
            let (old, new) = (before.of(kind), after.of(kind));
            let remaining = used.of(kind).checked_sub(old);
            let remaining = remaining.ok_or_else(|| LedgerError::Inconsistent {
                account: self.account(),
                kind: kind.clone(),
            })?;
            let total = remaining.saturating_add(new);
            if new > old {
                self.check_limit(kinds, kind, total)?;
            }
            used = used.with(kind.clone(), total);
        }
        Ok(used.without_zeros())
    }

    fn check_limit(
        &self,
        kinds: &QuotaKinds,
        kind: &QuotaKind,
        total: u64,
    ) -> Result<(), LedgerError> {
        kinds.defaults(kind)?;
        match self.limit(kinds, kind) {
            // A saturated total is above every limit.
            Some(limit) if total > limit || total == u64::MAX => Err(Exceeded {
                account: self.account(),
                kind: kind.clone(),
                total,
                limit,
            }
            .into()),
            Some(_) | None => Ok(()),
        }
    }
}
