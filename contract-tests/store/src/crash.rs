//! The process that CRASH-01 starts, lets write, and kills.
//!
//! It is the test program itself, run again for the one test that
//! [`store_contract_tests!`](crate::store_contract_tests) adds for it, with the records' location in the
//! environment. It says on its standard error which commits were acknowledged; what it said before it died is
//! what must be there afterwards.

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use fleetwright_clause_engine::Executor;
use serde_json::json;

use crate::{Failure, Harness, context};
use fleetwright_store::{Revision, Store, StoreError, Transaction};

const LOCATION: &str = "FLEETWRIGHT_STORE_CRASH_LOCATION";
const ACKNOWLEDGED: &str = "acknowledged";

/// How many records of the past are kept beside the last one.
pub(crate) const KEPT: u64 = 3;

/// How to start another process that writes.
#[derive(Clone, Debug)]
pub struct Child {
    test: String,
}

impl Child {
    /// By the path of its test, as `module_path!` has it: with the name of the program in front.
    pub fn new(test: &str) -> Self {
        let test = test.split_once("::").map_or(test, |(_, path)| path);
        Self {
            test: test.to_owned(),
        }
    }

    /// Lets a process write until it has acknowledged `commits` and `longer` has passed, and kills it. Answers
    /// the last count and revision that it acknowledged.
    pub(crate) fn killed_after(
        &self,
        location: &str,
        commits: usize,
        longer: Duration,
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
        let mut told = BufReader::new(
            child
                .stderr
                .take()
                .ok_or(Failure::KitError("no pipe".to_owned()))?,
        );
        let mut last = None;
        let mut count = 0;
        while count < commits {
            let Some(line) = next_line(&mut told) else {
                child.kill().map_err(kit)?;
                child.wait().map_err(kit)?;
                return Err(Failure::violated("the process that writes ended by itself"));
            };
            last = acknowledged(&line)?.or(last);
            count += usize::from(acknowledged(&line)?.is_some());
        }
        std::thread::sleep(longer);
        child.kill().map_err(kit)?;
        child.wait().map_err(kit)?;
        // What it still said before it died counts, too.
        while let Some(line) = next_line(&mut told) {
            last = acknowledged(&line)?.or(last);
        }
        Ok(last)
    }
}

/// A line that was written to its end.
fn next_line(told: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = told.read_line(&mut line);
    (read.is_ok() && line.ends_with('\n')).then_some(line)
}

/// The count and the revision of a line about a commit; an error if the line is about a failure.
fn acknowledged(line: &str) -> Result<Option<(u64, Revision)>, Failure> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words.as_slice() {
        [ACKNOWLEDGED, count, revision] => match (count.parse(), revision.parse()) {
            (Ok(count), Ok(revision)) => Ok(Some((count, Revision(revision)))),
            (Err(_), _) | (_, Err(_)) => Err(Failure::KitError(format!("the child says {line:?}"))),
        },
        ["failed", ..] => Err(Failure::violated(format!(
            "the process that writes says: {line}"
        ))),
        _ => Ok(None),
    }
}

/// Writes until it is killed, if this is the process that CRASH-01 has started; else does nothing.
pub fn run_child<H: Harness>(at: impl FnOnce(&str) -> H) {
    let Ok(location) = std::env::var(LOCATION) else {
        return;
    };
    let harness = at(&location);
    let ended = Executor::MultiThread
        .build()
        .and_then(|runtime| runtime.block_on(write_for_ever(&harness)));
    if let Err(stop) = ended {
        say(&format!("failed {stop:?}\n"));
    }
}

async fn write_for_ever(harness: &dyn Harness) -> Result<(), Failure> {
    let failed =
        |error: StoreError| Failure::call_failed("a call of the process that writes", &error);
    let opened = harness.open(context::wrong(context::schema())?).await;
    let store: Arc<dyn Store> = opened.map_err(failed)?;
    let counter = context::thing("counter")?;
    let before = store.get(&counter).await.map_err(failed)?;
    let first = before.map_or(0, |record| record.value["count"].as_u64().unwrap_or(0)) + 1;
    for count in first.. {
        let revision = store.commit(&step(count)?).await.map_err(failed)?;
        // In one piece, so that a kill cuts no line in two that was begun.
        say(&format!("{ACKNOWLEDGED} {count} {revision}\n"));
    }
    Ok(())
}

/// One transaction of four writes: they are all there, or the count is not there.
fn step(count: u64) -> Result<Transaction, Failure> {
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
    match count.checked_sub(KEPT) {
        Some(old) => Ok(transaction.delete(item(old)?)),
        None => Ok(transaction),
    }
}

fn say(line: &str) {
    let mut out = std::io::stderr().lock();
    // Nobody listens once the parent is gone: then there is nobody to tell that either.
    let _ = out.write_all(line.as_bytes());
    let _ = out.flush();
}
