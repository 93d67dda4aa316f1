//! Reading and setting limits.

use std::collections::BTreeSet;

use fleetwright_store::Transaction;

use super::{Ledger, LedgerError};
use crate::{Account, AuditEvent, Limits, Principal, QuotaKind, Resource, Verb};

/// The quota of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// The account.
    pub account: Account,
    /// One line per kind of the registry.
    pub lines: Vec<QuotaLine>,
}

/// Use and limit of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaLine {
    /// The kind.
    pub kind: QuotaKind,
    /// The current use.
    pub used: u64,
    /// The limit, or `None` for a project that is limited only by its organization.
    pub limit: Option<u64>,
}

impl Ledger {
    /// Returns the quota of an account.
    ///
    /// # Errors
    ///
    /// The principal may not read this quota, or the store failed.
    pub async fn quota(
        &self,
        principal: &Principal,
        account: &Account,
    ) -> Result<Quota, LedgerError> {
        principal.authorize(Verb::Read, resource(account), &account.scope())?;
        let record = self.account(&Transaction::new(), account).await?.record;
        let lines = self.kinds.iter().map(|(kind, _)| QuotaLine {
            kind: kind.clone(),
            used: record.used.of(kind),
            limit: record.limit(&self.kinds, kind),
        });
        Ok(Quota {
            account: *account,
            lines: lines.collect(),
        })
    }

    /// Adds new limits of an account to a transaction. Kinds that are not listed get their defaults.
    ///
    /// With a [tenancy](Self::with_tenancy) the transaction also checks that the organization or project is open, and adds an entry to
    /// the audit log.
    ///
    /// # Errors
    ///
    /// The principal may not update this quota, a kind is unknown, a limit is lowered below the use, or the organization or project does
    /// not exist or is being deleted.
    pub async fn set_limits(
        &self,
        transaction: Transaction,
        principal: &Principal,
        account: &Account,
        limits: &Limits,
    ) -> Result<Transaction, LedgerError> {
        principal.authorize(Verb::Update, resource(account), &account.scope())?;
        self.kinds.check_limits(limits)?;
        let mut account_record = self.account(&transaction, account).await?;
        let mut updated = account_record.record.clone();
        updated.limits = limits.clone();
        let changed = [&account_record.record.limits, limits];
        let changed: BTreeSet<_> = changed.into_iter().flat_map(Limits::iter).collect();
        for (kind, _) in changed {
            let (new_limit, old_limit) = (
                updated.limit(&self.kinds, kind),
                account_record.record.limit(&self.kinds, kind),
            );
            let used = updated.used.of(kind);
            match new_limit {
                // Only lowered limits are checked: an unchanged one can be below the use already.
                Some(limit)
                    if limit < used && old_limit.is_none_or(|old_limit| limit < old_limit) =>
                {
                    return Err(LedgerError::LimitBelowUse {
                        account: *account,
                        kind: kind.clone(),
                        used,
                        limit,
                    });
                }
                Some(_) | None => {}
            }
        }
        account_record.record = updated;
        let transaction = account_record.close(&self.accounts, transaction)?;
        let Some(tenancy) = &self.tenancy else {
            return Ok(transaction);
        };
        let scope = account.scope();
        let mut transaction = transaction;
        transaction.checks.extend(tenancy.check_open(&scope).await?);
        let actor = principal.actor();
        let event = AuditEvent::new(
            actor,
            Verb::Update,
            resource(account),
            account.key()?,
            scope,
        );
        Ok(tenancy.audit().add(transaction, &event)?)
    }
}

fn resource(account: &Account) -> Resource {
    match account {
        Account::Organization(_) => Resource::Quotas,
        Account::Project(..) => Resource::ProjectQuotas,
    }
}
