//! DROP: commits whose future is dropped are executed as a whole or not at all.
//!
//! Each round polls a commit a little longer before it drops it, so that the drop happens at a
//! different point of the store's work.

use std::{future::Future, task::Poll, time::Duration};

use fleetwright_store::Transaction;
use serde_json::json;

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, thing},
    require,
};

/// The largest number of polls before a call is dropped.
const POLLS: u64 = 12;

/// DROP-01: a store must commit all of a transaction or nothing when its call is dropped at any
/// moment, and continue to work.
///
/// A client that disconnects must not leave half an instance.
///
/// Polls twelve commits of three writes 0 to 11 times before they are dropped. After each, and at
/// the end, all three writes are there or none.
pub(crate) async fn drop_01_dropped_commit_is_all_or_nothing(cx: &Context) -> Outcome {
    let mut completed = 0;
    for polls in 0..POLLS {
        let marker = json!({"round": polls});
        let transaction = Transaction::new()
            .put(thing("a")?, marker.clone())
            .put(thing("b")?, marker.clone())
            .put(thing(&format!("c-{polls}"))?, marker);
        completed += u64::from(completes_within(polls, cx.store().commit(&transaction)).await);
        require_no_partial_commit(cx, polls).await?;
    }
    // A dropped commit may still be executed. Once a later commit is acknowledged, it is not.
    cx.commit_marker().await?;
    require_no_partial_commit(cx, POLLS).await?;
    let received = cx.commits_after(fleetwright_store::Revision::ZERO).await?;
    let partial: Vec<_> = received
        .iter()
        .filter(|commit| ![1, 3].contains(&commit.changes.len()))
        .collect();
    require(partial.is_empty(), || {
        format!("the watch returned parts of transactions of three writes: {partial:?}")
    })?;
    require(received.len() as u64 > completed, || {
        format!("{completed} commits were acknowledged, and the watch returned {received:?}")
    })?;
    Ok(Pass::Held)
}

/// Polls a call up to `polls` times, with 200 microseconds in between, and drops it. Returns
/// whether it completed.
async fn completes_within<T>(polls: u64, call: impl Future<Output = T>) -> bool {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        if polled.is_ready() {
            return true;
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    false
}

/// Requires that `a` and `b` are of the same round and that this round's third record exists. One
/// page is from one moment, so this holds at any time.
async fn require_no_partial_commit(cx: &Context, round: u64) -> Result<(), Failure> {
    let page = cx.page(&all_things()?).await?;
    let value = |key: &str| {
        let found = page
            .records
            .iter()
            .find(|record| record.key().as_str() == key);
        found.map(|record| record.value.clone())
    };
    let (a, b) = (value("a"), value("b"));
    let third = a.as_ref().and_then(|a| value(&format!("c-{}", a["round"])));
    require(a == b && a == third, || {
        format!("after a commit dropped in round {round}: a {a:?}, b {b:?}, c {third:?}")
    })
}
