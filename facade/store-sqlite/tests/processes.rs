//! Other processes on the same file, and a full disk. The other process is this test program,
//! started again.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use fleetwright_store::{
    Interest, Kind, Query, RecordId, Revision, Schema, Store, StoreExt as _, Transaction,
};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

const FOLDER: &str = "FLEETWRIGHT_STORE_SQLITE_TEST_FOLDER";

/// A shell script that limits the size of files and then runs the test program. The signal is
/// ignored, so that a write beyond the limit returns an error instead of ending the process.
const SMALL_FILES: &str = "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\"";

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

async fn open(folder: &Path) -> SqliteStore {
    let options = SqliteOptions::default().poll_every(Duration::from_millis(2));
    SqliteStore::open_with(folder.join("store.db"), schema(), options)
        .await
        .unwrap()
}

/// Returns a transaction with two records, the second of five kilobytes.
fn transaction(number: u64) -> Transaction {
    let large = "x".repeat(5000);
    Transaction::new()
        .put(id("count"), json!({"count": number}))
        .put(
            id(&format!("item-{number:05}")),
            json!({"name": number, "large": large}),
        )
}

/// Returns the folder that the child process uses, or `None` in any other process.
fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn start_child(test: &str, folder: &Path, shell: Option<&str>) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match shell {
        Some(script) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).arg(program);
            shell
        }
        None => Command::new(program),
    };
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn print_line(line: &str) {
    std::io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

#[tokio::test]
async fn child_that_writes_twenty() {
    let Some(folder) = folder_of_child() else {
        return;
    };
    let store = open(&folder).await;
    for number in 1..=20 {
        store.commit(&transaction(number)).await.unwrap();
    }
}

#[tokio::test]
async fn commits_of_another_process_are_watched_and_none_is_lost() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).await;
    let mut child = start_child("child_that_writes_twenty", folder.path(), None);
    let own = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..20 {
                let increment =
                    |value: serde_json::Value| Some(json!(value.as_u64().unwrap_or(0) + 1));
                store.update(&id("own"), increment).await.unwrap();
            }
        }
    });
    let mut watch = store.watch(Revision::ZERO, Interest::all()).await.unwrap();
    let (mut theirs, mut ours) = (0, 0);
    for wanted in 1..=40 {
        let commit = watch.next().await.unwrap();
        assert_eq!(commit.revision, Revision(wanted));
        match commit.changes.len() {
            2 => theirs += 1,
            _ => ours += 1,
        }
    }
    assert_eq!((theirs, ours), (20, 20));
    own.await.unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        store.get(&id("own")).await.unwrap().unwrap().value,
        json!(20)
    );
    assert_eq!(store.check().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn child_on_a_small_disk() {
    let Some(folder) = folder_of_child() else {
        return;
    };
    let store = open(&folder).await;
    for number in 1.. {
        match store.commit(&transaction(number)).await {
            Ok(_) => print_line(&format!("acknowledged {number}")),
            Err(error) => {
                print_line(&format!("refused {:?} {error}", error.effect()));
                break;
            }
        }
    }
    // Records stay readable, and the next write is refused too instead of being lost.
    let things = Query::all(Kind::new("thing").unwrap());
    let page = store.list_all(&things).await.unwrap();
    print_line(&format!("readable {}", page.records.len() - 1));
    assert!(store.commit(&transaction(10_000)).await.is_err());
}

#[tokio::test]
async fn full_disk_loses_no_acknowledged_commit() {
    let folder = TempDir::new().unwrap();
    let mut child = start_child("child_on_a_small_disk", folder.path(), Some(SMALL_FILES));
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{lines:?}");
    let lines_with = |word: &str| {
        let matching = lines.iter().filter_map(|line| line.strip_prefix(word));
        matching.map(str::to_owned).collect::<Vec<_>>()
    };
    let acknowledged = lines_with("acknowledged ").len();
    let refused = lines_with("refused ");
    assert!(acknowledged > 5 && refused.len() == 1, "{lines:?}");
    assert_eq!(lines_with("readable "), [acknowledged.to_string()]);
    assert!(refused[0].contains("a commit failed"), "{refused:?}");

    let store = open(folder.path()).await;
    let count = store.get(&id("count")).await.unwrap().unwrap().value["count"]
        .as_u64()
        .unwrap();
    let count = usize::try_from(count).unwrap();
    // A commit with an unknown outcome may be there as well, and then all of it.
    let most = acknowledged + usize::from(refused[0].starts_with("Unknown"));
    assert!(
        (acknowledged..=most).contains(&count),
        "{count} of {acknowledged}"
    );
    let page = store
        .list_all(&Query::all(Kind::new("thing").unwrap()))
        .await
        .unwrap();
    assert_eq!(page.records.len(), count + 1);
    assert_eq!(page.revision, Revision(count as u64));
    assert_eq!(store.check().await.unwrap(), [""; 0]);
    store.commit(&transaction(count as u64 + 1)).await.unwrap();
}
