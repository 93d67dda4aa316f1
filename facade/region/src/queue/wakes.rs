//! Whom to look at: everything once, then whatever changes.

use std::{fmt::Display, future::Future, time::Duration};

use fleetwright_store::{Advice, Commit, Watch};
use futures_util::{Stream, stream};
use tokio::time::sleep;

/// How long a watch that failed is left alone.
const WATCH_AGAIN: Duration = Duration::from_secs(2);

/// The keys to look at: first `all` of them, then those that each commit `concerns`. `all` answers a watch that misses nothing
/// after what it listed. A watch that cannot go on is begun anew with all of them; a store that does not answer is asked again.
///
/// `what` is what they are called in warnings.
pub fn wakes<K, E, A, F, C>(
    what: &'static str,
    all: A,
    concerns: C,
) -> impl Stream<Item = Vec<K>> + Send
where
    K: Send,
    E: Display,
    A: Fn() -> F + Send + Sync,
    F: Future<Output = Result<(Vec<K>, Watch), E>> + Send,
    C: Fn(&Commit) -> Vec<K> + Send + Sync,
{
    let begun = (None, all, concerns);
    stream::unfold(begun, move |(watch, all, concerns)| async move {
        let Some(watch) = watch else {
            let (keys, watch) = begin(what, &all).await;
            return Some((keys, (Some(watch), all, concerns)));
        };
        let (keys, watch) = next(what, watch, &concerns).await;
        Some((keys, (watch, all, concerns)))
    })
}

/// Everything there is, and a watch from there; again until the store lets it.
async fn begin<K, E, A, F>(what: &'static str, all: &A) -> (Vec<K>, Watch)
where
    E: Display,
    A: Fn() -> F,
    F: Future<Output = Result<(Vec<K>, Watch), E>>,
{
    loop {
        match all().await {
            Ok(begun) => return begun,
            Err(error) => tracing::warn!(%error, "{what} cannot be listed; it is tried again"),
        }
        sleep(WATCH_AGAIN).await;
    }
}

/// The next commit that concerns somebody. No watch if it ended.
async fn next<K, C>(what: &'static str, mut watch: Watch, concerns: &C) -> (Vec<K>, Option<Watch>)
where
    C: Fn(&Commit) -> Vec<K>,
{
    loop {
        match watch.next().await {
            Ok(commit) => {
                let keys = concerns(&commit);
                if !keys.is_empty() {
                    return (keys, Some(watch));
                }
            }
            Err(error) if error.advice() == Advice::Later => {
                tracing::warn!(%error, "the watch of {what} failed; it goes on");
                sleep(WATCH_AGAIN).await;
            }
            Err(error) => {
                tracing::warn!(%error, "the watch of {what} ended; all are listed again");
                sleep(WATCH_AGAIN).await;
                return (Vec::new(), None);
            }
        }
    }
}
