//! CRASH-01 proven by stores that are broken in a way that a kill shows.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod harness;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright_store::{Result, Revision, Schema, Store, Transaction};
use fleetwright_store_contract::{
    Factory, Harness, Status, clause,
    crash::{Child, run_child},
    run_clause,
};
use fleetwright_store_zoo::{CallContext, OverriddenStore, Override};
use harness::SqliteHarness;
use tokio::task::JoinHandle;

/// The SQLite store with a overrides.
struct SqliteWithOverride {
    base: SqliteHarness,
    overrides: Arc<dyn Override>,
}

impl SqliteWithOverride {
    fn new<T: Override + Default + 'static>(base: SqliteHarness) -> Self {
        Self {
            base,
            overrides: Arc::new(T::default()),
        }
    }
}

#[async_trait]
impl Harness for SqliteWithOverride {
    fn name(&self) -> String {
        "sqlite with an override".to_owned()
    }
    async fn open(&self, schema: Schema) -> Result<Arc<dyn Store>> {
        let store = self.base.open(schema).await?;
        Ok(Arc::new(OverriddenStore::new(
            store,
            Arc::clone(&self.overrides),
            1,
        )))
    }
    fn location(&self) -> Option<String> {
        self.base.location()
    }
}

fn must_die<T: Override + Default + 'static>(child: &str) {
    let factory: Factory =
        Arc::new(|| Arc::new(SqliteWithOverride::new::<T>(SqliteHarness::new())));
    let verdict = run_clause(
        clause("CRASH-01").unwrap(),
        &factory,
        Some(&Child::new(child)),
    );
    assert_eq!(verdict.status, Status::Fail, "{verdict:?}");
}

/// A mutant: a test that it dies, and the process that it writes in.
macro_rules! dies {
    ($module:ident, $overrides:ty) => {
        mod $module {
            use super::*;

            #[test]
            fn child() {
                run_child(|location| {
                    SqliteWithOverride::new::<$overrides>(SqliteHarness::at(location))
                });
            }

            #[test]
            fn fails_crash_01() {
                must_die::<$overrides>(concat!(module_path!(), "::child"));
            }
        }
    };
}

dies!(acknowledges_early, AcknowledgesEarly);
dies!(writes_in_halves, WritesInHalves);
dies!(forgets_changes, ForgetsChanges);

/// Answers what a commit will come to, and carries it out a little later.
#[derive(Default)]
struct AcknowledgesEarly(Mutex<Option<(Revision, JoinHandle<()>)>>);

#[async_trait]
impl Override for AcknowledgesEarly {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let head = at.store.head().await?;
        let mut last = self.0.lock().unwrap();
        let (revision, before) = match last.take() {
            Some((revision, before)) => (revision.next(), Some(before)),
            None => (head.next(), None),
        };
        let (store, transaction) = (Arc::clone(at.store), transaction.clone());
        let later = tokio::spawn(async move {
            if let Some(before) = before {
                before.await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            store.commit(&transaction).await.unwrap();
        });
        *last = Some((revision, later));
        Ok(revision)
    }
}

/// Commits the first half, then the second.
#[derive(Default)]
struct WritesInHalves;

#[async_trait]
impl Override for WritesInHalves {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut first, mut second) = (transaction.clone(), Transaction::new());
        second.writes = first.writes.split_off(2);
        at.store.commit(&first).await?;
        at.store.commit(&second).await
    }
}

/// Keeps no change that it has shown to its own process.
#[derive(Default)]
struct ForgetsChanges;

#[async_trait]
impl Override for ForgetsChanges {
    async fn commit(&self, at: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let revision = at.store.commit(transaction).await?;
        at.store.compact(revision).await?;
        Ok(revision)
    }
}
