//! Adding everything up again: whether what is on record is the sum of the allocations, and making it so.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_store::{Check, IndexName, RecordId, Revision, Transaction};

use super::{Allocation, Ledger, LedgerError, MAX_RACES, Opened, Seen};
use crate::{Account, Amounts, OrganizationId, QuotaKind, account::AccountRecord};

/// How many accounts one transaction mends.
const MENDED_AT_ONCE: usize = 100;

/// What an audit of an organization has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// How many allocations there are.
    pub allocations: usize,
    /// Where the use on record is not the sum of the allocations.
    pub differences: Vec<Difference>,
    /// What is paid for and not there, of the kinds that this store keeps. Release it once it is known why.
    pub unneeded: Vec<RecordId>,
}

/// A use that is on record and not the sum of the allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Whose.
    pub account: Account,
    /// Of what.
    pub kind: QuotaKind,
    /// What is on record.
    pub recorded: u64,
    /// What the allocations come to.
    pub allocated: u64,
}

impl Ledger {
    /// Adds up all allocations of an organization and compares. It reads everything, so it is for a monitor and not for a
    /// request. All of what it tells was so at one moment: if the organization's account changes meanwhile it begins anew.
    ///
    /// An allocation that cannot be read is an error: nobody knows what it pays for.
    pub async fn audit(&self, organization: OrganizationId) -> Result<Audit, LedgerError> {
        let _turn = self.lane(organization).lock().await;
        Ok(self.survey(organization).await?.audit)
    }

    /// Sets the use on record to the sum of the allocations, and answers what the difference was.
    pub async fn repair(&self, organization: OrganizationId) -> Result<Audit, LedgerError> {
        let _turn = self.lane(organization).lock().await;
        let mut mended = Vec::new();
        for _ in 0..MAX_RACES {
            let Survey {
                audit,
                check,
                mut wrong,
            } = self.survey(organization).await?;
            if wrong.is_empty() {
                return Ok(Audit {
                    differences: mended,
                    ..audit
                });
            }
            wrong.truncate(MENDED_AT_ONCE);
            let mut transaction = Transaction::new().check(check);
            let mut differences = Vec::new();
            for Wrong { opened, told } in wrong {
                transaction = opened.close(transaction)?;
                differences.extend(told);
            }
            match self.store.commit(&transaction).await {
                Ok(_) => mended.extend(differences),
                Err(error) if self.is_ledger_conflict(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LedgerError::Contended { organization })
    }

    async fn survey(&self, organization: OrganizationId) -> Result<Survey, LedgerError> {
        let id = self
            .accounts
            .id(&Account::Organization(organization).key()?);
        let by = IndexName::new("organization")?;
        let owner = organization.to_string();
        for _ in 0..MAX_RACES {
            let before = self
                .accounts
                .get(&id.key)
                .await?
                .map(|found| found.revision);
            let accounts = self.accounts.by(&by, owner.as_str());
            let accounts = self.accounts.list_all(&accounts).await?;
            let allocations = self.allocations.by(&by, owner.as_str());
            let allocations = self.allocations.list_all(&allocations).await?;
            let damaged = accounts.damaged.into_iter().chain(allocations.damaged);
            if let Some(damaged) = damaged.into_iter().next() {
                return Err(LedgerError::Store(damaged.into()));
            }
            let accounts = accounts.items.into_iter().map(|found| Opened {
                id: self.accounts.id(&found.key),
                seen: Seen::At(found.revision),
                record: found.value,
            });
            let accounts: Vec<_> = accounts.collect();
            let allocations: Vec<_> = allocations.items.into_iter().map(|a| a.value).collect();
            let unneeded = self.unneeded(&allocations).await?;
            let after = self
                .accounts
                .get(&id.key)
                .await?
                .map(|found| found.revision);
            // Whoever changes an allocation writes this account, so none has changed in between.
            if before == after {
                return self.added_up(id, before, accounts, &allocations, unneeded);
            }
        }
        Err(LedgerError::Contended { organization })
    }

    async fn unneeded(&self, allocations: &[Allocation]) -> Result<Vec<RecordId>, LedgerError> {
        let mut unneeded = Vec::new();
        for Allocation { pays_for, .. } in allocations {
            let is_kept_here = self.store.schema().indexes(&pays_for.kind).is_ok();
            if is_kept_here && self.store.get(pays_for).await?.is_none() {
                unneeded.push(pays_for.clone());
            }
        }
        Ok(unneeded)
    }

    fn added_up(
        &self,
        id: RecordId,
        at: Option<Revision>,
        accounts: Vec<Opened>,
        allocations: &[Allocation],
        unneeded: Vec<RecordId>,
    ) -> Result<Survey, LedgerError> {
        let mut sums = BTreeMap::<Account, Amounts>::new();
        for allocation in allocations {
            for account in allocation.payers() {
                let sum = sums.entry(account).or_default();
                *sum = added(sum, &allocation.amounts);
            }
        }
        let mut opened: BTreeMap<_, _> = accounts
            .into_iter()
            .map(|opened| (opened.record.account(), opened))
            .collect();
        for account in sums.keys() {
            if !opened.contains_key(account) {
                let id = self.accounts.id(&account.key()?);
                let record = AccountRecord::blank(account);
                let seen = Seen::Absent;
                opened.insert(*account, Opened { id, seen, record });
            }
        }
        let mut survey = Survey {
            audit: Audit {
                allocations: allocations.len(),
                differences: Vec::new(),
                unneeded,
            },
            check: match at {
                Some(revision) => Check::At(id, revision),
                None => Check::Absent(id),
            },
            wrong: Vec::new(),
        };
        for (account, mut opened) in opened {
            let allocated = sums.remove(&account).unwrap_or_default().normal();
            let differences = differences(account, &opened.record.used, &allocated);
            if !differences.is_empty() {
                survey.audit.differences.extend(differences.clone());
                opened.record.used = allocated;
                let told = differences;
                survey.wrong.push(Wrong { opened, told });
            }
        }
        Ok(survey)
    }
}

/// What was found, and what it takes to mend it.
struct Survey {
    audit: Audit,
    /// That no allocation of the organization has changed since.
    check: Check,
    wrong: Vec<Wrong>,
}

/// An account with what its use should be.
struct Wrong {
    opened: Opened,
    told: Vec<Difference>,
}

fn added(sum: &Amounts, more: &Amounts) -> Amounts {
    let kinds: BTreeSet<_> = sum.kinds_of_both(more);
    let each = kinds.into_iter().map(|kind| {
        let total = sum.of(kind).saturating_add(more.of(kind));
        (kind.clone(), total)
    });
    each.collect()
}

fn differences(account: Account, recorded: &Amounts, allocated: &Amounts) -> Vec<Difference> {
    let kinds = recorded.kinds_of_both(allocated).into_iter();
    let each = kinds.map(|kind| Difference {
        account,
        kind: kind.clone(),
        recorded: recorded.of(kind),
        allocated: allocated.of(kind),
    });
    each.filter(|difference| difference.recorded != difference.allocated)
        .collect()
}
