//! Files that are not as they should be: said clearly, and nothing made worse.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, path::PathBuf, time::Duration};

use fleetwright_store::{
    Advice, IndexName, Kind, Query, RecordId, Revision, Schema, Store, StoreError, Transaction,
};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
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

    async fn refused(&self, schema: Schema) -> String {
        let options = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
        let refused = SqliteStore::open_with(self.path(), schema, options)
            .await
            .unwrap_err();
        assert!(refused.to_string().lines().count() == 1, "{refused}");
        refused.to_string()
    }

    /// Does something to the file that no store does.
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
        let place = Place::new();
        place.tamper(sql);
        let before = fs::read(place.path()).unwrap();
        let told = place.refused(schema()).await;
        assert!(
            told.starts_with("store incompatible: the database belongs to another program"),
            "{told}"
        );
        assert_eq!(fs::read(place.path()).unwrap(), before);
    }
}

#[tokio::test]
async fn file_that_is_not_a_database_is_refused_and_unchanged() {
    let place = Place::new();
    let text = "minutes of the meeting\n".repeat(100);
    fs::write(place.path(), &text).unwrap();
    let told = place.refused(schema()).await;
    assert!(
        told.starts_with("store corrupt") && told.contains("not a database"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(place.path()).unwrap(), text);
}

#[tokio::test]
async fn newer_format_is_refused_and_unchanged() {
    let place = Place::new();
    put(&place.open().await, "a", "n").await;
    place.tamper("PRAGMA user_version = 99");
    let told = place.refused(schema()).await;
    assert_eq!(
        told,
        "store incompatible: the database has format 99, and this program knows formats 1 to 1"
    );
    place.tamper("PRAGMA user_version = 1");
    assert_eq!(keys(&place.open().await, &things()).await, ["a"]);
}

#[tokio::test]
async fn missing_folder_is_unavailable() {
    let path = Place::new().path().join("missing").join("store.db");
    let refused = SqliteStore::open(&path, schema()).await.unwrap_err();
    assert_eq!(refused.advice(), Advice::Later);
    assert!(refused.to_string().contains("missing"), "{refused}");
}

#[tokio::test]
async fn damaged_record_does_not_affect_others() {
    let place = Place::new();
    let store = place.open().await;
    for (key, name) in [("a", "1"), ("b", "2"), ("c", "3")] {
        put(&store, key, name).await;
    }
    place.tamper("UPDATE records SET value = '{\"name\":' WHERE key = 'b'");
    let page = store.list(&things()).await.unwrap();
    assert_eq!(keys(&store, &things()).await, ["a", "c"]);
    assert_eq!(page.damaged.len(), 1);
    assert_eq!(
        (&page.damaged[0].id, page.damaged[0].revision),
        (&id("b"), Revision(2))
    );
    assert!(page.damaged[0].reason.contains("not JSON"), "{page:?}");
    let told = store.get(&id("b")).await.unwrap_err();
    assert!(
        told.to_string()
            .starts_with("store corrupt: thing/b at revision 2"),
        "{told}"
    );
    assert_eq!(store.check().await.unwrap().len(), 1);

    // It can be replaced, and its name is free for others again.
    let mended = Transaction::new().replace(id("b"), Revision(2), json!({"name": "4"}));
    store.commit(&mended).await.unwrap();
    put(&store, "d", "2").await;
    assert_eq!(store.check().await.unwrap(), [""; 0]);

    place.tamper("UPDATE records SET value = 'x' WHERE key = 'c'");
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
            "thing/a is not in its indexes as it should be",
        ),
        ("DELETE FROM records", "1 entries of thing are of no record"),
        (
            "UPDATE records SET revision = 9",
            "thing/a is ahead of the store",
        ),
    ] {
        let place = Place::new();
        let store = place.open().await;
        put(&store, "a", "n").await;
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        place.tamper(sql);
        assert_eq!(store.check().await.unwrap(), [finding]);
    }
}

#[tokio::test]
async fn unreadable_log_is_reported_to_watches() {
    let place = Place::new();
    let store = place.open().await;
    put(&store, "a", "n").await;
    place.tamper("UPDATE changes SET value = 'x'");
    let mut watch = store
        .watch(Revision::ZERO, fleetwright_store::Interest::all())
        .await
        .unwrap();
    let told = watch.next().await.unwrap_err();
    assert!(
        told.to_string().contains("the change log at revision 1"),
        "{told}"
    );
}

#[tokio::test]
async fn changed_schema_is_reindexed() {
    let place = Place::new();
    let store = place.open().await;
    for (key, group) in [("a", "g"), ("b", "h"), ("c", "g")] {
        let transaction = Transaction::new().put(id(key), json!({"name": key, "group": group}));
        store.commit(&transaction).await.unwrap();
    }
    let grown = Schema::builder()
        .kind("thing")
        .index("group", ["/group"])
        .kind("new")
        .build()
        .unwrap();
    let told = place.refused(grown.clone()).await;
    assert_eq!(
        told,
        "store incompatible: the database is in use with another schema"
    );
    drop(store);
    let store = SqliteStore::open(place.path(), grown).await.unwrap();
    let by_group = Query::by(
        Kind::new("thing").unwrap(),
        IndexName::new("group").unwrap(),
        "g",
    );
    assert_eq!(keys(&store, &by_group).await, ["a", "c"]);
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    drop(store);
    let store = place.open().await;
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    let taken = Transaction::new().put(id("d"), json!({"name": "a"}));
    assert!(store.commit(&taken).await.unwrap_err().conflict().is_some());
}

