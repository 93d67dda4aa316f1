//! What is left after a kill, after closing, and when there is no more room.

use std::{sync::Arc, time::Duration};

use fleetwright_clause_engine::Executor;
use serde_json::json;

use crate::{
    Context, Environment, Failure, Outcome, Pass,
    context::{self, all_things, by, kind, other, revisions, same_keys, thing},
    crash::KEPT,
    require,
};
use fleetwright_store::{Interest, Query, Revision, Store, StoreError, StoreExt, Transaction};

const KILLS: u64 = 100;

/// CRASH-01: a store must have every acknowledged commit, no partial one, and a watch without gaps
/// after a writing process is killed, a hundred times.
///
/// An acknowledged commit has been acted on: a machine runs because of it.
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
    let mut seen = (0, Revision::ZERO);
    let mut onlooker = None;
    for round in 0..KILLS {
        // From before the first commit to within a later one.
        let commits = usize::try_from(round % 4).unwrap_or(0);
        let longer = Duration::from_micros(round * 7919 % 6000);
        let acknowledged = child.killed_after(&location, commits, longer)?;
        let store = runtime.block_on(context::open(&*harness))?;
        seen = runtime.block_on(aftermath(&*store, round, acknowledged, seen))?;
        // Some die alone, and what they leave is found by who opens it next; some while others have it open.
        onlooker = (round % 2 == 0).then_some(store);
    }
    drop(onlooker);
    let problems = runtime.block_on(harness.problems(context::wrong(context::schema())?));
    require(matches!(&problems, Ok(found) if found.is_empty()), || {
        format!("the store's own check after {KILLS} kills: {problems:?}")
    })?;
    require(seen.0 > KILLS, || {
        format!("{KILLS} processes wrote {} commits in all", seen.0)
    })?;
    Ok(Pass::Held)
}

/// Holds the store to what was acknowledged before a kill; answers where it is.
async fn aftermath(
    store: &dyn Store,
    round: u64,
    acknowledged: Option<(u64, Revision)>,
    seen: (u64, Revision),
) -> Result<(u64, Revision), Failure> {
    let whole = Aftermath::read(store).await?;
    whole.is_whole(round)?;
    if let Some((count, revision)) = acknowledged {
        require(whole.count >= count && whole.head >= revision, || {
            format!("{count} at {revision} was acknowledged before kill {round}; found: {whole:?}")
        })?;
    }
    let now = (whole.count, whole.head);
    watch_is_unbroken(store, seen, now).await?;
    Ok(now)
}

/// What is found after a kill.
#[derive(Debug)]
struct Aftermath {
    count: u64,
    other_count: u64,
    items: Vec<u64>,
    by_group: Vec<u64>,
    head: Revision,
}

impl Aftermath {
    async fn read(store: &dyn Store) -> Result<Self, Failure> {
        let failed = |error| Failure::call_failed("a read after a kill", &error);
        let things = store.list(&all_things()?).await.map_err(failed)?;
        let group = store.list(&by("group", "item")?).await.map_err(failed)?;
        let twin = store.get(&other("counter")?).await.map_err(failed)?;
        let count =
            |record: &fleetwright_store::Record| record.value["count"].as_u64().unwrap_or(0);
        let is_item =
            |record: &&fleetwright_store::Record| record.key().as_str().starts_with("item-");
        let counter = things.records.iter().find(|record| !is_item(record));
        Ok(Self {
            count: counter.map_or(0, count),
            other_count: twin.as_ref().map_or(0, count),
            items: things.records.iter().filter(is_item).map(count).collect(),
            by_group: group.records.iter().map(count).collect(),
            head: things.revision,
        })
    }

    /// All of every transaction, or nothing of it.
    fn is_whole(&self, round: u64) -> Result<(), Failure> {
        let oldest = (self.count + 1).saturating_sub(KEPT).max(1);
        let wanted: Vec<_> = (oldest..=self.count).collect();
        let is_whole =
            self.other_count == self.count && self.items == wanted && self.by_group == wanted;
        require(is_whole, || {
            format!("a transaction by half after kill {round}: {self:?}")
        })
    }
}

/// Every commit after the last that was seen, once and whole: also across kills.
async fn watch_is_unbroken(
    store: &dyn Store,
    seen: (u64, Revision),
    now: (u64, Revision),
) -> Result<(), Failure> {
    let failed = |error| Failure::call_failed("a watch after a kill", &error);
    let opened = store.watch(seen.1, Interest::all()).await;
    let mut watch = opened.map_err(failed)?;
    for wanted in seen.0 + 1..=now.0 {
        let commit = watch.next().await.map_err(failed)?;
        let count = commit
            .changes
            .first()
            .and_then(|change| change.record().value["count"].as_u64());
        let writes = if wanted > KEPT { 4 } else { 3 };
        require(
            count == Some(wanted) && commit.changes.len() == writes,
            || format!("{commit:?} is shown, where count {wanted} with {writes} changes must be"),
        )?;
    }
    let position = watch.position();
    require(position == now.1, || {
        format!("a watch of all up to {} is at {position}", now.1)
    })
}

