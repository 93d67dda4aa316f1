//! Foreign, damaged, locked and full files: each is reported clearly, and opening it makes nothing
//! worse.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::PathBuf, time::Duration};

use fleetwright_store::{
    Advice, IndexName, Kind, Query, RecordId, Revision, Schema, Store, StoreError, Transaction,
};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

struct TestFolder {
    folder: TempDir,
}

impl TestFolder {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path(), schema()).await.unwrap()
    }

    /// Returns the message with which opening is refused. It has one line.
    async fn open_error(&self, schema: Schema) -> String {
        let options = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
        let refused = SqliteStore::open_with(self.path(), schema, options)
            .await
            .unwrap_err();
        assert!(refused.to_string().lines().count() == 1, "{refused}");
        refused.to_string()
    }

    /// Changes the file without the store.
    fn tamper(&self, sql: &str) {
        Connection::open(self.path())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    }
}

fn schema() -> Schema {
    Schema::builder()
        .kind("thing")
        .unique("name", ["/name"])
        .build()
        .unwrap()
}

fn id(key: &str) -> RecordId {
    RecordId::new("thing", key).unwrap()
}

fn things() -> Query {
    Query::all(Kind::new("thing").unwrap())
}

async fn put(store: &SqliteStore, key: &str, name: &str) -> Revision {
    let transaction = Transaction::new().put(id(key), json!({"name": name}));
    store.commit(&transaction).await.unwrap()
}

async fn keys(store: &SqliteStore, query: &Query) -> Vec<String> {
    let page = store.list(query).await.unwrap();
    page.records
        .iter()
        .map(|record| record.key().to_string())
        .collect()
}

