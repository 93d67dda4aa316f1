//! Keys to reconcile, from a store: every key once, then the keys of every commit.

use std::{fmt::Display, future::Future, time::Duration};

use fleetwright_store::{Advice, Commit, Watch};
use futures_util::{Stream, stream};
use tokio::time::sleep;

/// The delay before a failed list or watch is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Returns the stream of keys to reconcile: first those that `list` returns, then those that `keys_of` finds in each commit.
///
/// `list` returns all keys together with a watch that starts no later than the list, so that no change is missed. A watch that
/// fails for a moment is continued. A watch that cannot be continued, because the store no longer has its revisions, is
/// replaced by a new `list`. A list that fails is repeated every two seconds.
///
/// `name` is the plural of the records, for warnings: "servers".
///
/// ```
/// use fleetwright_runtime::watch_keys;
/// use fleetwright_store::{Interest, MemoryStore, RecordId, Revision, Schema, Store as _, StoreError, Transaction};
/// use futures_util::StreamExt as _;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new(Schema::builder().kind("server").build()?);
/// let list = || async {
///     let (keys, interest) = (vec!["s-1".to_owned()], Interest::all());
///     Ok::<_, StoreError>((keys, store.watch(Revision::ZERO, interest).await?))
/// };
/// let keys = watch_keys("servers", list, |commit| {
///     commit.changes.iter().map(|change| change.id().key.as_str().to_owned()).collect()
/// });
/// let mut keys = std::pin::pin!(keys);
/// assert_eq!(keys.next().await, Some(vec!["s-1".to_owned()])); // from the list
///
/// store.commit(&Transaction::new().put(RecordId::new("server", "s-2")?, "new")).await?;
/// assert_eq!(keys.next().await, Some(vec!["s-2".to_owned()])); // from the watch
/// # Ok(())
/// # }
/// ```
pub fn watch_keys<K, E, L, F, C>(
    name: &'static str,
    list: L,
    keys_of: C,
) -> impl Stream<Item = Vec<K>> + Send
where
    K: Send,
    E: Display,
    L: Fn() -> F + Send + Sync,
    F: Future<Output = Result<(Vec<K>, Watch), E>> + Send,
    C: Fn(&Commit) -> Vec<K> + Send + Sync,
{
    let start = (None, list, keys_of);
    stream::unfold(start, move |(watch, list, keys_of)| async move {
        let Some(watch) = watch else {
            let (keys, watch) = list_until_ok(name, &list).await;
            return Some((keys, (Some(watch), list, keys_of)));
        };
        let (keys, watch) = next_keys(name, watch, &keys_of).await;
        Some((keys, (watch, list, keys_of)))
    })
}

async fn list_until_ok<K, E, L, F>(name: &'static str, list: &L) -> (Vec<K>, Watch)
where
    E: Display,
    L: Fn() -> F,
    F: Future<Output = Result<(Vec<K>, Watch), E>>,
{
    loop {
        match list().await {
            Ok(listed) => return listed,
            Err(error) => tracing::warn!(%error, "cannot list {name}; retrying"),
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Returns the keys of the next commit that concerns any, with the watch; or no watch if it cannot be continued.
async fn next_keys<K, C>(
    name: &'static str,
    mut watch: Watch,
    keys_of: &C,
) -> (Vec<K>, Option<Watch>)
where
    C: Fn(&Commit) -> Vec<K>,
{
    loop {
        match watch.next().await {
            Ok(commit) => {
                let keys = keys_of(&commit);
                if !keys.is_empty() {
                    return (keys, Some(watch));
                }
            }
            Err(error) if error.advice() == Advice::Later => {
                tracing::warn!(%error, "the watch of {name} failed; continuing it");
                sleep(RETRY_DELAY).await;
            }
            Err(error) => {
                tracing::warn!(%error, "the watch of {name} ended; listing all of them again");
                sleep(RETRY_DELAY).await;
                return (Vec::new(), None);
            }
        }
    }
}
