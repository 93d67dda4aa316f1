//! WATCH: a watch returns every commit once and in order, or an error.
//!
//! No clause waits for a commit that must not come: it commits a marker and reads up to that
//! ([`Context::commits_after`]). The exception is WATCH-02, which gives a watch 20 milliseconds to
//! start waiting.

use std::{future::Future, sync::Arc, task::Poll, time::Duration};

use fleetwright_store::{
    Change, Commit, Interest, Record, RecordId, Revision, Store, StoreError, Transaction, Watch,
};
use serde_json::json;

use super::record::require_invalid;
use crate::{
    Context, Failure, Outcome, Pass,
    context::{kind, other, revisions, thing},
    require,
};

/// WATCH-01: a store must show every commit after a revision in order, with the new value of each
/// record and the last value of a deleted one.
///
/// Controllers act on changes in the order in which they were committed.
///
/// Commits creations, replacements and a transaction with a deletion before the watch starts, and
/// compares complete commits.
pub(crate) async fn watch_01_every_commit_in_order(cx: &Context) -> Outcome {
    let after = cx.put("before", json!(0)).await?;
    let created = cx.put("a", json!({"n": 1})).await?;
    let replaced = cx.put("a", json!({"n": 2})).await?;
    // A watch must return each value as it was then, not the newest one.
    let first = cx.put("c", json!(1)).await?;
    let second = cx.put("c", json!(2)).await?;
    let both = Transaction::new()
        .delete(thing("a")?)
        .put(other("b")?, json!([]));
    let both = cx.commit(both).await?;
    let record = |id, revision, value: serde_json::Value| Record {
        id,
        revision,
        value: value.into(),
    };
    let commit = |revision, changes| Commit { revision, changes };
    let (a, c) = (thing("a")?, thing("c")?);
    let wanted = [
        commit(
            created,
            vec![Change::Put(record(a.clone(), created, json!({"n": 1})))],
        ),
        commit(
            replaced,
            vec![Change::Put(record(a.clone(), replaced, json!({"n": 2})))],
        ),
        commit(first, vec![Change::Put(record(c.clone(), first, json!(1)))]),
        commit(second, vec![Change::Put(record(c, second, json!(2)))]),
        commit(
            both,
            vec![
                Change::Deleted(record(a, replaced, json!({"n": 2}))),
                Change::Put(record(other("b")?, both, json!([]))),
            ],
        ),
    ];
    let received = cx.commits_after(after).await?;
    require(received == wanted, || {
        format!("the watch returned {received:?} instead of {wanted:?}")
    })?;
    Ok(Pass::Held)
}

/// WATCH-02: a store must wait for the next commit and return it once it is committed.
///
/// A change that wakes no watcher is found only by the next full list, hours later.
///
/// Lets a watch wait for 20 milliseconds before each of three commits.
pub(crate) async fn watch_02_waits_for_the_next(cx: &Context) -> Outcome {
    let mut watch = cx.watch(cx.head().await?).await?;
    for round in 0..3 {
        let mut next = Box::pin(watch.next());
        // Time for the watch to find nothing and to start waiting.
        let early = tokio::time::timeout(Duration::from_millis(20), &mut next).await;
        require(early.is_err(), || {
            format!("nothing was committed, and the watch returned {early:?}")
        })?;
        let revision = cx.put("a", json!(round)).await?;
        let commit = cx
            .within_budget("the commit that a watch waits for", next)
            .await?;
        let commit = commit.map_err(|error| Failure::call_failed("a watch", &error))?;
        require(commit.revision == revision, || {
            format!("the watch returned {commit:?} instead of {revision}")
        })?;
    }
    Ok(Pass::Held)
}

