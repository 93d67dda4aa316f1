//! Charges that wait for each other are committed together.
//!
//! Each charge changes the account of its organization, so charges of one organization are written one after the other, and
//! each would wait for a sync of its own. Instead, the charges that wait when it is the turn of the first one become one
//! transaction. The result is the same as if they had been committed in the order of their arrival:
//!
//! - None of them writes or claims what another one checks or writes, so each check has the same outcome before all of them as
//!   between them. The accounts are the exception: the ledger adds the amounts up.
//! - If anything fails that could concern only one of them, nothing was written, and each is committed alone, in order.
//!
//! A group is one [`Shared`] future: whichever of its callers is polled drives the commit. A caller that is woken while another one
//! polls relies on that one to continue. If that one is dropped instead, it wakes another caller. A caller that is dropped before
//! its turn is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fleetwright_store::{
    Check, RecordId, Revision, StoreError, Transaction, Write, limits::MAX_OPERATIONS,
};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Either, Shared, select},
};
use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard, oneshot};

use super::{Allocation, Ledger, LedgerError, MAX_RACES};

/// The results of a group, in the order of its charges.
type Results = Arc<Vec<Result<Revision, LedgerError>>>;
/// The commit of a group.
type Commit = Shared<BoxFuture<'static, Results>>;

/// The queue of some organizations.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Held while something is committed.
    turn: Arc<Turn<()>>,
    waiting: Mutex<Vec<Waiting>>,
}

/// A charge that waits, and where its caller gets its place in a group.
#[derive(Debug)]
struct Waiting {
    charge: Charge,
    joined: oneshot::Sender<Place>,
}

/// The place of a caller in a group that is being committed.
#[derive(Debug)]
struct Place {
    commit: Commit,
    position: usize,
    /// Signals that a caller was dropped, which may have been the one that was to poll the commit.
    left: Arc<Notify>,
    has_ended: bool,
}

