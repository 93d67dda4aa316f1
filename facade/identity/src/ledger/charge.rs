//! Charging, recharging, releasing.

use fleetwright_store::{Check, Key, RecordId, Transaction, Versioned};

use super::{Allocation, Ledger, LedgerError, MAX_RACES};
use crate::{Account, Amounts, schema::key_for};

/// What a recharge adds, and what it replaces.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recharge {
    /// The transaction with the recharge in it.
    pub transaction: Transaction,
    /// What was charged before: what to recharge with to undo it exactly.
    pub before: Amounts,
}

impl Ledger {
    /// Adds to a transaction that something is paid for. Fails if that would exceed a limit of the organization or the
    /// project. If it is paid for already, by the same and with the same, nothing is added but a check that it stays so.
    ///
    /// Several charges can be added to one transaction.
    pub async fn charge(
        &self,
        transaction: Transaction,
        allocation: &Allocation,
    ) -> Result<Transaction, LedgerError> {
        self.kinds.check_amounts(&allocation.amounts)?;
        let allocation = allocation.with(&allocation.amounts);
        let decide = |found: Option<&Allocation>| match found {
            Some(found) if *found != allocation => Err(LedgerError::AllocationMismatch {
                pays_for: allocation.pays_for.clone(),
            }),
            Some(_) | None => Ok(Some(allocation.clone())),
        };
        let changed = self.change(transaction, &allocation.pays_for, decide);
        Ok(changed.await?.0)
    }

    /// Adds to a transaction that a payment changes to other amounts. Fails if there is no such payment, or if what grows
    /// would exceed a limit; what shrinks is never refused.
    pub async fn recharge(
        &self,
        transaction: Transaction,
        pays_for: &RecordId,
        amounts: &Amounts,
    ) -> Result<Recharge, LedgerError> {
        self.kinds.check_amounts(amounts)?;
        let decide = |found: Option<&Allocation>| match found {
            Some(found) => Ok(Some(found.with(amounts))),
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

    /// Adds to a transaction that a payment ends. If there is none, nothing is added but a check that there is none.
    pub async fn release(
        &self,
        transaction: Transaction,
        pays_for: &RecordId,
    ) -> Result<Transaction, LedgerError> {
        let changed = self.change(transaction, pays_for, |_| Ok(None));
        Ok(changed.await?.0)
    }

    /// Adds that the allocation for something becomes what `decide` makes of what is there, which is answered too.
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
                // Accounts are read after the allocation. If that has changed in between, the sum was of two moments.
                Err(error) if error.is_about_sums() => {
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

    async fn add(
        &self,
        transaction: Transaction,
        key: &Key,
        found: Option<&Versioned<Allocation>>,
        next: Option<&Allocation>,
    ) -> Result<Transaction, LedgerError> {
        let id = || self.allocations.id(key);
        let nothing = Amounts::new();
        Ok(match (found, next) {
            (None, None) => transaction.check(Check::Absent(id())),
            (Some(found), Some(next)) if found.value == *next => {
                transaction.check(Check::At(id(), found.revision))
            }
            (None, Some(next)) => {
                let shifted = self.shift(transaction, next, &nothing, &next.amounts);
                self.allocations.create(shifted.await?, key, next)?
            }
            (Some(found), Some(next)) => {
                let shifted = self.shift(transaction, next, &found.value.amounts, &next.amounts);
                self.allocations.replace(shifted.await?, found, next)?
            }
            (Some(found), None) => {
                let gone = &found.value;
                let shifted = self.shift(transaction, gone, &gone.amounts, &nothing);
                self.allocations.remove(shifted.await?, found)
            }
        })
    }

    /// Moves the accounts of an allocation from one size of it to another.
    async fn shift(
        &self,
        mut transaction: Transaction,
        allocation: &Allocation,
        before: &Amounts,
        after: &Amounts,
    ) -> Result<Transaction, LedgerError> {
        for account in allocation.payers() {
            let mut opened = self.account(&transaction, &account).await?;
            opened.record.used = opened.record.used_after(&self.kinds, before, after)?;
            transaction = opened.close(transaction)?;
        }
        Ok(transaction)
    }
}

impl Allocation {
    /// The accounts that pay.
    pub(super) fn payers(&self) -> [Account; 2] {
        [
            Account::Organization(self.organization),
            Account::Project(self.organization, self.project),
        ]
    }

    /// The same of another size.
    fn with(&self, amounts: &Amounts) -> Self {
        Self {
            amounts: amounts.clone().normal(),
            ..self.clone()
        }
    }
}
