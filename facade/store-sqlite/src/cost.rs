//! Tests of the cost of reads and writes, and of what a commit costs.
//!
//! Time is no measure in a test, so the cost of a call is the number of steps of SQLite's virtual
//! machine. It must be the same with a thousand records as with ten thousand: a statement that
//! scans a table makes the numbers differ. A second test reads the plan of every statement in
//! [`sql`] and requires a search by index.
//!
//! The other tests look at what callers cannot see: that acknowledged commits are synced, that
//! readers cannot write, and that many concurrent writers share a few commits.

use std::{
    future::Future as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use fleetwright_store::{
    Check, Claim, IndexName, Kind, Prepared, Query, RecordId, Revision, Schema, Transaction,
};
use futures_util::future::join_all;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{
    SqliteOptions,
    cache::Cache,
    checkpoint::Log,
    queue::{Queue, WriteRequest},
    read,
    readers::Readers,
    setup, sql, write,
    writer::Writer,
};

/// A schema with a unique index, one of two parts and one for arrays.
fn schema() -> Schema {
    let builder = Schema::builder().kind("server").unique("owner", ["/owner"]);
    let builder = builder
        .index("place", ["/organization", "/project"])
        .index("tag", ["/tags"]);
    builder.build().unwrap()
}

fn kind() -> Kind {
    Kind::new("server").unwrap()
}

fn id(number: usize) -> RecordId {
    RecordId::new("server", format!("server-{number:06}")).unwrap()
}

/// Returns the put of a server: ten organizations, a hundred projects, one tag that all servers
/// have.
fn put(number: usize) -> Transaction {
    let value = json!({
        "owner": format!("owner-{number}"),
        "organization": format!("organization-{}", number % 10),
        "project": format!("project-{}", number % 100),
        "tags": ["all", format!("tag-{}", number % 50)],
    });
    Transaction::new().put(id(number), value)
}

fn prepared(number: usize) -> Prepared {
    Prepared::new(&put(number), &schema()).unwrap()
}

/// The writing connection of an open database, without the queue.
struct Database {
    connection: Connection,
    _folder: TempDir,
}

impl Database {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let opened = setup::open(&path, &schema(), &SqliteOptions::default()).unwrap();
        Self {
            connection: opened.writer,
            _folder: folder,
        }
    }

    /// Commits servers, each in its own transaction of the store but in one of SQLite's, for speed.
    fn fill(&self, records: std::ops::Range<usize>) {
        self.connection.execute_batch("BEGIN").unwrap();
        for number in records {
            self.commit(&put(number));
        }
        self.connection.execute_batch("COMMIT").unwrap();
    }

    fn commit(&self, transaction: &Transaction) {
        let schema = schema();
        let prepared = Prepared::new(transaction, &schema).unwrap();
        let head = read::history(&self.connection).unwrap().head;
        let revision = write::execute(&self.connection, &schema, &prepared, head).unwrap();
        write::set_revision(&self.connection, revision).unwrap();
    }

    /// Returns the number of virtual machine steps that `work` takes.
    fn steps(&self, work: impl FnOnce(&Self)) -> usize {
        let counted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&counted);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        self.connection.progress_handler(1, Some(count)).unwrap();
        work(self);
        self.connection
            .progress_handler(0, None::<fn() -> bool>)
            .unwrap();
        counted.load(Ordering::Relaxed)
    }

    /// Returns the number of records on a page of five.
    fn page(&self, query: &Query) -> usize {
        let plan = query.clone().limit(5).plan(&schema()).unwrap();
        read::page_of_texts(&self.connection, &plan)
            .unwrap()
            .records
            .len()
    }
}