impl Place {
    /// Waits for the commit, and returns the result of this caller.
    async fn result(mut self) -> Result<Revision, LedgerError> {
        let left = Arc::clone(&self.left);
        let results = loop {
            let notified = pin!(left.notified());
            match select(&mut self.commit, notified).await {
                Either::Left((results, _)) => break results,
                Either::Right(((), _)) => {}
            }
        };
        self.has_ended = true;
        let result = results.get(self.position).cloned();
        result.unwrap_or_else(|| Err(lost()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_ended {
            self.left.notify_one();
        }
    }
}

/// The creation of a record and its charge.
#[derive(Debug)]
struct Charge {
    created: Transaction,
    allocation: Allocation,
}

impl Queue {
    /// Waits until nothing else of these organizations is committed.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// A poisoned lock is safe to use: its content is replaced as a whole.
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first charges that can be committed together. Those of callers that are gone are left out.
    fn take_group(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let (mut group, mut touched) = (Vec::new(), Touched::default());
        let mut later = Vec::new();
        for next in mem::take(&mut *waiting) {
            if next.joined.is_closed() {
                continue;
            }
            // Later ones keep their order.
            if later.is_empty() && touched.add(&next.charge) {
                group.push(next);
            } else {
                later.push(next);
            }
        }
        *waiting = later;
        group
    }
}

impl Ledger {
    /// Commits the creation of a record together with its charge. Charges of an organization that wait at the same time are
    /// committed as one transaction where that makes no difference, so they share its sync and have the same revision.
    ///
    /// `created` must not contain a charge. A dropped call may have been committed, as a dropped
    /// [`Store::commit`](fleetwright_store::Store::commit).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fleetwright_identity::{Allocation, Amounts, Ledger, OrganizationId, ProjectId, QuotaKind, QuotaKinds, schema};
    /// # use fleetwright_store::{MemoryStore, RecordId, Schema, Transaction};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryStore::new(schema(Schema::builder().kind("instance")).build()?));
    /// # let ledger = Ledger::new(store, Arc::new(QuotaKinds::standard()))?;
    /// # let acme: OrganizationId = "5ba1e150-0000-4000-8000-000000000001".parse()?;
    /// # let web: ProjectId = "5ba1e150-0000-4000-8000-000000000002".parse()?;
    /// let id = RecordId::new("instance", "i-1")?;
    /// let cost = Amounts::new().with(QuotaKind::servers(), 1);
    /// let allocation = Allocation::new(id.clone(), acme, web, cost);
    /// ledger.commit_charge(Transaction::new().create(id.clone(), "new"), &allocation).await?;
    /// assert_eq!(ledger.allocation(&id).await?, Some(allocation));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`charge`](Self::charge) and [`commit`](Self::commit).
    pub async fn commit_charge(
        &self,
        created: Transaction,
        allocation: &Allocation,
    ) -> Result<Revision, LedgerError> {
        let queue = Arc::clone(self.queue(allocation.organization));
        let (joined, mut place) = oneshot::channel();
        let charge = Charge {
            created,
            allocation: allocation.clone(),
        };
        queue.waiting().push(Waiting { charge, joined });
        loop {
            let guard = tokio::select! {
                biased;
                found = &mut place => {
                    let place: Place = found.map_err(|_| lost())?;
                    return place.result().await;
                }
                guard = queue.turn() => guard,
            };
            // Its own charge waits, or has joined a group since.
            self.lead(&queue, guard);
        }
    }

    /// Starts a group of charges that wait, and tells their callers.
    fn lead(&self, queue: &Queue, turn: OwnedMutexGuard<()>) {
        let (mut charges, mut callers) = (Vec::new(), Vec::new());
        for waiting in queue.take_group() {
            charges.push(waiting.charge);
            callers.push(waiting.joined);
        }
        if callers.is_empty() {
            return;
        }
        let ledger = self.clone();
        let work = async move {
            let results = ledger.commit_group(&charges).await;
            drop(turn);
            Arc::new(results)
        };
        let (commit, left): (Commit, _) = (work.boxed().shared(), Arc::default());
        for (position, caller) in callers.into_iter().enumerate() {
            let place = Place {
                commit: commit.clone(),
                position,
                left: Arc::clone(&left),
                has_ended: false,
            };
            // A caller that is gone is dropped from the group, and its charge may still be committed.
            let _ = caller.send(place);
        }
    }

    /// Commits a group of charges, together if possible.
    async fn commit_group(&self, charges: &[Charge]) -> Vec<Result<Revision, LedgerError>> {
        if charges.len() > 1 {
            match self.commit_together(charges).await {
                Together::Done(result) => return charges.iter().map(|_| result.clone()).collect(),
                Together::Impossible => {}
            }
        }
        let mut results = Vec::new();
        for charge in charges {
            results.push(self.commit_alone(charge).await);
        }
        results
    }

    async fn commit_together(&self, charges: &[Charge]) -> Together {
        for _ in 0..MAX_RACES {
            let Ok(transaction) = self.join(charges).await else {
                return Together::Impossible;
            };
            match self.store.commit(&transaction).await {
                Err(error) if self.is_account_conflict(&error) => {}
                // It may concern only one of them.
                Err(StoreError::Conflict(_) | StoreError::Invalid(_) | StoreError::Full { .. }) => {
                    return Together::Impossible;
                }
                result => return Together::Done(result.map_err(LedgerError::from)),
            }
        }
        Together::Impossible
    }

    /// Returns the transaction of a group: every creation and allocation, and the accounts once.
    async fn join(&self, charges: &[Charge]) -> Result<Transaction, LedgerError> {
        let mut transaction = Transaction::new();
        let mut checked = BTreeMap::<RecordId, Check>::new();
        for Charge {
            created,
            allocation,
        } in charges
        {
            for check in &created.checks {
                let is_known = match check {
                    Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => {
                        let known = checked.insert(id.clone(), check.clone());
                        known.as_ref() == Some(check)
                    }
                    Check::Unclaimed(_) => false,
                };
                if !is_known {
                    transaction.checks.push(check.clone());
                }
            }
            transaction.writes.extend(created.writes.iter().cloned());
            transaction = self.charge_new(transaction, allocation).await?;
        }
        Ok(transaction)
    }

    async fn commit_alone(&self, charge: &Charge) -> Result<Revision, LedgerError> {
        let Charge {
            created,
            allocation,
        } = charge;
        let build = || self.charge(created.clone(), allocation);
        self.commit_in_turn(allocation.organization, build).await
    }
}

/// How an attempt to commit a group ended.
enum Together {
    /// With this result for each of them.
    Done(Result<Revision, LedgerError>),
    /// Nothing was written, and each has to be committed alone.
    Impossible,
}

/// Not reached: a charge leaves the queue only for a group.
fn lost() -> LedgerError {
    let reason = "the charge left its queue".to_owned();
    LedgerError::from(StoreError::UnknownOutcome {
        reason,
        source: None,
    })
}

/// The records that the charges of a group check and write.
#[derive(Default)]
struct Touched {
    charges: usize,
    checked: BTreeSet<RecordId>,
    written: BTreeSet<RecordId>,
    operations: usize,
}

impl Touched {
    /// Adds a charge, and returns whether it can be committed together with the others. The first one always can.
    fn add(&mut self, charge: &Charge) -> bool {
        let created = &charge.created;
        let written: BTreeSet<_> = created.writes.iter().map(Write::id).cloned().collect();
        let (mut checked, mut has_claim) = (BTreeSet::new(), false);
        for check in &created.checks {
            match check {
                Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => {
                    checked.insert(id.clone());
                }
                // What another one writes could be claimed.
                Check::Unclaimed(_) => has_claim = true,
            }
        }
        // With the allocation and its check, and the two accounts of each.
        let operations = self.operations + created.checks.len().max(created.writes.len()) + 3;
        let is_apart = self.written.is_disjoint(&written)
            && self.written.is_disjoint(&checked)
            && self.checked.is_disjoint(&written);
        if self.charges > 0 && (has_claim || !is_apart || operations > MAX_OPERATIONS) {
            return false;
        }
        if has_claim {
            // Nothing joins it.
            self.operations = MAX_OPERATIONS;
        }
        self.charges += 1;
        self.operations = self.operations.max(operations);
        self.checked.extend(checked);
        self.written.extend(written);
        true
    }
}

impl Ledger {
    /// Returns whether a commit failed only because another one changed an account.
    fn is_account_conflict(&self, error: &StoreError) -> bool {
        error
            .conflict()
            .is_some_and(|conflict| match &conflict.check {
                Check::Absent(id) | Check::Exists(id) | Check::At(id, _) => {
                    id.kind == *self.accounts.kind()
                }
                Check::Unclaimed(_) => false,
            })
    }
}

#[cfg(test)]
mod tests;