/// WATCH-03: a store must continue from any revision with exactly the commits after it.
///
/// A restarted process has stored its position and nothing else.
///
/// Starts a watch at each of seven positions, and starts it again from its position after each
/// commit.
pub(crate) async fn watch_03_continues_from_any_revision(cx: &Context) -> Outcome {
    let committed = put_records(cx, 6).await?;
    let all = cx.commits_after(Revision::ZERO).await?;
    require(revisions(&all) == committed, || {
        format!("{committed:?} were committed, and the watch returned {all:?}")
    })?;
    for first in 0..=committed.len() {
        let after = first
            .checked_sub(1)
            .map_or(Revision::ZERO, |last| committed[last]);
        let mut watch = cx.watch(after).await?;
        for wanted in &committed[first..] {
            let commit = cx.next(&mut watch).await?;
            require(commit.revision == *wanted, || {
                format!(
                    "after {after} the watch returned {} instead of {wanted}",
                    commit.revision
                )
            })?;
            // Like a process that has stored its position and is restarted.
            watch = cx.watch(watch.position()).await?;
        }
    }
    Ok(Pass::Held)
}

/// Commits `count` records, each in its own transaction, and returns the revisions.
async fn put_records(cx: &Context, count: usize) -> Result<Vec<Revision>, Failure> {
    let mut committed = Vec::new();
    for number in 0..count {
        committed.push(cx.put(&format!("k{number}"), json!({"group": "g"})).await?);
    }
    Ok(committed)
}

/// WATCH-04: a store must show only changes of the requested kinds, advance past the others, and
/// refuse kinds that are not declared.
///
/// A watch of a quiet kind would fall behind in a busy store and be restarted for nothing.
///
/// Watches one kind while the other is written more often, and requires that the position advances
/// even if nothing is returned.
pub(crate) async fn watch_04_shows_requested_kinds_only(cx: &Context) -> Outcome {
    let interest = Interest::kinds([kind("thing")?]);
    let opened = cx.store().watch(Revision::ZERO, interest).await;
    let mut watch = opened.map_err(|error| Failure::call_failed("a watch of one kind", &error))?;
    cx.commit_marker().await?;
    let both = Transaction::new()
        .put(other("a")?, json!(1))
        .put(thing("a")?, json!(1));
    let mixed = cx.commit(both).await?;
    for _ in 0..5 {
        cx.commit_marker().await?;
    }
    let last = cx.put("b", json!(1)).await?;
    for (key, wanted) in [("a", mixed), ("b", last)] {
        let commit = cx.next(&mut watch).await?;
        let ids: Vec<_> = commit.changes.iter().map(Change::id).collect();
        require(commit.revision == wanted && ids == [&thing(key)?], || {
            format!("the watch must return only {key} at {wanted}, and returned {commit:?}")
        })?;
    }
    require(watch.position() == last, || {
        format!("{watch:?} has returned everything up to {last}")
    })?;
    let marker = cx.commit_marker().await?;
    let advanced = cx
        .within_budget("the end of the log", advance_past(&mut watch, marker))
        .await?;
    advanced?;
    let unknown = Interest::kinds([kind("thing")?, kind("unknown")?]);
    let result = cx.store().watch(Revision::ZERO, unknown).await;
    require_invalid("a watch of an undeclared kind", &result)?;
    Ok(Pass::Held)
}

/// Polls a watch that must return nothing until its position has reached a revision.
async fn advance_past(watch: &mut Watch, revision: Revision) -> Result<(), Failure> {
    while watch.position() < revision {
        let slice = Duration::from_millis(5);
        if let Ok(received) = tokio::time::timeout(slice, watch.next()).await {
            return Err(Failure::violated(format!(
                "the watch returned {received:?}, which is of another kind"
            )));
        }
    }
    Ok(())
}

/// WATCH-05: a store must refuse a watch from before the compacted revision and name the oldest
/// possible one, and keep the records.
///
/// A store that forgets commits must say so, or its watchers believe that nothing happened.
///
/// Compacts to the middle, tries every earlier position, compacts backwards, which must do nothing,
/// and then to the end.
pub(crate) async fn watch_05_compacted_revision_is_refused(cx: &Context) -> Outcome {
    let committed = put_records(cx, 5).await?;
    let oldest = committed[2];
    compact(cx, oldest).await?;
    for after in [Revision::ZERO, committed[0], committed[1]] {
        let result = cx.store().watch(after, Interest::all()).await;
        require_compacted(&result.map(|_| ()), oldest)?;
    }
    let received = cx.commits_after(oldest).await?;
    require(revisions(&received) == committed[3..], || {
        format!("{committed:?} were committed, and the watch returned {received:?} after {oldest}")
    })?;
    compact(cx, committed[0]).await?;
    cx.watch(oldest).await?;
    for number in 0..committed.len() {
        let found = cx.value(&format!("k{number}")).await?;
        require(found.is_some(), || {
            format!("compaction of its change deleted k{number}")
        })?;
    }
    let before = cx.head().await?;
    compact(cx, Revision(u64::MAX)).await?;
    let head = cx.head().await?;
    require(head == before, || {
        format!("compaction changed the revision from {before} to {head}")
    })?;
    let received = cx.commits_after(head).await?;
    require(received.is_empty(), || {
        format!("nothing was committed after {head}, and the watch returned {received:?}")
    })?;
    Ok(Pass::Held)
}