/// Returns the steps of the typical calls of a façade, by name. `number` is a server that does not
/// exist.
fn costs(database: &Database, number: usize) -> Vec<(&'static str, usize)> {
    let index = |name| IndexName::new(name).unwrap();
    let by_place = Query::by(kind(), index("place"), ["organization-3", "project-3"]);
    let by_tag = Query::by(kind(), index("tag"), "all");
    let by_owner = Query::by(kind(), index("owner"), "owner-7");
    let claim = Claim::new(kind(), index("tag"), "unused");
    let guarded = put(number + 1)
        .check(Check::Unclaimed(claim))
        .check(Check::Exists(id(3)));
    let page =
        |query: Query, wanted| move |database: &Database| assert_eq!(database.page(&query), wanted);
    vec![
        (
            "create",
            database.steps(|database| database.commit(&put(number))),
        ),
        (
            "create with checks",
            database.steps(|database| database.commit(&guarded)),
        ),
        (
            "replace",
            database.steps(|database| database.commit(&put(number))),
        ),
        (
            "delete",
            database.steps(|database| database.commit(&Transaction::new().delete(id(number)))),
        ),
        (
            "read",
            database.steps(|database| {
                let record = read::record(&database.connection, &Cache::new(0), &id(5)).unwrap();
                assert!(record.is_some());
            }),
        ),
        ("page", database.steps(page(Query::all(kind()), 5))),
        ("page by place", database.steps(page(by_place, 5))),
        ("page by tag of all", database.steps(page(by_tag, 5))),
        ("find by owner", database.steps(page(by_owner, 1))),
    ]
}

#[test]
fn costs_do_not_grow_with_the_number_of_records() {
    let database = Database::new();
    database.fill(0..1_000);
    // Warm up, so that work of the first call only is not counted.
    costs(&database, 100_000);
    let with_few = costs(&database, 200_000);
    database.fill(1_000..10_000);
    let with_many = costs(&database, 300_000);
    assert_eq!(with_few, with_many);
    assert!(
        with_few.iter().all(|(_, steps)| (1..500).contains(steps)),
        "{with_few:?}"
    );
}

#[test]
fn every_statement_seeks() {
    let database = Database::new();
    for statement in sql::ALL {
        let mut explained = database
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
            .unwrap();
        let parameters = explained.parameter_count();
        let values = rusqlite::params_from_iter(vec![1; parameters]);
        let lines = explained
            .query_map(values, |row| row.get::<_, String>("detail"))
            .unwrap();
        for line in lines.map(Result::unwrap) {
            let seeks = line.starts_with("SEARCH") && !line.ends_with("(kind=?)");
            assert!(seeks, "{statement}\nhas the plan: {line}");
        }
    }
}

#[test]
fn acknowledged_commits_are_synced() {
    let database = Database::new();
    let pragma = |name: &str| -> String {
        let text = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        database
            .connection
            .query_row(&text, [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(
        (pragma("journal_mode"), pragma("synchronous")),
        ("wal".to_owned(), "2".to_owned())
    );
}

#[tokio::test]
async fn reader_connection_cannot_write() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let options = SqliteOptions::default();
    let opened = setup::open(&path, &schema(), &options).unwrap();
    let readers = Arc::new(Readers::new(path, options, Arc::new(opened.lock)));
    let tried = readers.read(|connection| Ok(connection.execute(sql::SETTLE, [])));
    let store_error = tried.await.unwrap().unwrap_err();
    assert_eq!(
        store_error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::ReadOnly)
    );
}

#[tokio::test]
async fn many_writers_share_a_commit() {
    const WRITERS: usize = 50;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let opened = setup::open(&path, &schema(), &SqliteOptions::default()).unwrap();
    let commits = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&commits);
    let count = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    opened.writer.commit_hook(Some(count)).unwrap();
    let queue = Arc::new(Queue::new(Writer {
        connection: opened.writer,
        cache: Arc::new(Cache::new(0)),
        schema: Arc::new(schema()),
        keep_commits: 1000,
        head: watch::Sender::new(Revision::ZERO),
        has_unresolved_commit: false,
        log: Log::new(&path, Duration::ZERO),
        _lock: Arc::new(opened.lock),
    }));
    let writers = (0..WRITERS).map(|number| queue.push(WriteRequest::Commit(prepared(number))));
    let mut writers = Box::pin(join_all(writers));
    {
        let _blocked_writer = queue.writer();
        // Polling queues all of them. The writer may already have taken the first.
        let mut context = Context::from_waker(Waker::noop());
        assert!(writers.as_mut().poll(&mut context).is_pending());
    }
    let mut results: Vec<_> = writers.await.into_iter().map(Result::unwrap).collect();
    results.sort();
    let wanted: Vec<_> = (1..=WRITERS as u64).map(Revision).collect();
    assert_eq!(results, wanted);
    assert!(commits.load(Ordering::Relaxed) <= 2, "{commits:?} commits");
}
