//! Watches: every commit once, in order, or an error.

use std::{future::Future, sync::Arc, task::Poll, time::Duration};

use serde_json::json;

use super::record::is_invalid;
use crate::{
    Context, Failure, Outcome, Pass,
    context::{kind, other, revisions, thing},
    require,
};
use fleetwright_store::{
    Change, Commit, Interest, Record, RecordId, Revision, Store, StoreError, Transaction, Watch,
};

/// WATCH-01: a store must show every commit after a revision in order, with the new value of each
/// record and the last value of a deleted one.
///
/// Controllers act on changes in the order in which they were made.
pub(crate) async fn watch_01_every_commit_in_order(cx: &Context) -> Outcome {
    let after = cx.put("before", json!(0)).await?;
    let made = cx.put("a", json!({"n": 1})).await?;
    let replaced = cx.put("a", json!({"n": 2})).await?;
    // Each as it was then, not as it is by the time the watch looks.
    let first = cx.put("c", json!(1)).await?;
    let second = cx.put("c", json!(2)).await?;
    let both = Transaction::new()
        .delete(thing("a")?)
        .put(other("b")?, json!([]));
    let both = cx.commit(both).await?;
    let record = |id, revision, value| Record {
        id,
        revision,
        value,
    };
    let commit = |revision, changes| Commit { revision, changes };
    let (a, c) = (thing("a")?, thing("c")?);
    let wanted = [
        commit(
            made,
            vec![Change::Put(record(a.clone(), made, json!({"n": 1})))],
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
    let shown = cx.shown_after(after).await?;
    require(shown == wanted, || {
        format!("shown: {shown:?}, and must be: {wanted:?}")
    })?;
    Ok(Pass::Held)
}

/// WATCH-02: a store must wait for the next commit and return when it is made.
///
/// A change that wakes nobody is only found by the next full list, hours later.
pub(crate) async fn watch_02_waits_for_the_next(cx: &Context) -> Outcome {
    let mut watch = cx.watch(cx.head().await?).await?;
    for round in 0..3 {
        let mut next = Box::pin(watch.next());
        // Time to find that there is nothing, and to begin to wait.
        let early = tokio::time::timeout(Duration::from_millis(20), &mut next).await;
        require(early.is_err(), || {
            format!("nothing was committed, and {early:?} is shown")
        })?;
        let revision = cx.put("a", json!(round)).await?;
        let commit = cx.in_time("what a watch waits for", next).await?;
        let commit = commit.map_err(|error| Failure::call_failed("a watch", &error))?;
        require(commit.revision == revision, || {
            format!("{commit:?} is shown, not {revision}")
        })?;
    }
    Ok(Pass::Held)
}

/// WATCH-03: a store must continue from any revision with exactly the commits after it.
///
/// A restarted process has stored its position and nothing else.
pub(crate) async fn watch_03_continues_from_any_revision(cx: &Context) -> Outcome {
    let made = put_each(cx, 6).await?;
    let all = cx.shown_after(Revision::ZERO).await?;
    require(revisions(&all) == made, || {
        format!("{made:?} were made, and shown is {all:?}")
    })?;
    for first in 0..=made.len() {
        let after = first
            .checked_sub(1)
            .map_or(Revision::ZERO, |last| made[last]);
        let mut watch = cx.watch(after).await?;
        for wanted in &made[first..] {
            let commit = cx.next(&mut watch).await?;
            require(commit.revision == *wanted, || {
                format!(
                    "after {after}, {} is shown where {wanted} must be",
                    commit.revision
                )
            })?;
            // As a process does that has stored its position and starts anew.
            watch = cx.watch(watch.position()).await?;
        }
    }
    Ok(Pass::Held)
}

/// So many commits, of a record each.
async fn put_each(cx: &Context, count: usize) -> Result<Vec<Revision>, Failure> {
    let mut made = Vec::new();
    for number in 0..count {
        made.push(cx.put(&format!("k{number}"), json!({"group": "g"})).await?);
    }
    Ok(made)
}

/// WATCH-04: a store must show only changes of the requested kinds, advance past the others, and
/// refuse kinds that are not declared.
///
/// A watch of a quiet kind would fall behind in a busy store and be restarted for nothing.
pub(crate) async fn watch_04_shows_requested_kinds_only(cx: &Context) -> Outcome {
    let interest = Interest::kinds([kind("thing")?]);
    let opened = cx.store().watch(Revision::ZERO, interest).await;
    let mut watch = opened.map_err(|error| Failure::call_failed("a watch of one kind", &error))?;
    cx.mark().await?;
    let both = Transaction::new()
        .put(other("a")?, json!(1))
        .put(thing("a")?, json!(1));
    let mixed = cx.commit(both).await?;
    for _ in 0..5 {
        cx.mark().await?;
    }
    let last = cx.put("b", json!(1)).await?;
    for (key, wanted) in [("a", mixed), ("b", last)] {
        let commit = cx.next(&mut watch).await?;
        let ids: Vec<_> = commit.changes.iter().map(Change::id).collect();
        require(commit.revision == wanted && ids == [&thing(key)?], || {
            format!("{key} at {wanted} must be shown alone, not {commit:?}")
        })?;
    }
    require(watch.position() == last, || {
        format!("{watch:?} has shown all up to {last}")
    })?;
    let marked = cx.mark().await?;
    let idle = cx
        .in_time("the end of the log", moved_past(&mut watch, marked))
        .await?;
    idle?;
    let unknown = Interest::kinds([kind("thing")?, kind("unknown")?]);
    let answer = cx.store().watch(Revision::ZERO, unknown).await;
    is_invalid("a watch of an undeclared kind", &answer)?;
    Ok(Pass::Held)
}

/// Polls a watch to which nothing of interest comes until it has moved on.
async fn moved_past(watch: &mut Watch, revision: Revision) -> Result<(), Failure> {
    while watch.position() < revision {
        let slice = Duration::from_millis(5);
        if let Ok(shown) = tokio::time::timeout(slice, watch.next()).await {
            return Err(Failure::violated(format!(
                "{shown:?} is shown and of no interest"
            )));
        }
    }
    Ok(())
}

/// WATCH-05: a store must refuse a watch from before the compacted revision and name the oldest
/// possible one, and keep the records.
///
/// A store that forgets commits must say so, or its watchers believe that nothing happened.
pub(crate) async fn watch_05_compacted_revision_is_refused(cx: &Context) -> Outcome {
    let made = put_each(cx, 5).await?;
    let oldest = made[2];
    compact(cx, oldest).await?;
    for after in [Revision::ZERO, made[0], made[1]] {
        let answer = cx.store().watch(after, Interest::all()).await;
        is_compacted(&answer.map(|_| ()), oldest)?;
    }
    let shown = cx.shown_after(oldest).await?;
    require(revisions(&shown) == made[3..], || {
        format!("{made:?} were made, and behind {oldest} is shown {shown:?}")
    })?;
    compact(cx, made[0]).await?;
    cx.watch(oldest).await?;
    for number in 0..made.len() {
        let found = cx.value(&format!("k{number}")).await?;
        require(found.is_some(), || {
            format!("k{number} is gone with its change")
        })?;
    }
    let before = cx.head().await?;
    compact(cx, Revision(u64::MAX)).await?;
    let head = cx.head().await?;
    require(head == before, || {
        format!("compacting moved the store from {before} to {head}")
    })?;
    let shown = cx.shown_after(head).await?;
    require(shown.is_empty(), || {
        format!("nothing came after {head}, and shown is {shown:?}")
    })?;
    Ok(Pass::Held)
}

async fn compact(cx: &Context, through: Revision) -> Result<(), Failure> {
    let answer = cx.store().compact(through).await;
    answer.map_err(|error| Failure::call_failed("compact", &error))
}

fn is_compacted(answer: &Result<(), StoreError>, wanted: Revision) -> Result<(), Failure> {
    let is_told = matches!(answer, Err(StoreError::Compacted { oldest, .. }) if *oldest == wanted);
    require(is_told, || {
        format!("must be told that {wanted} is the oldest, and is told {answer:?}")
    })
}

/// WATCH-06: a store must refuse a watch from a revision that it has not reached.
///
/// A store that was restored from a copy has lost commits that the watcher has seen.
pub(crate) async fn watch_06_future_revision_is_refused(cx: &Context) -> Outcome {
    let now = cx.put("a", json!(1)).await?;
    for ahead in [now.next(), Revision(u64::MAX)] {
        let answer = cx.store().watch(ahead, Interest::all()).await;
        let is_told = matches!(&answer, Err(StoreError::Ahead { head, .. }) if *head == now);
        require(is_told, || {
            format!("a watch from {ahead} in a store at {now}: {answer:?}")
        })?;
    }
    Ok(Pass::Held)
}

/// WATCH-07: a store must show the commits of every handle.
///
/// Replicas write, too.
pub(crate) async fn watch_07_shows_commits_of_all_handles(cx: &Context) -> Outcome {
    let another = cx.another().await?;
    let mut here = cx.watch(Revision::ZERO).await?;
    let there = another.watch(Revision::ZERO, Interest::all()).await;
    let mut there =
        there.map_err(|error| Failure::call_failed("a watch on another handle", &error))?;
    let stores: [&Arc<dyn Store>; 2] = [cx.store(), &another];
    for (number, store) in stores.into_iter().cycle().take(4).enumerate() {
        let transaction = Transaction::new().put(thing("a")?, json!(number));
        let answer = store.commit(&transaction).await;
        let revision = answer.map_err(|error| Failure::call_failed("a commit", &error))?;
        for watch in [&mut here, &mut there] {
            let commit = cx.next(watch).await?;
            require(commit.revision == revision, || {
                format!(
                    "{} is shown, where {revision} of handle {} must be",
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
pub(crate) async fn watch_08_dropped_call_loses_nothing(cx: &Context) -> Outcome {
    let mut watch = cx.watch(Revision::ZERO).await?;
    let (mut made, mut shown) = (Vec::new(), Vec::new());
    for number in 0..4 {
        shown.extend(first_poll(&mut watch).await);
        made.push(cx.put("a", json!(number)).await?);
        shown.extend(first_poll(&mut watch).await);
    }
    while shown.len() < made.len() {
        shown.push(
            cx.in_time("a commit that a dropped call was for", watch.next())
                .await?,
        );
    }
    let shown: Result<Vec<_>, _> = shown.into_iter().collect();
    let shown = shown.map_err(|error| Failure::call_failed("a watch", &error))?;
    require(revisions(&shown) == made, || {
        format!("{made:?} were made and calls dropped; shown: {shown:?}")
    })?;
    Ok(Pass::Held)
}

/// What a call answers at once, if it does; else it is dropped.
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
pub(crate) async fn watch_09_no_gap_and_no_duplicate_under_load(cx: &Context) -> Outcome {
    const WRITERS: usize = 4;
    let handles = [Arc::clone(cx.store()), cx.another().await?];
    let mut watch = cx.watch(Revision::ZERO).await?;
    let mut writers = Vec::new();
    for (number, store) in handles.into_iter().cycle().take(WRITERS).enumerate() {
        let id = thing(&format!("writer-{number}"))?;
        writers.push(tokio::spawn(write_some(store, id)));
    }
    let (store, last) = (
        Arc::clone(cx.store()),
        Transaction::new().put(other("last")?, json!(1)),
    );
    // The last commit is made when all others are, and is where the watch ends.
    let ended = tokio::spawn(async move {
        let mut made = Vec::new();
        for writer in writers {
            made.extend(
                writer
                    .await
                    .map_err(|error| Failure::KitError(error.to_string()))??,
            );
        }
        made.sort_unstable();
        let answer = store.commit(&last).await;
        made.push(answer.map_err(|error| Failure::call_failed("the last commit", &error))?);
        Ok::<_, Failure>(made)
    });
    let mut shown = Vec::new();
    loop {
        let commit = cx.next(&mut watch).await?;
        shown.push(commit.revision);
        if commit
            .changes
            .iter()
            .any(|change| change.id().key.as_str() == "last")
        {
            break;
        }
    }
    let made = ended
        .await
        .map_err(|error| Failure::KitError(error.to_string()))??;
    require(shown == made, || {
        format!("{made:?} were made, and shown is {shown:?}")
    })?;
    Ok(Pass::Held)
}

async fn write_some(store: Arc<dyn Store>, id: RecordId) -> Result<Vec<Revision>, Failure> {
    const COMMITS: usize = 15;
    let mut made = Vec::new();
    for count in 0..COMMITS {
        let answer = store
            .commit(&Transaction::new().put(id.clone(), json!(count)))
            .await;
        made.push(answer.map_err(|error| Failure::call_failed("a commit", &error))?);
    }
    Ok(made)
}

/// WATCH-10: a store must report to a watch that has fallen behind that its commits are compacted,
/// and never leave a gap.
///
/// Slow watchers are the ones that would miss commits.
pub(crate) async fn watch_10_slow_watch_gets_an_error(cx: &Context) -> Outcome {
    let mut watch = cx.watch(Revision::ZERO).await?;
    cx.put("a", json!(1)).await?;
    cx.next(&mut watch).await?;
    let made = put_each(cx, 4).await?;
    compact(cx, made[2]).await?;
    let next = cx
        .in_time("the next commit of a slow watch", watch.next())
        .await?;
    is_compacted(&next.map(|_| ()), made[2])?;
    let mut anew = cx.watch(made[2]).await?;
    let commit = cx.next(&mut anew).await?;
    require(commit.revision == made[3], || {
        format!("a new watch begins with {commit:?}")
    })?;
    Ok(Pass::Held)
}