/// Compacts, which must succeed.
async fn compact(cx: &Context, through: Revision) -> Result<(), Failure> {
    let result = cx.store().compact(through).await;
    result.map_err(|error| Failure::call_failed("compact", &error))
}

/// Requires that a call was refused because of compaction, with the oldest possible revision.
fn require_compacted(result: &Result<(), StoreError>, wanted: Revision) -> Result<(), Failure> {
    let is_expected =
        matches!(result, Err(StoreError::Compacted { oldest, .. }) if *oldest == wanted);
    require(is_expected, || {
        format!(
            "the error must name {wanted} as the oldest revision, and the call returned {result:?}"
        )
    })
}

/// WATCH-06: a store must refuse a watch from a revision that it has not reached.
///
/// A store that was restored from a copy has lost commits that the watcher has seen.
///
/// Watches from the next revision and from the largest possible one.
pub(crate) async fn watch_06_future_revision_is_refused(cx: &Context) -> Outcome {
    let now = cx.put("a", json!(1)).await?;
    for ahead in [now.next(), Revision(u64::MAX)] {
        let result = cx.store().watch(ahead, Interest::all()).await;
        let is_expected = matches!(&result, Err(StoreError::Ahead { head, .. }) if *head == now);
        require(is_expected, || {
            format!("a watch from {ahead} in a store at {now} returned {result:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// WATCH-07: a store must show the commits of every handle.
///
/// Replicas write, too.
///
/// Commits through two handles in turn, with a watch on each.
pub(crate) async fn watch_07_shows_commits_of_all_handles(cx: &Context) -> Outcome {
    let another = cx.open_another().await?;
    let mut own_watch = cx.watch(Revision::ZERO).await?;
    let other_watch = another.watch(Revision::ZERO, Interest::all()).await;
    let mut other_watch =
        other_watch.map_err(|error| Failure::call_failed("a watch on another handle", &error))?;
    let stores: [&Arc<dyn Store>; 2] = [cx.store(), &another];
    for (number, store) in stores.into_iter().cycle().take(4).enumerate() {
        let transaction = Transaction::new().put(thing("a")?, json!(number));
        let result = store.commit(&transaction).await;
        let revision = result.map_err(|error| Failure::call_failed("a commit", &error))?;
        for watch in [&mut own_watch, &mut other_watch] {
            let commit = cx.next(watch).await?;
            require(commit.revision == revision, || {
                format!(
                    "the watch returned {} instead of {revision} of handle {}",
                    commit.revision,
                    number % 2
                )
            })?;
        }
    }
    Ok(Pass::Held)
}

/// WATCH-08: a store must lose nothing when a call for the next commit is dropped.
///
/// Timeouts and `select!` drop calls often.
///
/// Polls the next commit once before and after each commit and drops the call, then collects the
/// rest.
pub(crate) async fn watch_08_dropped_call_loses_nothing(cx: &Context) -> Outcome {
    let mut watch = cx.watch(Revision::ZERO).await?;
    let (mut committed, mut received) = (Vec::new(), Vec::new());
    for number in 0..4 {
        received.extend(first_poll(&mut watch).await);
        committed.push(cx.put("a", json!(number)).await?);
        received.extend(first_poll(&mut watch).await);
    }
    while received.len() < committed.len() {
        received.push(
            cx.within_budget("a commit after a dropped call", watch.next())
                .await?,
        );
    }
    let received: Result<Vec<_>, _> = received.into_iter().collect();
    let received = received.map_err(|error| Failure::call_failed("a watch", &error))?;
    require(revisions(&received) == committed, || {
        format!(
            "{committed:?} were committed and calls were dropped; the watch returned {received:?}"
        )
    })?;
    Ok(Pass::Held)
}

/// Polls the next commit once. Returns it if it is ready, and drops the call otherwise.
async fn first_poll(watch: &mut Watch) -> Option<Result<Commit, StoreError>> {
    let mut next = Box::pin(watch.next());
    std::future::poll_fn(move |context| match next.as_mut().poll(context) {
        Poll::Ready(commit) => Poll::Ready(Some(commit)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// WATCH-09: a store must show every commit of many concurrent writers once and in order.
///
/// A gap under load is a bug that no test without load finds.
///
/// Lets four writers commit fifteen times each through two handles while a watch reads.
pub(crate) async fn watch_09_no_gap_and_no_duplicate_under_load(cx: &Context) -> Outcome {
    const WRITERS: usize = 4;
    let handles = [Arc::clone(cx.store()), cx.open_another().await?];
    let mut watch = cx.watch(Revision::ZERO).await?;
    let mut writers = Vec::new();
    for (number, store) in handles.into_iter().cycle().take(WRITERS).enumerate() {
        let id = thing(&format!("writer-{number}"))?;
        writers.push(tokio::spawn(write_repeatedly(store, id)));
    }
    let (store, last) = (
        Arc::clone(cx.store()),
        Transaction::new().put(other("last")?, json!(1)),
    );
    // The last commit follows all others, so the watch can stop there.
    let all_writers = tokio::spawn(async move {
        let mut committed = Vec::new();
        for writer in writers {
            committed.extend(
                writer
                    .await
                    .map_err(|error| Failure::KitError(error.to_string()))??,
            );
        }
        committed.sort_unstable();
        let result = store.commit(&last).await;
        committed.push(result.map_err(|error| Failure::call_failed("the last commit", &error))?);
        Ok::<_, Failure>(committed)
    });
    let mut received = Vec::new();
    loop {
        let commit = cx.next(&mut watch).await?;
        received.push(commit.revision);
        if commit
            .changes
            .iter()
            .any(|change| change.id().key.as_str() == "last")
        {
            break;
        }
    }
    let committed = all_writers
        .await
        .map_err(|error| Failure::KitError(error.to_string()))??;
    require(received == committed, || {
        format!("{committed:?} were committed, and the watch returned {received:?}")
    })?;
    Ok(Pass::Held)
}

/// Writes one record fifteen times and returns the revisions.
async fn write_repeatedly(store: Arc<dyn Store>, id: RecordId) -> Result<Vec<Revision>, Failure> {
    const COMMITS: usize = 15;
    let mut committed = Vec::new();
    for count in 0..COMMITS {
        let result = store
            .commit(&Transaction::new().put(id.clone(), json!(count)))
            .await;
        committed.push(result.map_err(|error| Failure::call_failed("a commit", &error))?);
    }
    Ok(committed)
}

/// WATCH-10: a store must report to a watch that has fallen behind that its commits are compacted,
/// and never leave a gap.
///
/// Slow watchers are the ones that would miss commits.
///
/// Compacts beyond the position of an open watch. The next call must fail with the oldest possible
/// revision, and a watch from there must work.
pub(crate) async fn watch_10_slow_watch_gets_an_error(cx: &Context) -> Outcome {
    let mut watch = cx.watch(Revision::ZERO).await?;
    cx.put("a", json!(1)).await?;
    cx.next(&mut watch).await?;
    let committed = put_records(cx, 4).await?;
    compact(cx, committed[2]).await?;
    let next = cx
        .within_budget("the next commit of a slow watch", watch.next())
        .await?;
    require_compacted(&next.map(|_| ()), committed[2])?;
    let mut restarted = cx.watch(committed[2]).await?;
    let commit = cx.next(&mut restarted).await?;
    require(commit.revision == committed[3], || {
        format!(
            "a new watch from {} returned {commit:?} first",
            committed[2]
        )
    })?;
    Ok(Pass::Held)
}
