//! One database under several names: every name leads to the same lock.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use fleetwright_store::{RecordId, Result, Schema, Store as _, StoreError, Transaction};
use fleetwright_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

/// A database in a folder, and a second folder for its other names.
struct Names {
    folder: TempDir,
}

impl Names {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["data", "links"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database(&self) -> PathBuf {
        self.path("data/store.db")
    }

    /// Every name of the database that is not a hard link.
    fn aliases(&self) -> Vec<PathBuf> {
        let link = self.path("links/link.db");
        symlink(self.database(), &link).unwrap();
        let link_to_link = self.path("links/again.db");
        symlink(&link, &link_to_link).unwrap();
        let relative_link = self.path("links/relative.db");
        symlink("../data/store.db", &relative_link).unwrap();
        let folder_link = self.path("alias");
        symlink(self.path("data"), &folder_link).unwrap();
        vec![
            link,
            link_to_link,
            relative_link,
            folder_link.join("store.db"),
            self.path("data/../data/./store.db"),
            relative(&self.database()),
        ]
    }
}

/// Returns a path from the current folder.
fn relative(path: &Path) -> PathBuf {
    let depth = env::current_dir().unwrap().components().count() - 1;
    let up: PathBuf = std::iter::repeat_n("..", depth).collect();
    up.join(path.strip_prefix("/").unwrap())
}

fn options() -> SqliteOptions {
    SqliteOptions::default().lock_timeout(Duration::from_millis(20))
}

async fn open(path: &Path, options: SqliteOptions) -> Result<SqliteStore> {
    let schema = Schema::builder().kind("thing").build()?;
    SqliteStore::open_with(path, schema, options).await
}

#[tokio::test]
async fn exclusive_database_is_refused_by_every_name() {
    let names = Names::new();
    let alone = open(&names.database(), options().exclusive())
        .await
        .unwrap();
    let aliases = names.aliases();
    for alias in &aliases {
        for second in [options(), options().exclusive()] {
            let error = open(alias, second).await.unwrap_err();
            let is_in_use = error.to_string().contains("another handle holds");
            assert!(is_in_use, "{}: {error}", alias.display());
        }
    }
    drop(alone);
    for alias in &aliases {
        open(alias, options().exclusive()).await.unwrap();
    }
}

#[tokio::test]
async fn handle_of_any_name_keeps_an_exclusive_one_out() {
    let names = Names::new();
    drop(open(&names.database(), options()).await.unwrap());
    for alias in names.aliases() {
        let shared = open(&alias, options()).await.unwrap();
        let refused = open(&names.database(), options().exclusive()).await;
        assert!(refused.is_err(), "{}", alias.display());
        drop(shared);
    }
}

#[tokio::test]
async fn new_database_has_one_lock_by_every_name_of_its_folder() {
    let names = Names::new();
    symlink(names.path("data"), names.path("alias")).unwrap();
    let alone = open(&names.path("alias/store.db"), options().exclusive()).await;
    let error = open(&names.database(), options()).await.unwrap_err();
    assert!(
        error.to_string().contains("another handle holds"),
        "{error}"
    );
    drop(alone);
}

#[tokio::test]
async fn database_with_a_hard_link_is_refused_by_both_names() {
    let names = Names::new();
    let id = RecordId::new("thing", "a").unwrap();
    let store = open(&names.database(), options().exclusive())
        .await
        .unwrap();
    let put = Transaction::new().put(id.clone(), json!({"n": 1}));
    store.commit(&put).await.unwrap();
    let second = names.path("links/second.db");
    fs::hard_link(names.database(), &second).unwrap();
    let error = open(&second, options()).await.unwrap_err();
    assert!(matches!(error, StoreError::Incompatible { .. }), "{error}");
    let reason = format!(
        "store incompatible: {} has 2 names (hard links), and may be in use under another one: \
         remove the other names, and use symbolic links instead",
        second.canonicalize().unwrap().display()
    );
    assert_eq!(error.to_string(), reason);
    // The open handle is not affected, and the database can be opened once it has one name.
    store.commit(&put).await.unwrap();
    drop(store);
    assert!(open(&names.database(), options()).await.is_err());
    fs::remove_file(&second).unwrap();
    let store = open(&names.database(), options()).await.unwrap();
    assert_eq!(store.get(&id).await.unwrap().unwrap().value["n"], 1);
}