#[tokio::test]
async fn database_of_another_program_is_refused_and_unchanged() {
    for sql in [
        "CREATE TABLE theirs (x)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 3",
    ] {
        let folder = TestFolder::new();
        folder.tamper(sql);
        let before = fs::read(folder.path()).unwrap();
        let error = folder.open_error(schema()).await;
        assert!(
            error.starts_with("store incompatible: the database belongs to another program"),
            "{error}"
        );
        assert_eq!(fs::read(folder.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn file_that_is_not_a_database_is_refused_and_unchanged() {
    let folder = TestFolder::new();
    let text = "minutes of the meeting\n".repeat(100);
    fs::write(folder.path(), &text).unwrap();
    let error = folder.open_error(schema()).await;
    assert!(
        error.starts_with("store corrupt") && error.contains("not a database"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(folder.path()).unwrap(), text);
}

#[tokio::test]
async fn newer_format_is_refused_and_unchanged() {
    let folder = TestFolder::new();
    put(&folder.open().await, "a", "n").await;
    folder.tamper("PRAGMA user_version = 99");
    let error = folder.open_error(schema()).await;
    assert_eq!(
        error,
        "store incompatible: the database has format 99, and this program knows formats 1 to 1"
    );
    folder.tamper("PRAGMA user_version = 1");
    assert_eq!(keys(&folder.open().await, &things()).await, ["a"]);
}

#[tokio::test]
async fn missing_folder_is_unavailable() {
    let path = TestFolder::new().path().join("missing").join("store.db");
    let refused = SqliteStore::open(&path, schema()).await.unwrap_err();
    assert_eq!(refused.advice(), Advice::Later);
    assert!(refused.to_string().contains("missing"), "{refused}");
}

#[tokio::test]
async fn damaged_record_does_not_affect_others() {
    let folder = TestFolder::new();
    let store = folder.open().await;
    for (key, name) in [("a", "1"), ("b", "2"), ("c", "3")] {
        put(&store, key, name).await;
    }
    // A handle that has read or written the value knows it.
    drop(store);
    folder.tamper("UPDATE records SET value = '{\"name\":' WHERE key = 'b'");
    let store = folder.open().await;
    let page = store.list(&things()).await.unwrap();
    assert_eq!(keys(&store, &things()).await, ["a", "c"]);
    assert_eq!(page.damaged.len(), 1);
    assert_eq!(
        (&page.damaged[0].id, page.damaged[0].revision),
        (&id("b"), Revision(2))
    );
    assert!(page.damaged[0].reason.contains("not JSON"), "{page:?}");
    let error = store.get(&id("b")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("store corrupt: thing/b at revision 2"),
        "{error}"
    );
    assert_eq!(store.check().await.unwrap().len(), 1);

    // It can be replaced, which frees its name.
    let repair = Transaction::new().replace(id("b"), Revision(2), json!({"name": "4"}));
    store.commit(&repair).await.unwrap();
    put(&store, "d", "2").await;
    assert_eq!(store.check().await.unwrap(), [""; 0]);

    drop(store);
    folder.tamper("UPDATE records SET value = 'x' WHERE key = 'c'");
    let store = folder.open().await;
    store
        .commit(&Transaction::new().remove(id("c"), Revision(3)))
        .await
        .unwrap();
    let mut watch = store
        .watch(Revision(3), fleetwright_store::Interest::all())
        .await
        .unwrap();
    for _ in 0..2 {
        watch.next().await.unwrap();
    }
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted.changes[0].record().value, json!(null));
}

#[tokio::test]
async fn check_finds_modified_records() {
    for (sql, finding) in [
        (
            "DELETE FROM entries",
            "thing/a has index entries that do not match its value",
        ),
        (
            "DELETE FROM records",
            "1 index entries of thing belong to no record",
        ),
        (
            "UPDATE records SET revision = 9",
            "thing/a has a revision newer than the store",
        ),
    ] {
        let folder = TestFolder::new();
        let store = folder.open().await;
        put(&store, "a", "n").await;
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        folder.tamper(sql);
        assert_eq!(store.check().await.unwrap(), [finding]);
    }
}

#[tokio::test]
async fn unreadable_log_is_reported_to_watches() {
    let folder = TestFolder::new();
    let store = folder.open().await;
    put(&store, "a", "n").await;
    drop(store);
    folder.tamper("UPDATE changes SET value = 'x'");
    let store = folder.open().await;
    let mut watch = store
        .watch(Revision::ZERO, fleetwright_store::Interest::all())
        .await
        .unwrap();
    let error = watch.next().await.unwrap_err();
    assert!(
        error.to_string().contains("the change log at revision 1"),
        "{error}"
    );
}

#[tokio::test]
async fn value_that_another_handle_wrote_is_read() {
    let folder = TestFolder::new();
    let (ours, other) = (folder.open().await, folder.open().await);
    let name = async |store: &SqliteStore| {
        let found = store.get(&id("a")).await.unwrap();
        found.map(|record| record.value["name"].clone())
    };
    for round in 0..3 {
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        put(&ours, "a", &first).await;
        assert_eq!(name(&other).await, Some(json!(first)));
        put(&other, "a", &second).await;
        assert_eq!(name(&ours).await, Some(json!(second)));
        let page = ours.list(&things()).await.unwrap();
        assert_eq!(page.records[0].value["name"], json!(second));
        let delete = Transaction::new().delete(id("a"));
        other.commit(&delete).await.unwrap();
        assert_eq!(name(&ours).await, None);
    }
}

#[tokio::test]
async fn changed_schema_is_reindexed() {
    let folder = TestFolder::new();
    let store = folder.open().await;
    for (key, group) in [("a", "g"), ("b", "h"), ("c", "g")] {
        let transaction = Transaction::new().put(id(key), json!({"name": key, "group": group}));
        store.commit(&transaction).await.unwrap();
    }
    let with_new_index = Schema::builder()
        .kind("thing")
        .index("group", ["/group"])
        .kind("new")
        .build()
        .unwrap();
    let error = folder.open_error(with_new_index.clone()).await;
    assert_eq!(
        error,
        "store incompatible: the database is in use with another schema"
    );
    drop(store);
    let store = SqliteStore::open(folder.path(), with_new_index)
        .await
        .unwrap();
    let by_group = Query::by(
        Kind::new("thing").unwrap(),
        IndexName::new("group").unwrap(),
        "g",
    );
    assert_eq!(keys(&store, &by_group).await, ["a", "c"]);
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    drop(store);
    let store = folder.open().await;
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    let taken = Transaction::new().put(id("d"), json!({"name": "a"}));
    assert!(store.commit(&taken).await.unwrap_err().conflict().is_some());
}

#[tokio::test]
async fn new_unique_index_with_duplicates_is_refused_and_nothing_changes() {
    let folder = TestFolder::new();
    let store = folder.open().await;
    for key in ["a", "b"] {
        let transaction =
            Transaction::new().put(id(key), json!({"name": key, "group": "g", "odd": {}}));
        store.commit(&transaction).await.unwrap();
    }
    drop(store);
    let strict = Schema::builder()
        .kind("thing")
        .unique("group", ["/group"])
        .build()
        .unwrap();
    assert_eq!(
        folder.open_error(strict).await,
        "store incompatible: index group of thing cannot be unique: b and a both have (\"g\")"
    );
    let unindexable = Schema::builder()
        .kind("thing")
        .index("odd", ["/odd"])
        .build()
        .unwrap();
    assert_eq!(
        folder.open_error(unindexable).await,
        "store incompatible: thing/a does not fit the schema: index odd of thing: /odd: \
         expected text, a whole number or a boolean, found an object"
    );
    assert_eq!(folder.open().await.check().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn exclusive_handle_refuses_others() {
    let folder = TestFolder::new();
    let options = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
    let open = |options| SqliteStore::open_with(folder.path(), schema(), options);
    let alone = open(options.exclusive()).await.unwrap();
    for second in [options, options.exclusive()] {
        let error = open(second).await.unwrap_err();
        assert!(
            error.to_string().contains("another handle holds"),
            "{error}"
        );
        assert_eq!(error.advice(), Advice::Later);
    }
    put(&alone, "a", "n").await;
    drop(alone);
    let shared = [open(options).await.unwrap(), open(options).await.unwrap()];
    assert!(open(options.exclusive()).await.is_err());
    assert_eq!(keys(&shared[1], &things()).await, ["a"]);
    drop(shared);
    open(options.exclusive()).await.unwrap();
}

#[tokio::test]
async fn closing_handle_is_waited_for() {
    let folder = TestFolder::new();
    let alone = SqliteOptions::default().exclusive();
    let other = Schema::builder().kind("thing").build().unwrap();
    for options in [alone, SqliteOptions::default()] {
        let first = SqliteStore::open_with(folder.path(), schema(), options)
            .await
            .unwrap();
        let second = tokio::spawn(SqliteStore::open_with(
            folder.path(),
            other.clone(),
            options,
        ));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn external_writer_is_waited_for_and_then_reported() {
    let folder = TestFolder::new();
    let options = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
    let store = SqliteStore::open_with(folder.path(), schema(), options)
        .await
        .unwrap();
    let external = Connection::open(folder.path()).unwrap();
    external.execute_batch("BEGIN IMMEDIATE").unwrap();
    let transaction = Transaction::new().put(id("a"), json!({}));
    let error = store.commit(&transaction).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains("a write cannot start"),
        "{error}"
    );
    assert_eq!(keys(&store, &things()).await, [""; 0]);
    external.execute_batch("ROLLBACK").unwrap();
    store.commit(&transaction).await.unwrap();
}

#[tokio::test]
async fn old_commits_are_forgotten() {
    let folder = TestFolder::new();
    let options = SqliteOptions::default().keep_commits(3);
    let store = SqliteStore::open_with(folder.path(), schema(), options)
        .await
        .unwrap();
    for number in 0..10 {
        put(&store, "a", &number.to_string()).await;
    }
    let all = fleetwright_store::Interest::all;
    let error = store.watch(Revision(6), all()).await.unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Compacted {
                oldest: Revision(7),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        store
            .watch(Revision(7), all())
            .await
            .unwrap()
            .next()
            .await
            .unwrap()
            .revision,
        Revision(8)
    );
    let connection = Connection::open(folder.path()).unwrap();
    let stored: i64 = connection
        .query_row("SELECT count(*) FROM changes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(stored, 3);
}

#[tokio::test]
async fn watch_returns_many_commits_in_complete_batches() {
    let folder = TestFolder::new();
    let store = folder.open().await;
    let large = "x".repeat(250_000);
    for number in 0..30 {
        let transaction = Transaction::new()
            .put(id(&format!("a{number}")), json!(large))
            .put(id(&format!("b{number}")), json!(large));
        store.commit(&transaction).await.unwrap();
    }
    let mut watch = store
        .watch(Revision::ZERO, fleetwright_store::Interest::all())
        .await
        .unwrap();
    for wanted in 1..=30 {
        let commit = watch.next().await.unwrap();
        assert_eq!(
            (commit.revision, commit.changes.len()),
            (Revision(wanted), 2)
        );
    }
    assert_eq!(watch.position(), Revision(30));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TestFolder::new();
    let store = folder.open().await;
    put(&store, "a", "n").await;
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let path = format!("{}{suffix}", folder.path().display());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

#[tokio::test]
async fn special_sqlite_name_is_an_ordinary_file() {
    let folder = TestFolder::new();
    for name in [
        ":memory:",
        "file::memory:?cache=shared",
        "odd \u{1f980} name",
    ] {
        let path = folder.folder.path().join(name);
        put(&SqliteStore::open(&path, schema()).await.unwrap(), "a", "n").await;
        let reopened = SqliteStore::open(&path, schema()).await.unwrap();
        assert_eq!(keys(&reopened, &things()).await, ["a"]);
        assert!(path.exists());
    }
    assert!(SqliteStore::open("", schema()).await.is_err());
}

#[tokio::test]
async fn database_does_not_grow_beyond_its_limit() {
    const LIMIT: u64 = 300_000;
    let folder = TestFolder::new();
    let options = SqliteOptions::default().max_bytes(LIMIT);
    let store = SqliteStore::open_with(folder.path(), schema(), options)
        .await
        .unwrap();
    let full = loop {
        let key = id(&store.head().await.unwrap().to_string());
        let large = Transaction::new().put(key, json!("x".repeat(10_000)));
        if let Err(error) = store.commit(&large).await {
            break error;
        }
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert_eq!(full.advice(), Advice::Later);
    drop(store);
    let bytes = fs::metadata(folder.path()).unwrap().len();
    assert!((LIMIT / 2..=LIMIT).contains(&bytes), "{bytes}");
}
