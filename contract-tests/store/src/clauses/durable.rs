//! CRASH and FULL: what a store contains after its process was killed, after it was reopened, and
//! when it has no space.
//!
//! CRASH-01 checks after each kill that every acknowledged commit is there, that no commit is there
//! in part, and that a watch continues without a gap. [`crash`](crate::crash) has the process that
//! writes.

use std::{sync::Arc, time::Duration};

use fleetwright_clause_engine::Executor;
use fleetwright_store::{Interest, Query, Revision, Store, StoreError, StoreExt, Transaction};
use serde_json::json;

use crate::{
    Context, Environment, Failure, Outcome, Pass,
    context::{self, all_things, kind, other, require_keys, revisions, thing, things_by},
    crash::ITEMS_KEPT,
    require,
};

/// How often the writing process is killed.
const KILLS: u64 = 100;

/// CRASH-01: a store must have every acknowledged commit, no partial one, and a watch without gaps
/// after a writing process is killed, a hundred times.
///
/// An acknowledged commit has been acted on: a machine runs because of it.
///
/// Kills after zero to three acknowledged commits and up to six milliseconds, so that kills fall
/// before, into and after a commit.
pub(crate) fn crash_01_killed_a_hundred_times(environment: &Environment) -> Outcome {
    let harness = (environment.factory)();
    let Some(location) = harness.location() else {
        return Ok(Pass::NotClaimed);
    };
    let child = environment.child.as_ref().ok_or_else(|| {
        Failure::KitError(
            "a store with a location needs `store_contract_tests!(new, at)`".to_owned(),
        )
    })?;
    let runtime = Executor::MultiThread.build()?;
    let mut last_checked = (0, Revision::ZERO);
    let mut other_handle = None;
    for round in 0..KILLS {
        // From before the first commit to the middle of a later one.
        let commits = usize::try_from(round % 4).unwrap_or(0);
        let extra = Duration::from_micros(round * 7919 % 6000);
        let acknowledged = child.run_until_killed(&location, commits, extra)?;
        let store = runtime.block_on(context::open(&*harness))?;
        last_checked =
            runtime.block_on(check_after_kill(&*store, round, acknowledged, last_checked))?;
        // In every other round another handle is open during the kill.
        other_handle = (round % 2 == 0).then_some(store);
    }
    drop(other_handle);
    let problems = runtime.block_on(harness.problems(context::valid(context::schema())?));
    require(matches!(&problems, Ok(found) if found.is_empty()), || {
        format!("the store's own check after {KILLS} kills returned {problems:?}")
    })?;
    require(last_checked.0 > KILLS, || {
        format!(
            "{KILLS} processes wrote {} commits together, too few for a test",
            last_checked.0
        )
    })?;
    Ok(Pass::Held)
}

/// Checks a store after a kill against what was acknowledged before it. Returns its count and
/// revision.
async fn check_after_kill(
    store: &dyn Store,
    round: u64,
    acknowledged: Option<(u64, Revision)>,
    last_checked: (u64, Revision),
) -> Result<(u64, Revision), Failure> {
    let state = StateAfterKill::read(store).await?;
    state.require_complete(round)?;
    if let Some((count, revision)) = acknowledged {
        require(state.count >= count && state.head >= revision, || {
            format!("{count} at {revision} was acknowledged before kill {round}; found: {state:?}")
        })?;
    }
    let now = (state.count, state.head);
    require_watch_without_gap(store, last_checked, now).await?;
    Ok(now)
}

/// The content of the store after a kill, read through a list, an index and a get.
#[derive(Debug)]
struct StateAfterKill {
    count: u64,
    other_count: u64,
    items: Vec<u64>,
    by_group: Vec<u64>,
    head: Revision,
}

impl StateAfterKill {
    async fn read(store: &dyn Store) -> Result<Self, Failure> {
        let failed = |error| Failure::call_failed("a read after a kill", &error);
        let things = store.list(&all_things()?).await.map_err(failed)?;
        let group = store
            .list(&things_by("group", "item")?)
            .await
            .map_err(failed)?;
        let second_counter = store.get(&other("counter")?).await.map_err(failed)?;
        let count =
            |record: &fleetwright_store::Record| record.value["count"].as_u64().unwrap_or(0);
        let is_item =
            |record: &&fleetwright_store::Record| record.key().as_str().starts_with("item-");
        let counter = things.records.iter().find(|record| !is_item(record));
        Ok(Self {
            count: counter.map_or(0, count),
            other_count: second_counter.as_ref().map_or(0, count),
            items: things.records.iter().filter(is_item).map(count).collect(),
            by_group: group.records.iter().map(count).collect(),
            head: things.revision,
        })
    }

