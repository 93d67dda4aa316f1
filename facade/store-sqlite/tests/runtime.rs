//! The store and the tokio runtime: calls without a runtime, runtimes that end, and a paused clock.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{path::Path, time::Duration};

use fleetwright_store::{Interest, RecordId, Revision, Schema, Store, StoreError, Transaction};
use fleetwright_store_sqlite::SqliteStore;
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

async fn open(folder: &Path) -> SqliteStore {
    let schema = Schema::builder().kind("thing").build().unwrap();
    SqliteStore::open(folder.join("store.db"), schema)
        .await
        .unwrap()
}

fn put(number: u64) -> Transaction {
    let id = RecordId::new("thing", format!("k{number}")).unwrap();
    Transaction::new().put(id, json!(number))
}

#[test]
fn call_without_a_runtime_is_refused_and_does_not_panic() {
    let folder = TempDir::new().unwrap();
    let store = runtime().block_on(open(folder.path()));
    let error = store.commit(&put(1)).now_or_never().unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("no tokio runtime"), "{error}");
    assert!(store.head().now_or_never().unwrap().is_err());
    runtime().block_on(async { store.commit(&put(1)).await.unwrap() });
}

#[test]
fn store_continues_on_another_runtime() {
    let folder = TempDir::new().unwrap();
    let store = runtime().block_on(open(folder.path()));
    for round in 0..20 {
        let short_lived = runtime();
        let writer = store.clone();
        short_lived.block_on(async move {
            for number in 0..10 {
                let writer = writer.clone();
                tokio::spawn(async move { writer.commit(&put(round * 10 + number)).await });
            }
            tokio::task::yield_now().await;
        });
        short_lived.shutdown_background();
    }
    let last = runtime().block_on(async { store.commit(&put(1000)).await.unwrap() });
    runtime().block_on(async {
        assert_eq!(store.head().await.unwrap(), last);
        let watch = store.watch(Revision::ZERO, Interest::all()).await.unwrap();
        let count = usize::try_from(last.0).unwrap();
        let received: Vec<_> = watch.into_stream().take(count).collect().await;
        assert!(received.iter().all(|commit| {
            commit
                .as_ref()
                .is_ok_and(|commit| commit.changes.len() == 1)
        }));
        assert_eq!(store.check().await.unwrap(), [""; 0]);
    });
}

#[tokio::test(start_paused = true)]
async fn paused_clock_causes_no_timeouts() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).await;
    for number in 0..20 {
        let soon = Duration::from_millis(1);
        tokio::time::timeout(soon, store.commit(&put(number)))
            .await
            .unwrap()
            .unwrap();
        tokio::time::timeout(soon, store.head())
            .await
            .unwrap()
            .unwrap();
    }
    let mut watch = store.watch(Revision(19), Interest::all()).await.unwrap();
    watch.next().await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    assert!(nothing.is_err());
    assert_eq!(watch.position(), Revision(20));
}
