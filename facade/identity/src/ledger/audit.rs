//! Audit and repair: compares the recorded use with the sum of the allocations.

use std::collections::{BTreeMap, BTreeSet};

use fleetwright_store::{Check, IndexName, RecordId, Revision, Transaction};

use super::{Allocation, Ledger, LedgerError, MAX_RACES, OpenAccount, ReadState};
use crate::{
    Account, Amounts, AuditEvent, OrganizationId, Principal, QuotaKind, Resource, Scope, Verb,
    account::AccountRecord,
};

/// The number of accounts that one transaction repairs.
const REPAIRS_PER_TRANSACTION: usize = 100;

/// The result of auditing an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// The number of allocations.
    pub allocations: usize,
    /// The accounts whose recorded use differs from the sum of their allocations.
    pub differences: Vec<Difference>,
    /// Records that have an allocation but do not exist in this store. Find out why before you release
    /// them.
    pub unused: Vec<RecordId>,
}

/// A recorded use that differs from the sum of the allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The account.
    pub account: Account,
    /// The kind.
    pub kind: QuotaKind,
    /// The recorded use.
    pub recorded: u64,
    /// The sum of the allocations.
    pub allocated: u64,
}

impl Ledger {
    /// Compares the recorded use of an organization with the sum of its allocations.
    ///
    /// It reads all of them, so call it from a monitor and not in a request. The result describes one
    /// moment: if the organization's account changes meanwhile, the audit starts again.
    ///
    /// # Errors
    ///
    /// An account or allocation cannot be read, or the accounts change too often.
    pub async fn audit(&self, organization: OrganizationId) -> Result<Audit, LedgerError> {
        let _guard = self.queue(organization).turn().await;
        Ok(self.scan(organization).await?.audit)
    }

    /// Sets the recorded use to the sum of the allocations, and returns the differences that it repaired. It needs the permission to update
    /// the allocations of the organization.
    ///
    /// With a [tenancy](Self::with_tenancy), each of its transactions adds an entry to the audit log.
    ///
    /// # Errors
    ///
    /// The permission is missing; or as for [`audit`](Self::audit).
    pub async fn repair(
        &self,
        principal: &Principal,
        organization: OrganizationId,
    ) -> Result<Audit, LedgerError> {
        let (verb, resource) = (Verb::Update, Resource::Allocations);
        let scope = Scope::Organization(organization);
        principal.authorize(verb, resource, &scope)?;
        let _guard = self.queue(organization).turn().await;
        let mut repaired = Vec::new();
        for _ in 0..MAX_RACES {
            let LedgerScan {
                audit,
                check,
                mut corrections,
            } = self.scan(organization).await?;
            if corrections.is_empty() {
                return Ok(Audit {
                    differences: repaired,
                    ..audit
                });
            }
            corrections.truncate(REPAIRS_PER_TRANSACTION);
            let mut transaction = Transaction::new().check(check);
            let mut found = Vec::new();
            for Correction {
                opened,
                differences,
            } in corrections
            {
                transaction = opened.close(&self.accounts, transaction)?;
                found.extend(differences);
            }
            if let Some(tenancy) = &self.tenancy {
                let event = AuditEvent::new(principal.actor(), verb, resource, organization, scope);
                transaction = tenancy.audit().add(transaction, &event)?;
            }
            match self.store.commit(&transaction).await {
                Ok(_) => repaired.extend(found),
                Err(error) if self.is_ledger_conflict(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(LedgerError::Contended { organization })
    }

    async fn scan(&self, organization: OrganizationId) -> Result<LedgerScan, LedgerError> {
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
            let accounts = accounts.items.into_iter().map(|found| OpenAccount {
                id: self.accounts.id(&found.key),
                read: ReadState::At(found.base()),
                record: found.value,
            });
            let accounts: Vec<_> = accounts.collect();
            let allocations: Vec<_> = allocations.items.into_iter().map(|a| a.value).collect();
            let unused = self.unused(&allocations).await?;
            let after = self
                .accounts
                .get(&id.key)
                .await?
                .map(|found| found.revision);
            // Every change of an allocation writes this account, so none has changed in between.
            if before == after {
                return self.compare(id, before, accounts, &allocations, unused);
            }
        }
        Err(LedgerError::Contended { organization })
    }

    async fn unused(&self, allocations: &[Allocation]) -> Result<Vec<RecordId>, LedgerError> {
        let mut unused = Vec::new();
        for Allocation { pays_for, .. } in allocations {
            let is_stored_here = self.store.schema().indexes(&pays_for.kind).is_ok();
            if is_stored_here && self.store.get(pays_for).await?.is_none() {
                unused.push(pays_for.clone());
            }
        }
        Ok(unused)
    }

    fn compare(
        &self,
        id: RecordId,
        at: Option<Revision>,
        accounts: Vec<OpenAccount>,
        allocations: &[Allocation],
        unused: Vec<RecordId>,
    ) -> Result<LedgerScan, LedgerError> {
        let mut sums = BTreeMap::<Account, Amounts>::new();
        for allocation in allocations {
            for account in allocation.payers() {
                let sum = sums.entry(account).or_default();
                *sum = add(sum, &allocation.amounts);
            }
        }
        let mut opened: BTreeMap<_, _> = accounts
            .into_iter()
            .map(|opened| (opened.record.account(), opened))
            .collect();
        for account in sums.keys() {
            if !opened.contains_key(account) {
                let id = self.accounts.id(&account.key()?);
                let record = AccountRecord::empty(account);
                let read = ReadState::Absent;
                opened.insert(*account, OpenAccount { id, read, record });
            }
        }
        let mut scan = LedgerScan {
            audit: Audit {
                allocations: allocations.len(),
                differences: Vec::new(),
                unused,
            },
            check: match at {
                Some(revision) => Check::At(id, revision),
                None => Check::Absent(id),
            },
            corrections: Vec::new(),
        };
        for (account, mut opened) in opened {
            let allocated = sums.remove(&account).unwrap_or_default().without_zeros();
            let differences = differences(account, &opened.record.used, &allocated);
            if !differences.is_empty() {
                scan.audit.differences.extend(differences.clone());
                opened.record.used = allocated;
                scan.corrections.push(Correction {
                    opened,
                    differences,
                });
            }
        }
        Ok(scan)
    }
}

/// The result of one pass over all records, with the corrections that it needs.
struct LedgerScan {
    audit: Audit,
    /// Holds while no allocation of the organization has changed.
    check: Check,
    corrections: Vec<Correction>,
}

/// An account with its correct use.
struct Correction {
    opened: OpenAccount,
    differences: Vec<Difference>,
}

fn add(sum: &Amounts, more: &Amounts) -> Amounts {
    let kinds: BTreeSet<_> = sum.kinds_with(more);
    let items = kinds.into_iter().map(|kind| {
        let total = sum.of(kind).saturating_add(more.of(kind));
        (kind.clone(), total)
    });
    items.collect()
}

fn differences(account: Account, recorded: &Amounts, allocated: &Amounts) -> Vec<Difference> {
    let kinds = recorded.kinds_with(allocated).into_iter();
    let items = kinds.map(|kind| Difference {
        account,
        kind: kind.clone(),
        recorded: recorded.of(kind),
        allocated: allocated.of(kind),
    });
    items
        .filter(|difference| difference.recorded != difference.allocated)
        .collect()
}
