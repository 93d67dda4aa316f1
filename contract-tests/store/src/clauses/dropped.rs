//! Calls that are dropped: all or nothing, and the store goes on.

use std::{future::Future, task::Poll, time::Duration};

use serde_json::json;

use crate::{
    Context, Failure, Outcome, Pass,
    context::{all_things, thing},
    require,
};
use fleetwright_store::Transaction;

/// How often a call is polled before it is dropped, at the most.
const POLLS: u64 = 12;

/// DROP-01: a store must commit all of a transaction or nothing when its call is dropped at any
/// moment, and continue to work.
///
/// A client that disconnects must not leave half an instance.
pub(crate) async fn drop_01_dropped_commit_is_all_or_nothing(cx: &Context) -> Outcome {
    let mut ended = 0;
    for polls in 0..POLLS {
        let marker = json!({"round": polls});
        let transaction = Transaction::new()
            .put(thing("a")?, marker.clone())
            .put(thing("b")?, marker.clone())
            .put(thing(&format!("c-{polls}"))?, marker);
        ended += u64::from(ends_within(polls, cx.store().commit(&transaction)).await);
        is_whole(cx, polls).await?;
    }
    // What was dropped early may still come; behind a commit that is acknowledged nothing is on its way.
    cx.mark().await?;
    is_whole(cx, POLLS).await?;
    let shown = cx.shown_after(fleetwright_store::Revision::ZERO).await?;
    let halves: Vec<_> = shown
        .iter()
        .filter(|commit| ![1, 3].contains(&commit.changes.len()))
        .collect();
    require(halves.is_empty(), || {
        format!("transactions of three writes are shown as {halves:?}")
    })?;
    require(shown.len() as u64 > ended, || {
        format!("{ended} commits ended, and shown are {shown:?}")
    })?;
    Ok(Pass::Held)
}

/// Polls a call so often, with time to get on in between, and drops it; tells whether it ended.
async fn ends_within<T>(polls: u64, call: impl Future<Output = T>) -> bool {
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

/// One page is of one moment: a and b are of the same round, and that round's third record is there.
async fn is_whole(cx: &Context, round: u64) -> Result<(), Failure> {
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
