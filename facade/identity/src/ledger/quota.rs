//! Limits: looking at them, and setting them.

use std::collections::BTreeSet;

use fleetwright_store::Transaction;

use super::{Ledger, LedgerError};
use crate::{Account, Limits, Principal, QuotaKind, Resource, Verb};

/// What an account may have and has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quota {
    /// Whose.
    pub account: Account,
    /// Every kind of the registry.
    pub lines: Vec<QuotaLine>,
}

/// What an account may have and has of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaLine {
    /// Of what.
    pub kind: QuotaKind,
    /// How much is used.
    pub used: u64,
    /// How much may be; nothing for a project that may have whatever its organization may.
    pub limit: Option<u64>,
}

impl Ledger {
    /// What an account may have and has. The principal must be permitted to read it.
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

    /// Adds to a transaction that an account has these limits, and the defaults for what they do not name. The principal
    /// must be permitted to update it. A limit that would come to stand below what is used is refused.
    pub async fn set_limits(
        &self,
        transaction: Transaction,
        principal: &Principal,
        account: &Account,
        limits: &Limits,
    ) -> Result<Transaction, LedgerError> {
        principal.authorize(Verb::Update, resource(account), &account.scope())?;
        self.kinds.check_limits(limits)?;
        let mut opened = self.account(&transaction, account).await?;
        let mut next = opened.record.clone();
        next.limits = limits.clone();
        let named = [&opened.record.limits, limits];
        let named: BTreeSet<_> = named.into_iter().flat_map(Limits::iter).collect();
        for (kind, _) in named {
            let (then, now) = (
                next.limit(&self.kinds, kind),
                opened.record.limit(&self.kinds, kind),
            );
            let used = next.used.of(kind);
            match then {
                // Only what is lowered: what stays says nothing about this change.
                Some(limit) if limit < used && now.is_none_or(|now| limit < now) => {
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
        opened.record = next;
        opened.close(transaction)
    }
}

fn resource(account: &Account) -> Resource {
    match account {
        Account::Organization(_) => Resource::Quotas,
        Account::Project(..) => Resource::ProjectQuotas,
    }
}