#[tokio::test]
async fn new_unique_index_with_duplicates_is_refused_and_nothing_changes() {
    let place = Place::new();
    let store = place.open().await;
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
        place.refused(strict).await,
        "store incompatible: index group of thing cannot be unique: b and a both have (\"g\")"
    );
    let unfit = Schema::builder()
        .kind("thing")
        .index("odd", ["/odd"])
        .build()
        .unwrap();
    assert_eq!(
        place.refused(unfit).await,
        "store incompatible: thing/a does not fit the schema: index odd of thing: /odd: \
         an object stands where one value belongs"
    );
    assert_eq!(place.open().await.check().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn exclusive_handle_refuses_others() {
    let place = Place::new();
    let patient = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
    let open = |options| SqliteStore::open_with(place.path(), schema(), options);
    let alone = open(patient.exclusive()).await.unwrap();
    for options in [patient, patient.exclusive()] {
        let told = open(options).await.unwrap_err();
        assert!(told.to_string().contains("somebody else holds"), "{told}");
        assert_eq!(told.advice(), Advice::Later);
    }
    put(&alone, "a", "n").await;
    drop(alone);
    let shared = [open(patient).await.unwrap(), open(patient).await.unwrap()];
    assert!(open(patient.exclusive()).await.is_err());
    assert_eq!(keys(&shared[1], &things()).await, ["a"]);
    drop(shared);
    open(patient.exclusive()).await.unwrap();
}

#[tokio::test]
async fn closing_handle_is_waited_for() {
    let place = Place::new();
    let alone = SqliteOptions::default().exclusive();
    let other = Schema::builder().kind("thing").build().unwrap();
    for options in [alone, SqliteOptions::default()] {
        let first = SqliteStore::open_with(place.path(), schema(), options)
            .await
            .unwrap();
        let second = tokio::spawn(SqliteStore::open_with(place.path(), other.clone(), options));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn external_writer_is_waited_for_and_then_reported() {
    let place = Place::new();
    let options = SqliteOptions::default().lock_timeout(Duration::from_millis(20));
    let store = SqliteStore::open_with(place.path(), schema(), options)
        .await
        .unwrap();
    let outside = Connection::open(place.path()).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    let transaction = Transaction::new().put(id("a"), json!({}));
    let told = store.commit(&transaction).await.unwrap_err();
    assert!(matches!(told, StoreError::Unavailable { .. }), "{told}");
    assert!(told.to_string().contains("a write cannot begin"), "{told}");
    assert_eq!(keys(&store, &things()).await, [""; 0]);
    outside.execute_batch("ROLLBACK").unwrap();
    store.commit(&transaction).await.unwrap();
}

#[tokio::test]
async fn old_commits_are_forgotten() {
    let place = Place::new();
    let options = SqliteOptions::default().keep_commits(3);
    let store = SqliteStore::open_with(place.path(), schema(), options)
        .await
        .unwrap();
    for number in 0..10 {
        put(&store, "a", &number.to_string()).await;
    }
    let all = fleetwright_store::Interest::all;
    let told = store.watch(Revision(6), all()).await.unwrap_err();
    assert!(
        matches!(
            told,
            StoreError::Compacted {
                oldest: Revision(7),
                ..
            }
        ),
        "{told}"
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
    let connection = Connection::open(place.path()).unwrap();
    let kept: i64 = connection
        .query_row("SELECT count(*) FROM changes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 3);
}

#[tokio::test]
async fn watch_returns_many_commits_in_complete_batches() {
    let place = Place::new();
    let store = place.open().await;
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
    let place = Place::new();
    let store = place.open().await;
    put(&store, "a", "n").await;
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let path = format!("{}{suffix}", place.path().display());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

#[tokio::test]
async fn special_sqlite_name_is_an_ordinary_file() {
    let place = Place::new();
    for name in [
        ":memory:",
        "file::memory:?cache=shared",
        "odd \u{1f980} name",
    ] {
        let path = place.folder.path().join(name);
        put(&SqliteStore::open(&path, schema()).await.unwrap(), "a", "n").await;
        let again = SqliteStore::open(&path, schema()).await.unwrap();
        assert_eq!(keys(&again, &things()).await, ["a"]);
        assert!(path.exists());
    }
    assert!(SqliteStore::open("", schema()).await.is_err());
}

#[tokio::test]
async fn database_does_not_grow_beyond_its_limit() {
    const LIMIT: u64 = 300_000;
    let place = Place::new();
    let options = SqliteOptions::default().max_bytes(LIMIT);
    let store = SqliteStore::open_with(place.path(), schema(), options)
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
    let bytes = fs::metadata(place.path()).unwrap().len();
    assert!((LIMIT / 2..=LIMIT).contains(&bytes), "{bytes}");
}