/// CRASH-02: a store must have all records, indexes and changes after every handle was dropped and
/// a new one was opened.
///
/// Restarts are normal operation.
pub(crate) fn crash_02_survives_reopening(environment: &Environment) -> Outcome {
    let harness = (environment.factory)();
    // A runtime each, as a process has.
    let made = Executor::MultiThread.build()?.block_on(async {
        let store = context::open(&*harness).await?;
        let writes = [
            Transaction::new().put(thing("a")?, json!({"name": "n", "group": "g"})),
            Transaction::new().put(thing("b")?, json!({"name": "gone"})),
            Transaction::new().delete(thing("b")?),
        ];
        let mut made = Vec::new();
        for transaction in writes {
            let answer = store.commit(&transaction).await;
            made.push(answer.map_err(|error| Failure::call_failed("a commit", &error))?);
        }
        Ok::<_, Failure>(made)
    })?;
    let again = Context::open(harness);
    Executor::MultiThread
        .build()?
        .block_on(async { is_as_before(&again.await?, &made).await })
}

async fn is_as_before(cx: &Context, made: &[Revision]) -> Outcome {
    same_keys("all things", &cx.keys(&all_things()?).await?, &["a"])?;
    same_keys("by name", &cx.keys(&by("name", "n")?).await?, &["a"])?;
    let head = cx.head().await?;
    require(head == made[2], || {
        format!("the store was at {}, and is at {head}", made[2])
    })?;
    cx.conflict(Transaction::new().put(thing("c")?, json!({"name": "n"})))
        .await?;
    let shown = cx.shown_after(made[0]).await?;
    require(revisions(&shown) == made[1..], || {
        format!("a watch goes on with {shown:?}")
    })?;
    let next = cx.put("b", json!({"name": "gone"})).await?;
    require(next > made[2], || format!("the next commit answers {next}"))?;
    Ok(Pass::Held)
}

/// FULL-01: a store must refuse a write for which there is no room as full, without a trace, keep
/// everything that was acknowledged readable, and continue once there is room.
///
/// Disks fill up at night; the fleet must be readable in the morning, and nothing may be half
/// written.
pub(crate) async fn full_01_full_store_loses_nothing(cx: &Context) -> Outcome {
    let opened = cx
        .harness()
        .open_small(context::wrong(context::schema())?)
        .await;
    let Some(store) =
        opened.map_err(|error| Failure::call_failed("opening a small store", &error))?
    else {
        return Ok(Pass::NotClaimed);
    };
    let acknowledged = fill_up(&store).await?;
    require(!acknowledged.is_empty(), || {
        "there is no room for anything".to_owned()
    })?;
    holds_exactly(&store, &acknowledged).await?;
    let failed = |error| Failure::call_failed("making room", &error);
    let half = acknowledged.len() as u64 / 2;
    for number in 0..half {
        // First of all, because a delete is a change, too, and is kept for watches.
        store.compact(Revision(u64::MAX)).await.map_err(failed)?;
        store
            .commit(&Transaction::new().delete(item(number)?))
            .await
            .map_err(failed)?;
    }
    store.compact(Revision(u64::MAX)).await.map_err(failed)?;
    let again = Transaction::new().put(item(0)?, large(0));
    store
        .commit(&again)
        .await
        .map_err(|error| Failure::call_failed("a write once there is room", &error))?;
    Ok(Pass::Held)
}

fn item(number: u64) -> Result<fleetwright_store::RecordId, Failure> {
    thing(&format!("item-{number:06}"))
}

fn large(number: u64) -> serde_json::Value {
    json!({"name": format!("name-{number}"), "text": "x".repeat(8000)})
}

/// Writes until there is no more room; answers the writes that were acknowledged.
async fn fill_up(store: &Arc<dyn Store>) -> Result<Vec<Revision>, Failure> {
    let mut acknowledged = Vec::new();
    // Enough for a hundred megabytes: a small store is smaller.
    for number in 0..12_000 {
        let transaction = Transaction::new()
            .put(item(number)?, large(number))
            .put(other("count")?, json!({"count": number + 1}));
        match store.commit(&transaction).await {
            Ok(revision) => acknowledged.push(revision),
            Err(StoreError::Full { .. }) => return Ok(acknowledged),
            Err(error) => {
                return Err(Failure::violated(format!(
                    "no room must be told as full, not so: {error}"
                )));
            }
        }
    }
    Err(Failure::violated(
        "a store that is to be small takes a hundred megabytes",
    ))
}

async fn holds_exactly(store: &Arc<dyn Store>, acknowledged: &[Revision]) -> Result<(), Failure> {
    let failed = |error| Failure::call_failed("a read of a full store", &error);
    let page = store
        .list_all(&Query::all(kind("thing")?))
        .await
        .map_err(failed)?;
    let (wanted, found) = (acknowledged.len(), page.records.len());
    require(found == wanted && page.damaged.is_empty(), || {
        format!("{wanted} writes were acknowledged, and {found} records are there")
    })?;
    let count = store.get(&other("count")?).await.map_err(failed)?;
    let count = count.and_then(|record| record.value["count"].as_u64());
    let head = store.head().await.map_err(failed)?;
    let is_right = count == Some(wanted as u64) && acknowledged.last() == Some(&head);
    require(is_right, || {
        format!("{acknowledged:?} is what was; counted {count:?}, at {head}")
    })?;
    let mut watch = store
        .watch(Revision::ZERO, Interest::all())
        .await
        .map_err(failed)?;
    for wanted in acknowledged {
        let commit = watch.next().await.map_err(failed)?;
        require(commit.revision == *wanted, || {
            format!("{} for {wanted}", commit.revision)
        })?;
    }
    Ok(())
}
