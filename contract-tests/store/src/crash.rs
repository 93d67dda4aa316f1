//! The process that CRASH-01 starts, lets write, and kills.
//!
//! The process is the test program itself. [`store_contract_tests!`](crate::store_contract_tests)
//! adds a test, `store_contract_child`, that calls [`run_child`]. CRASH-01 runs the program again
//! with only that test and with the location of the records in an environment variable; in a normal
//! run the variable is not set and the test returns at once.
//!
//! The child writes one line to its standard error for each acknowledged commit. Every commit whose
//! line the parent has read must be in the store after the kill. Lines are written in one piece, so
//! a kill can cut off the last line but cannot falsify one.
//!
//! A test that runs CRASH-01 on a harness of its own writes the same test itself:
//!
//! ```no_run
//! use fleetwright_store_contract::{MemoryHarness, crash::{Child, run_child}};
//!
//! # fn open_harness_at(_location: &str) -> MemoryHarness { MemoryHarness::new() }
//! fn child() {
//!     run_child(open_harness_at);
//! }
//!
//! let child_process = Child::new("my_tests::child");
//! ```

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use fleetwright_clause_engine::Executor;
use fleetwright_store::{Revision, Store, StoreError, Transaction};
use serde_json::json;

use crate::{Failure, Harness, context};

/// The environment variable with the location. It is set in the child process only.
const LOCATION: &str = "FLEETWRIGHT_STORE_CRASH_LOCATION";
/// The first word of a line about an acknowledged commit.
const ACKNOWLEDGED: &str = "acknowledged";

/// The number of items that exist at the same time: each transaction creates one and deletes the
/// oldest.
pub(crate) const ITEMS_KEPT: u64 = 3;

/// How to start the process that writes: the name of its test in this program.
///
/// ```
/// use fleetwright_store_contract::crash::Child;
///
/// let child = Child::new(concat!(module_path!(), "::store_contract_child"));
/// ```
#[derive(Clone, Debug)]
pub struct Child {
    test: String,
}

impl Child {
    /// Names the test by its path with the crate in front, as `module_path!` returns it.
    pub fn new(test: &str) -> Self {
        let test = test.split_once("::").map_or(test, |(_, path)| path);
        Self {
            test: test.to_owned(),
        }
    }

    /// Starts a process, waits until it has acknowledged `commits` and then for `extra`, and kills
    /// it. Returns the last count and revision that it acknowledged, or `None` if it acknowledged
    /// nothing.
    pub(crate) fn run_until_killed(
        &self,
        location: &str,
        commits: usize,
        extra: Duration,
    ) -> Result<Option<(u64, Revision)>, Failure> {
        let kit = |error: std::io::Error| Failure::KitError(format!("the child process: {error}"));
        let program = std::env::current_exe().map_err(kit)?;
        let mut child = Command::new(program)
            .args([&self.test, "--exact", "--nocapture", "--test-threads=1"])
            .env(LOCATION, location)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(kit)?;
        let mut output = BufReader::new(
            child
                .stderr
                .take()
                .ok_or(Failure::KitError("no pipe".to_owned()))?,
        );
        let mut last = None;
        let mut count = 0;
        while count < commits {
            let Some(line) = next_line(&mut output) else {
                child.kill().map_err(kit)?;
                child.wait().map_err(kit)?;
                return Err(Failure::violated("the writing process ended by itself"));
            };
            last = acknowledged(&line)?.or(last);
            count += usize::from(acknowledged(&line)?.is_some());
        }
        std::thread::sleep(extra);
        child.kill().map_err(kit)?;
        child.wait().map_err(kit)?;
        // Lines that it wrote before the kill count as well.
        while let Some(line) = next_line(&mut output) {
            last = acknowledged(&line)?.or(last);
        }
        Ok(last)
    }
}

/// Returns the next complete line, or `None` at the end of the output.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = output.read_line(&mut line);
    (read.is_ok() && line.ends_with('\n')).then_some(line)
}

/// Returns the count and the revision of a line about a commit, and `None` for any other line. A
/// line about a failure is an error.
fn acknowledged(line: &str) -> Result<Option<(u64, Revision)>, Failure> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words.as_slice() {
        [ACKNOWLEDGED, count, revision] => match (count.parse(), revision.parse()) {
            (Ok(count), Ok(revision)) => Ok(Some((count, Revision(revision)))),
            (Err(_), _) | (_, Err(_)) => Err(Failure::KitError(format!(
                "the child process wrote {line:?}"
            ))),
        },
        ["failed", ..] => Err(Failure::violated(format!(
            "the writing process reported: {line}"
        ))),
        _ => Ok(None),
    }
}

/// Writes until the process is killed, if CRASH-01 has started it. Returns at once otherwise.
///
/// `at` creates a harness on the records at a [`location`](Harness::location).
///
/// ```
/// use fleetwright_store_contract::{MemoryHarness, crash::run_child};
///
/// // Returns at once: CRASH-01 has not started this process.
/// run_child(|_location| MemoryHarness::new());
/// ```
pub fn run_child<H: Harness>(at: impl FnOnce(&str) -> H) {
    let Ok(location) = std::env::var(LOCATION) else {
        return;
    };
    let harness = at(&location);
    let result = Executor::MultiThread
        .build()
        .and_then(|runtime| runtime.block_on(write_until_killed(&harness)));
    if let Err(failure) = result {
        print_line(&format!("failed {failure:?}\n"));
    }
}

/// Continues the count that it finds in the store, one transaction at a time.
async fn write_until_killed(harness: &dyn Harness) -> Result<(), Failure> {
    let failed = |error: StoreError| Failure::call_failed("a call of the writing process", &error);
    let opened = harness.open(context::valid(context::schema())?).await;
    let store: Arc<dyn Store> = opened.map_err(failed)?;
    let counter = context::thing("counter")?;
    let before = store.get(&counter).await.map_err(failed)?;
    let first = before.map_or(0, |record| record.value["count"].as_u64().unwrap_or(0)) + 1;
    for count in first.. {
        let revision = store
            .commit(&transaction_for(count)?)
            .await
            .map_err(failed)?;
        // In one piece, so that a kill leaves no partial line.
        print_line(&format!("{ACKNOWLEDGED} {count} {revision}\n"));
    }
    Ok(())
}

/// Returns the transaction for a count: both counters, the new item, and the deletion of the oldest
/// item. Values have different sizes, so that kills happen at different points of the store's
/// files.
fn transaction_for(count: u64) -> Result<Transaction, Failure> {
    let item = |count: u64| context::thing(&format!("item-{count:08}"));
    let name = format!("name-{count}");
    let large = "x".repeat(usize::try_from(count % 7).unwrap_or(0) * 1500);
    let transaction = Transaction::new()
        .put(context::thing("counter")?, json!({"count": count}))
        .put(
            item(count)?,
            json!({"name": name, "count": count, "group": "item", "large": large}),
        )
        .put(context::other("counter")?, json!({"count": count}));
    match count.checked_sub(ITEMS_KEPT) {
        Some(old) => Ok(transaction.delete(item(old)?)),
        None => Ok(transaction),
    }
}

/// Writes a line to standard error, in one piece.
fn print_line(line: &str) {
    let mut out = std::io::stderr().lock();
    // Fails if the parent has died; there is no other place to report that.
    let _ = out.write_all(line.as_bytes());
    let _ = out.flush();
}
