//! Mutants for CRASH-01: SQLite stores with a bug that only a kill reveals. Each must fail the
//! clause.
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

/// A harness of the SQLite store whose handles have their calls overridden.
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

/// Requires that the overridden store fails CRASH-01.
fn require_failure<T: Override + Default + 'static>(child: &str) {
    let factory: Factory =
        Arc::new(|| Arc::new(SqliteWithOverride::new::<T>(SqliteHarness::new())));
    let verdict = run_clause(
        clause("CRASH-01").unwrap(),
        &factory,
        Some(&Child::new(child)),
    );
    assert_eq!(verdict.status, Status::Fail, "{verdict:?}");
}

/// Declares a mutant: the test that it fails CRASH-01, and the process that writes.
macro_rules! fails_crash_01 {
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
                require_failure::<$overrides>(concat!(module_path!(), "::child"));
            }
        }
    };
}

fails_crash_01!(acknowledges_early, AcknowledgesEarly);
fails_crash_01!(writes_in_halves, WritesInHalves);
fails_crash_01!(forgets_changes, ForgetsChanges);

/// Acknowledges a commit before it is executed, five milliseconds later.
#[derive(Default)]
struct AcknowledgesEarly(Mutex<Option<(Revision, JoinHandle<()>)>>);

#[async_trait]
impl Override for AcknowledgesEarly {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let head = call.store.head().await?;
        let mut last = self.0.lock().unwrap();
        let (revision, before) = match last.take() {
            Some((revision, before)) => (revision.next(), Some(before)),
            None => (head.next(), None),
        };
        let (store, transaction) = (Arc::clone(call.store), transaction.clone());
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                before.await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            store.commit(&transaction).await.unwrap();
        });
        *last = Some((revision, task));
        Ok(revision)
    }
}

/// Commits the first half, then the second.
#[derive(Default)]
struct WritesInHalves;

#[async_trait]
impl Override for WritesInHalves {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let (mut first, mut second) = (transaction.clone(), Transaction::new());
        second.writes = first.writes.split_off(2);
        call.store.commit(&first).await?;
        call.store.commit(&second).await
    }
}

/// Compacts every change as soon as it is committed.
#[derive(Default)]
struct ForgetsChanges;

#[async_trait]
impl Override for ForgetsChanges {
    async fn commit(&self, call: CallContext<'_>, transaction: &Transaction) -> Result<Revision> {
        let revision = call.store.commit(transaction).await?;
        call.store.compact(revision).await?;
        Ok(revision)
    }
}
