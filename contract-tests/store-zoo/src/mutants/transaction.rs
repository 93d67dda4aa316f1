//! TXN: transactions that are not checked, not atomic, or refused for the wrong reason.

use async_trait::async_trait;
use fleetwright_store::{
    Check, Conflict, Found, Part, Result, Revision, Store as _, StoreError, Transaction, Write,
};

use super::{Mutant, mutant};
use crate::{CallContext, Override};

pub(super) const MUTANTS: &[Mutant] = &[
    mutant::<IgnoresAbsent>("TXN-01", "does not check for absence"),
    mutant::<IgnoresRevisions>("TXN-02", "does not compare revisions"),
    mutant::<ComparesByOrder>("TXN-02", "accepts a revision newer than the record's"),
    mutant::<IgnoresExistence>("TXN-03", "does not check for existence"),
    mutant::<IgnoresClaims>("TXN-04", "does not check claims"),
    mutant::<IgnoresExceptions>("TXN-04", "counts the excepted record"),
    mutant::<WritesOneByOne>("TXN-05", "commits each write alone until one fails"),
    mutant::<NamesFirstCheck>("TXN-06", "names the first check in every conflict"),
    mutant::<HidesTheHolder>("TXN-06", "does not name the holder of a value"),
    mutant::<WritesOneByOne>("TXN-07", "gives each write its own revision"),
    mutant::<ChecksAfterwards>("TXN-08", "evaluates checks after the writes"),
    mutant::<LastWriteWins>("TXN-09", "lets the last of two writes win"),
];

/// Declares a store that omits or changes some checks.
macro_rules! changes_checks {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                call: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let mut changed = transaction.clone();
                let kept = changed.checks.into_iter().filter_map($change);
                changed.checks = kept.collect();
                call.store.commit(&changed).await
            }
        }
    };
}

changes_checks!(IgnoresAbsent, |check| (!matches!(check, Check::Absent(_)))
    .then_some(check));
changes_checks!(IgnoresRevisions, |check| (!matches!(check, Check::At(..)))
    .then_some(check));
changes_checks!(IgnoresExistence, |check| (!matches!(
    check,
    Check::Exists(_)
))
.then_some(check));
changes_checks!(IgnoresClaims, |check| (!matches!(
    check,
    Check::Unclaimed(_)
))
.then_some(check));
changes_checks!(IgnoresExceptions, |check| Some(match check {
    Check::Unclaimed(claim) => Check::Unclaimed(fleetwright_store::Claim {
        except: None,
        ..claim
    }),
    other @ (Check::Absent(_) | Check::Exists(_) | Check::At(..)) => other,
}));

#[derive(Default)]
struct ComparesByOrder;
#[async_trait]
impl Override for ComparesByOrder {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        for check in &mut changed.checks {
            if let Check::At(id, wanted) = check {
                let found = call.store.get(id).await?.map(|record| record.revision);
                *wanted = found.filter(|found| found <= wanted).unwrap_or(*wanted);
            }
        }
        call.store.commit(&changed).await
    }
}

#[derive(Default)]
struct WritesOneByOne;
#[async_trait]
impl Override for WritesOneByOne {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let checks = Transaction {
            checks: transaction.checks.clone(),
            writes: Vec::new(),
        };
        let mut revision = call.store.commit(&checks).await?;
        for write in &transaction.writes {
            revision = call
                .store
                .commit(&Transaction::new().write(write.clone()))
                .await?;
        }
        Ok(revision)
    }
}

/// Declares a store that changes its conflicts.
macro_rules! changes_conflicts {
    ($name:ident, $change:expr) => {
        #[derive(Default)]
        struct $name;
        #[async_trait]
        impl Override for $name {
            async fn commit(
                &self,
                call: CallContext<'_>,
                transaction: &Transaction,
            ) -> Result<Revision> {
                let result = call.store.commit(transaction).await;
                let change = $change;
                result.map_err(|error| match error {
                    StoreError::Conflict(conflict) => StoreError::from(change(*conflict)),
                    other => other,
                })
            }
        }
    };
}

changes_conflicts!(NamesFirstCheck, |conflict: Conflict| Conflict {
    part: Part::Check(0),
    ..conflict
});
changes_conflicts!(HidesTheHolder, |conflict: Conflict| match conflict.part {
    Part::Check(_) => conflict,
    Part::Write(_) => Conflict {
        found: Found::Absent,
        ..conflict
    },
});

#[derive(Default)]
struct ChecksAfterwards;
#[async_trait]
impl Override for ChecksAfterwards {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let becomes_true = |check: &Check| match check {
            Check::Exists(id) => {
                let creates = |write: &Write| matches!(write, Write::Put(..)) && write.id() == id;
                transaction.writes.iter().any(creates)
            }
            Check::Absent(_) | Check::At(..) | Check::Unclaimed(_) => false,
        };
        let mut changed = transaction.clone();
        changed.checks.retain(|check| !becomes_true(check));
        call.store.commit(&changed).await
    }
}

#[derive(Default)]
struct LastWriteWins;
#[async_trait]
impl Override for LastWriteWins {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let mut changed = transaction.clone();
        changed.writes.clear();
        for write in &transaction.writes {
            changed.writes.retain(|before| before.id() != write.id());
            changed.writes.push(write.clone());
        }
        call.store.commit(&changed).await
    }
}
