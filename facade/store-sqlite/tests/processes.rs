//! Other processes on the same file, and a disk that takes no more: the test program runs itself again.
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

/// What a shell does before it becomes the test program: files larger than this cannot be written, and trying to
/// is an error of the call instead of the end of the process.
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

/// Two records in one transaction, the second with what takes up room.
fn step(number: u64) -> Transaction {
    let large = "x".repeat(5000);
    Transaction::new()
        .put(id("count"), json!({"count": number}))
        .put(
            id(&format!("item-{number:05}")),
            json!({"name": number, "large": large}),
        )
}

/// Where the child of a test works; nothing in any other process.
fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn run_again(test: &str, folder: &Path, shell: Option<&str>) -> Child {
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

fn say(line: &str) {
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
        store.commit(&step(number)).await.unwrap();
    }
}

#[tokio::test]
async fn commits_of_another_process_are_watched_and_none_is_lost() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).await;
    let mut child = run_again("child_that_writes_twenty", folder.path(), None);
    let own = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..20 {
                let raised =
                    |value: serde_json::Value| Some(json!(value.as_u64().unwrap_or(0) + 1));
                store.update(&id("own"), raised).await.unwrap();
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
        match store.commit(&step(number)).await {
            Ok(_) => say(&format!("acknowledged {number}")),
            Err(error) => {
                say(&format!("refused {:?} {error}", error.effect()));
                break;
            }
        }
    }
    // Reading goes on, and the next write is refused as well instead of being lost.
    let things = Query::all(Kind::new("thing").unwrap());
    let page = store.list_all(&things).await.unwrap();
    say(&format!("readable {}", page.records.len() - 1));
    assert!(store.commit(&step(10_000)).await.is_err());
}

#[tokio::test]
async fn full_disk_loses_no_acknowledged_commit() {
    let folder = TempDir::new().unwrap();
    let mut child = run_again("child_on_a_small_disk", folder.path(), Some(SMALL_FILES));
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{lines:?}");
    let said = |word: &str| {
        let about = lines.iter().filter_map(|line| line.strip_prefix(word));
        about.map(str::to_owned).collect::<Vec<_>>()
    };
    let acknowledged = said("acknowledged ").len();
    let refused = said("refused ");
    assert!(acknowledged > 5 && refused.len() == 1, "{lines:?}");
    assert_eq!(said("readable "), [acknowledged.to_string()]);
    assert!(refused[0].contains("a commit fails"), "{refused:?}");

    let store = open(folder.path()).await;
    let count = store.get(&id("count")).await.unwrap().unwrap().value["count"]
        .as_u64()
        .unwrap();
    let count = usize::try_from(count).unwrap();
    // Only what was said to be unknown may be there besides, and then all of it.
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
    store.commit(&step(count as u64 + 1)).await.unwrap();
}
