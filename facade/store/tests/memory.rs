//! What the memory store promises beyond the contract: its options, paused clocks, any executor.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use fleetwright_store::{
    Advice, Effect, Interest, MemoryOptions, MemoryStore, RecordId, Revision, Schema, Store,
    StoreError, Transaction,
};
use futures_util::FutureExt as _;
use serde_json::json;

fn store(options: MemoryOptions) -> MemoryStore {
    let schema = Schema::builder().kind("thing").build().unwrap();
    MemoryStore::with_options(schema, options)
}

fn put(key: &str) -> Transaction {
    Transaction::new().put(RecordId::new("thing", key).unwrap(), json!("12345678"))
}

#[test]
fn every_call_completes_at_once_without_a_runtime() {
    let store = store(MemoryOptions::default());
    let revision = store.commit(&put("a")).now_or_never().unwrap().unwrap();
    let mut watch = store
        .watch(Revision::ZERO, Interest::all())
        .now_or_never()
        .unwrap()
        .unwrap();
    let commit = watch.next().now_or_never().unwrap().unwrap();
    assert_eq!(commit.revision, revision);
    assert!(watch.next().now_or_never().is_none());
}

#[test]
fn old_commits_are_forgotten() {
    let store = store(MemoryOptions::default().keep_commits(2));
    for key in ["a", "b", "c", "d"] {
        store.commit(&put(key)).now_or_never().unwrap().unwrap();
    }
    let error = store
        .watch(Revision(1), Interest::all())
        .now_or_never()
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Compacted {
                oldest: Revision(2),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        (error.effect(), error.advice()),
        (Effect::None, Advice::ReadAgain)
    );
    let mut watch = store
        .watch(Revision(2), Interest::all())
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(
        watch.next().now_or_never().unwrap().unwrap().revision,
        Revision(3)
    );
}

#[test]
fn full_store_accepts_writes_that_do_not_grow_it() {
    let store = store(MemoryOptions::default().capacity(25));
    for key in ["a", "b"] {
        store.commit(&put(key)).now_or_never().unwrap().unwrap();
    }
    let error = store.commit(&put("c")).now_or_never().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "store full: 20 of 25 bytes are used");
    store.commit(&put("a")).now_or_never().unwrap().unwrap();
    let moved = put("c").delete(RecordId::new("thing", "a").unwrap());
    store.commit(&moved).now_or_never().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn paused_clock_does_not_advance_during_calls() {
    let store = store(MemoryOptions::default());
    let before = tokio::time::Instant::now();
    for number in 0..100 {
        store.commit(&put(&number.to_string())).await.unwrap();
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
}