    /// Requires that every transaction is there as a whole or not at all: both counters are equal,
    /// and exactly the items that the last transaction left exist, also in the index.
    fn require_complete(&self, round: u64) -> Result<(), Failure> {
        let oldest = (self.count + 1).saturating_sub(ITEMS_KEPT).max(1);
        let wanted: Vec<_> = (oldest..=self.count).collect();
        let is_complete =
            self.other_count == self.count && self.items == wanted && self.by_group == wanted;
        require(is_complete, || {
            format!("part of a transaction was committed before kill {round}: {self:?}")
        })
    }
}

/// Requires that a watch from the last checked revision returns every later commit, once and
/// complete.
async fn require_watch_without_gap(
    store: &dyn Store,
    last_checked: (u64, Revision),
    now: (u64, Revision),
) -> Result<(), Failure> {
    let failed = |error| Failure::call_failed("a watch after a kill", &error);
    let opened = store.watch(last_checked.1, Interest::all()).await;
    let mut watch = opened.map_err(failed)?;
    for wanted in last_checked.0 + 1..=now.0 {
        let commit = watch.next().await.map_err(failed)?;
        let count = commit
            .changes
            .first()
            .and_then(|change| change.record().value["count"].as_u64());
        let writes = if wanted > ITEMS_KEPT { 4 } else { 3 };
        require(
            count == Some(wanted) && commit.changes.len() == writes,
            || {
                format!(
                    "the watch returned {commit:?} instead of count {wanted} with {writes} changes"
                )
            },
        )?;
    }
    let position = watch.position();
    require(position == now.1, || {
        format!(
            "a watch that returned everything up to {} is at {position}",
            now.1
        )
    })
}

/// CRASH-02: a store must have all records, indexes and changes after every handle was dropped and
/// a new one was opened.
///
/// Restarts are normal operation.
///
/// Writes through one handle on one runtime, drops both, and reads through another handle on
/// another runtime.
pub(crate) fn crash_02_survives_reopening(environment: &Environment) -> Outcome {
    let harness = (environment.factory)();
    // Each part has its own runtime, like a process.
    let committed = Executor::MultiThread.build()?.block_on(async {
        let store = context::open(&*harness).await?;
        let writes = [
            Transaction::new().put(thing("a")?, json!({"name": "n", "group": "g"})),
            Transaction::new().put(thing("b")?, json!({"name": "deleted"})),
            Transaction::new().delete(thing("b")?),
        ];
        let mut committed = Vec::new();
        for transaction in writes {
            let result = store.commit(&transaction).await;
            committed.push(result.map_err(|error| Failure::call_failed("a commit", &error))?);
        }
        Ok::<_, Failure>(committed)
    })?;
    let reopened = Context::open(harness);
    Executor::MultiThread
        .build()?
        .block_on(async { require_same_content(&reopened.await?, &committed).await })
}

/// Requires that a reopened store has the records, the indexes, the revision and the changes.
async fn require_same_content(cx: &Context, committed: &[Revision]) -> Outcome {
    require_keys("all things", &cx.keys(&all_things()?).await?, &["a"])?;
    require_keys("by name", &cx.keys(&things_by("name", "n")?).await?, &["a"])?;
    let head = cx.head().await?;
    require(head == committed[2], || {
        format!(
            "the store was at {} before it was closed, and is at {head}",
            committed[2]
        )
    })?;
    cx.expect_conflict(Transaction::new().put(thing("c")?, json!({"name": "n"})))
        .await?;
    let received = cx.commits_after(committed[0]).await?;
    require(revisions(&received) == committed[1..], || {
        format!("a watch from {} returned {received:?}", committed[0])
    })?;
    let next = cx.put("b", json!({"name": "deleted"})).await?;
    require(next > committed[2], || {
        format!("the next commit has revision {next}")
    })?;
    Ok(Pass::Held)
}

