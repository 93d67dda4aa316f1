//! The write-ahead log stays small while readers overlap without a pause.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use fleetwright_store::{Kind, Query, RecordId, Schema, Store as _, Transaction};
use fleetwright_store_sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// The largest size of the log: the one from which on the writer waits for readers, and as much again
/// for what is written before it does.
const MOST_BYTES: u64 = 2 * 8 * 1024 * 1024;
/// Written in total, several times as much.
const COMMITS: u64 = 400;
/// Stored twice for each commit: as the record and in the log of changes.
const VALUE_BYTES: usize = 64 * 1024;

fn schema() -> Schema {
    Schema::builder().kind("thing").build().unwrap()
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

async fn put(store: &SqliteStore, number: u64) {
    let id = RecordId::new("thing", format!("t-{}", number % 40)).unwrap();
    let value = json!({"n": number, "text": "x".repeat(VALUE_BYTES)});
    let transaction = Transaction::new().put(id, value);
    store.commit(&transaction).await.unwrap();
}

/// Four readers, one of them of another handle, read all records again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_let_the_log_grow() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, schema()).await.unwrap();
    let other = SqliteStore::open(&path, schema()).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicU64::new(0));
    for number in 0..40 {
        put(&store, number).await;
    }
    let readers = [&store, &store, &store, &other].map(|store| {
        let (store, is_done, reads) = (store.clone(), Arc::clone(&is_done), Arc::clone(&reads));
        tokio::spawn(async move {
            let query = Query::all(Kind::new("thing").unwrap()).limit(500);
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(store.list(&query).await.unwrap().records.len(), 40);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let mut largest = 0;
    for number in 0..COMMITS {
        put(&store, number).await;
        largest = largest.max(size(&log_of(&path)));
    }
    is_done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(largest < MOST_BYTES, "the log had {largest} bytes");
    assert!(
        reads.load(Ordering::Relaxed) > 4,
        "the readers did not read"
    );
}

/// A program that keeps a read open cannot be made to finish. Commits go on, and the log is emptied
/// after the read.
#[tokio::test]
async fn read_that_does_not_end_delays_no_commit_for_ever() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path, schema()).await.unwrap();
    put(&store, 0).await;
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = |reader: &Connection| {
        reader.query_row("SELECT count(*) FROM records", [], |row| {
            row.get::<_, i64>(0)
        })
    };
    assert_eq!(count(&reader).unwrap(), 1);
    for number in 0..120 {
        put(&store, number).await;
    }
    let grown = size(&log_of(&path));
    assert!(grown > 8 * 1024 * 1024, "the log had {grown} bytes");
    assert_eq!(count(&reader).unwrap(), 1);
    reader.execute_batch("COMMIT").unwrap();
    for number in 0..120 {
        put(&store, number).await;
    }
    let left = size(&log_of(&path));
    assert!(left < MOST_BYTES, "the log had {left} bytes");
}
