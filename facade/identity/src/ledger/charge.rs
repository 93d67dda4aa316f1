//! Charges, recharges and releases, as additions to a transaction.

use fleetwright_store::{Check, Key, RecordId, Transaction, Versioned};

use super::{Allocation, Ledger, LedgerError, MAX_RACES};
use crate::{Account, Amounts, schema::key_for};

/// The result of a recharge.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recharge {
    /// The transaction with the recharge.
    pub transaction: Transaction,
    /// The amounts before. A recharge with them undoes this one exactly.
    pub before: Amounts,
}

impl Ledger {
    /// Adds a charge to a transaction. Several charges can be in one transaction.
    ///
    /// If the same allocation exists already, only a check that it stays is added.
    ///
    /// # Errors
    ///
    /// The charge would exceed a limit of the organization or the project, a kind is unknown, or the
    /// record has a different allocation.
    pub async fn charge(
        &self,
        transaction: Transaction,
        allocation: &Allocation,
    ) -> Result<Transaction, LedgerError> {
        self.kinds.check_amounts(&allocation.amounts)?;
        let allocation = allocation.with_amounts(&allocation.amounts);
        let decide = |found: Option<&Allocation>| match found {
            Some(found) if *found != allocation => Err(LedgerError::AllocationMismatch {
                pays_for: allocation.pays_for.clone(),
            }),
            Some(_) | None => Ok(Some(allocation.clone())),
        };
        let changed = self.change(transaction, &allocation.pays_for, decide);
        Ok(changed.await?.0)
    }

    /// Adds a change of an allocation's amounts to a transaction. A decrease is never refused.
    ///
    /// # Errors
    ///
    /// There is no allocation, or an increase would exceed a limit.
    pub async fn recharge(
        &self,
        transaction: Transaction,
        pays_for: &RecordId,
        amounts: &Amounts,
    ) -> Result<Recharge, LedgerError> {
        self.kinds.check_amounts(amounts)?;
        let decide = |found: Option<&Allocation>| match found {
            Some(found) => Ok(Some(found.with_amounts(amounts))),
            None => Err(LedgerError::NotCharged {
                pays_for: pays_for.clone(),
            }),
        };
        let (transaction, before) = self.change(transaction, pays_for, decide).await?;
        Ok(Recharge {
            transaction,
            before: before.map(|found| found.amounts).unwrap_or_default(),
        })
    }

    /// Adds the release of an allocation to a transaction. If there is none, only a check that it stays
    /// absent is added.
    pub async fn release(
        &self,
        transaction: Transaction,
        pays_for: &RecordId,
    ) -> Result<Transaction, LedgerError> {
        let changed = self.change(transaction, pays_for, |_| Ok(None));
        Ok(changed.await?.0)
    }

    /// Adds a change of an allocation to what `decide` returns, and returns the old allocation too.
    async fn change(
        &self,
        transaction: Transaction,
        pays_for: &RecordId,
        decide: impl Fn(Option<&Allocation>) -> Result<Option<Allocation>, LedgerError>,
    ) -> Result<(Transaction, Option<Allocation>), LedgerError> {
        let key = key_for(pays_for)?;
        let mut found = self.allocations.get(&key).await?;
        for _ in 0..MAX_RACES {
            let next = decide(found.as_ref().map(|found| &found.value))?;
            let added = self.add(transaction.clone(), &key, found.as_ref(), next.as_ref());
            match added.await {
                Ok(transaction) => return Ok((transaction, found.map(|found| found.value))),
                // The account is read after the allocation. If the allocation changed in between, the sum mixes
                // two moments and the error cannot be trusted.
                Err(error) if error.depends_on_sums() => {
                    let now = self.allocations.get(&key).await?;
                    if now == found {
                        return Err(error);
                    }
                    found = now;
                }
                Err(error) => return Err(error),
            }
        }
        Err(LedgerError::AllocationContended {
            pays_for: pays_for.clone(),
        })
    }

    /// Adds the charge of a record that has no allocation, which the transaction checks. Only the accounts are read.
    pub(super) async fn charge_new(
        &self,
        transaction: Transaction,
        allocation: &Allocation,
    ) -> Result<Transaction, LedgerError> {
        self.kinds.check_amounts(&allocation.amounts)?;
        let key = key_for(&allocation.pays_for)?;
        let allocation = allocation.with_amounts(&allocation.amounts);
        self.add(transaction, &key, None, Some(&allocation)).await
    }

    async fn add(
        &self,
        transaction: Transaction,
        key: &Key,
        found: Option<&Versioned<Allocation>>,
        next: Option<&Allocation>,
    ) -> Result<Transaction, LedgerError> {
        let id = || self.allocations.id(key);
        let zero = Amounts::new();
        Ok(match (found, next) {
            (None, None) => transaction.check(Check::Absent(id())),
            (Some(found), Some(next)) if found.value == *next => {
                transaction.check(Check::At(id(), found.revision))
            }
            (None, Some(next)) => {
                let updated = self.update_accounts(transaction, next, &zero, &next.amounts);
                self.allocations.create(updated.await?, key, next)?
            }
            (Some(found), Some(next)) => {
                let updated =
                    self.update_accounts(transaction, next, &found.value.amounts, &next.amounts);
                self.allocations.replace(updated.await?, found, next)?
            }
            (Some(found), None) => {
                let released = &found.value;
                let updated = self.update_accounts(transaction, released, &released.amounts, &zero);
                self.allocations.remove(updated.await?, found)
            }
        })
    }

    /// Changes the accounts of an allocation from its old amounts to the new ones.
    async fn update_accounts(
        &self,
        mut transaction: Transaction,
        allocation: &Allocation,
        before: &Amounts,
        after: &Amounts,
    ) -> Result<Transaction, LedgerError> {
        for account in allocation.payers() {
            let mut opened = self.account(&transaction, &account).await?;
            opened.record.used = opened.record.used_after(&self.kinds, before, after)?;
            transaction = opened.close(&self.accounts, transaction)?;
        }
        Ok(transaction)
    }
}

impl Allocation {
    /// Returns the accounts that pay.
    pub(super) fn payers(&self) -> [Account; 2] {
        [
            Account::Organization(self.organization),
            Account::Project(self.organization, self.project),
        ]
    }

    /// Returns the allocation with other amounts.
    fn with_amounts(&self, amounts: &Amounts) -> Self {
        Self {
            amounts: amounts.clone().without_zeros(),
            ..self.clone()
        }
    }
}
