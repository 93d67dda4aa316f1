//! Accounts: what an organization or a project may have, and has. The arithmetic of the ledger is here, and pure.

use std::fmt;

use fleetwright_store::{Document, Invalid, Key};
use serde::{Deserialize, Serialize};

use crate::{
    Amounts, Exceeded, LedgerError, Limits, OrganizationId, ProjectId, QuotaKind, QuotaKinds, Scope,
};

/// Whose quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// All of an organization.
    Organization(OrganizationId),
    /// One project's part of it.
    Project(OrganizationId, ProjectId),
}

impl Account {
    /// The organization that pays.
    pub fn organization(&self) -> OrganizationId {
        match self {
            Self::Organization(organization) | Self::Project(organization, _) => *organization,
        }
    }

    /// The same as a scope.
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

/// What is stored of an account: the limits by who sets them, the use by the ledger, in one record, so that one check
/// of its revision covers both.
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
    pub(crate) fn blank(account: &Account) -> Self {
        Self {
            organization: account.organization(),
            project: account.scope().project(),
            limits: Limits::new(),
            used: Amounts::new(),
        }
    }

    /// Whether it may go: it says nothing that its absence does not. An organization's stays, so that its revision never
    /// returns to what an audit has seen before.
    pub(crate) fn is_dispensable(&self) -> bool {
        self.project.is_some() && self.limits.is_empty() && self.used.is_nothing()
    }

    pub(crate) fn account(&self) -> Account {
        match self.project {
            Some(project) => Account::Project(self.organization, project),
            None => Account::Organization(self.organization),
        }
    }

    /// What holds for a kind: what was set, or the default. Nothing for a kind of which this project may have whatever
    /// its organization may.
    pub(crate) fn limit(&self, kinds: &QuotaKinds, kind: &QuotaKind) -> Option<u64> {
        let defaults = kinds.defaults(kind).ok()?;
        let default = match self.account() {
            Account::Organization(_) => Some(defaults.organization),
            Account::Project(..) => defaults.project,
        };
        self.limits.of(kind).or(default)
    }

    /// What is used when `before` becomes `after`. Only what grows is held against the limit: a default that was lowered
    /// stops nobody from giving back.
    pub(crate) fn used_after(
        &self,
        kinds: &QuotaKinds,
        before: &Amounts,
        after: &Amounts,
    ) -> Result<Amounts, LedgerError> {
        let mut used = self.used.clone();
        for kind in before.kinds_of_both(after) {
            let (old, new) = (before.of(kind), after.of(kind));
            let rest = used.of(kind).checked_sub(old);
            let rest = rest.ok_or_else(|| LedgerError::Inconsistent {
                account: self.account(),
                kind: kind.clone(),
            })?;
            let total = rest.saturating_add(new);
            if new > old {
                self.holds(kinds, kind, total)?;
            }
            used = used.with(kind.clone(), total);
        }
        Ok(used.normal())
    }

    fn holds(&self, kinds: &QuotaKinds, kind: &QuotaKind, total: u64) -> Result<(), LedgerError> {
        kinds.defaults(kind)?;
        match self.limit(kinds, kind) {
            // A total that no number holds is above every limit.
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