/// FULL-01: a store must refuse a write as full if there is no space for it, leave no trace of it,
/// keep everything that was acknowledged readable, and accept writes again once there is space.
///
/// Disks fill up at night; the fleet must be readable in the morning, and nothing may be half
/// written.
///
/// Fills a small store, reads everything, deletes half of it, and writes again.
pub(crate) async fn full_01_full_store_loses_nothing(cx: &Context) -> Outcome {
    let opened = cx
        .harness()
        .open_small(context::valid(context::schema())?)
        .await;
    let Some(store) =
        opened.map_err(|error| Failure::call_failed("opening a small store", &error))?
    else {
        return Ok(Pass::NotClaimed);
    };
    let acknowledged = fill_up(&store).await?;
    require(!acknowledged.is_empty(), || {
        "the small store has no space for a single write".to_owned()
    })?;
    require_exactly(&store, &acknowledged).await?;
    let failed = |error| Failure::call_failed("freeing space", &error);
    let half = acknowledged.len() as u64 / 2;
    for number in 0..half {
        // Compact first: a delete is a change that is stored for watches, so it needs space too.
        store.compact(Revision(u64::MAX)).await.map_err(failed)?;
        store
            .commit(&Transaction::new().delete(item(number)?))
            .await
            .map_err(failed)?;
    }
    store.compact(Revision(u64::MAX)).await.map_err(failed)?;
    let retry = Transaction::new().put(item(0)?, large(0));
    store
        .commit(&retry)
        .await
        .map_err(|error| Failure::call_failed("a write after space was freed", &error))?;
    Ok(Pass::Held)
}

/// Returns the id of a large record.
fn item(number: u64) -> Result<fleetwright_store::RecordId, Failure> {
    thing(&format!("item-{number:06}"))
}

/// Returns a value of about eight kilobytes.
fn large(number: u64) -> serde_json::Value {
    json!({"name": format!("name-{number}"), "text": "x".repeat(8000)})
}

/// Writes until the store is full. Returns the revisions that were acknowledged.
async fn fill_up(store: &Arc<dyn Store>) -> Result<Vec<Revision>, Failure> {
    let mut acknowledged = Vec::new();
    // About a hundred megabytes; a small store must be full long before.
    for number in 0..12_000 {
        let transaction = Transaction::new()
            .put(item(number)?, large(number))
            .put(other("count")?, json!({"count": number + 1}));
        match store.commit(&transaction).await {
            Ok(revision) => acknowledged.push(revision),
            Err(StoreError::Full { .. }) => return Ok(acknowledged),
            Err(error) => {
                return Err(Failure::violated(format!(
                    "a full store must return `Full`, and returned: {error}"
                )));
            }
        }
    }
    Err(Failure::violated(
        "a store that was opened as small accepts a hundred megabytes",
    ))
}

/// Requires that a full store has exactly the acknowledged writes, in its records, its revision and
/// its watch.
async fn require_exactly(store: &Arc<dyn Store>, acknowledged: &[Revision]) -> Result<(), Failure> {
    let failed = |error| Failure::call_failed("a read of a full store", &error);
    let page = store
        .list_all(&Query::all(kind("thing")?))
        .await
        .map_err(failed)?;
    let (wanted, found) = (acknowledged.len(), page.records.len());
    require(found == wanted && page.damaged.is_empty(), || {
        format!("{wanted} writes were acknowledged, and the store has {found} records")
    })?;
    let count = store.get(&other("count")?).await.map_err(failed)?;
    let count = count.and_then(|record| record.value["count"].as_u64());
    let head = store.head().await.map_err(failed)?;
    let is_consistent = count == Some(wanted as u64) && acknowledged.last() == Some(&head);
    require(is_consistent, || {
        format!(
            "{acknowledged:?} were acknowledged; the count is {count:?} and the store is at {head}"
        )
    })?;
    let mut watch = store
        .watch(Revision::ZERO, Interest::all())
        .await
        .map_err(failed)?;
    for wanted in acknowledged {
        let commit = watch.next().await.map_err(failed)?;
        require(commit.revision == *wanted, || {
            format!("the watch returned {} instead of {wanted}", commit.revision)
        })?;
    }
    Ok(())
}
