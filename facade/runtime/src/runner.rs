//! The loop of a controller: reconciles a bounded number of keys at once, and each key by one call at a time.

use std::{fmt, future::Future, num::NonZeroUsize, pin::pin, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::{Stream, StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};

use crate::{
    Action, WorkQueue,
    clock::{Clock, MIN_DELAY, between},
};

/// The longest timer for a date. A wall clock can be set back or forward; a key is reconciled within the hour all the same.
const MAX_TIMER: Duration = Duration::from_secs(3600);

/// Runs one reconcile function for many keys.
///
/// ```
/// use std::{convert::Infallible, num::NonZeroUsize, sync::Arc, time::Duration};
/// use fleetwright_runtime::{Action, Runner, clock::SystemClock};
/// use futures_util::{FutureExt as _, StreamExt as _, stream};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let keys = stream::iter([vec!["s-1", "s-2"]]).chain(stream::pending());
/// let two_at_once = NonZeroUsize::MIN.saturating_add(1);
/// let running = Runner::new(keys, Arc::new(SystemClock)).concurrency(two_at_once).run(
///     |key| async move {
///         println!("reconcile {key}");
///         Ok::<_, Infallible>(Action::AwaitChange)
///     },
///     |_key, _error, failures| Duration::from_secs(2) * failures,
/// );
/// assert!(running.now_or_never().is_none(), "a runner works until its future is dropped");
/// # }
/// ```
///
/// # Guarantees
///
/// - A key is reconciled by at most one call at a time, and at most [`concurrency`](Self::concurrency) keys at once.
/// - A key that is woken while it is reconciled is reconciled again afterwards.
/// - Keys are taken in the order in which they were woken. Under paused tokio time a run is deterministic.
/// - Dropping the future of [`run`](Self::run) drops the calls in progress, and is as safe as those are.
pub struct Runner<'r, S> {
    keys: S,
    clock: Arc<dyn Clock>,
    concurrency: NonZeroUsize,
    on_queue_length: Box<dyn Fn(usize) + Send + Sync + 'r>,
}

impl<'r, S> Runner<'r, S> {
    /// Creates a runner for the keys that a stream yields, usually [`watch_keys`](crate::watch_keys). The clock is the one
    /// by which reconciles compute the dates of [`Action::RequeueAt`].
    pub fn new(keys: S, clock: Arc<dyn Clock>) -> Self {
        Self {
            keys,
            clock,
            concurrency: NonZeroUsize::MIN,
            on_queue_length: Box::new(|_| {}),
        }
    }

    /// Sets how many keys are reconciled at once. The default is 1.
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroUsize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets a function that is called with the number of queued keys whenever it may have changed, for a gauge.
    #[must_use]
    pub fn on_queue_length(mut self, report: impl Fn(usize) + Send + Sync + 'r) -> Self {
        self.on_queue_length = Box::new(report);
        self
    }

    /// Reconciles keys until the future is dropped.
    ///
    /// The [`Action`] that `reconcile` returns says when the key is reconciled next. If it fails, `error_policy` computes the delay
    /// before the next call from the key, the error and the number of failures in a row, counted from 1. A delay of zero means at once. A
    /// wake-up that arrived during the failed call does not shorten the delay; a later one does.
    pub async fn run<K, R, F, E, P>(self, reconcile: R, error_policy: P)
    where
        K: Clone + Ord + Send + Sync,
        S: Stream<Item = Vec<K>> + Send,
        R: Fn(K) -> F + Send + Sync,
        F: Future<Output = Result<Action, E>> + Send,
        E: Send,
        P: Fn(&K, &E, u32) -> Duration + Send + Sync,
    {
        let (mut queue, mut keys) = (WorkQueue::<K>::default(), pin!(self.keys));
        let mut in_progress = FuturesUnordered::new();
        let with_key = |key, reconciling: F| async move { (key, reconciling.await) };
        loop {
            while in_progress.len() < self.concurrency.get() {
                let Some(key) = queue.take(Instant::now()) else {
                    break;
                };
                let reconciling = reconcile(key.clone());
                in_progress.push(with_key(key, reconciling));
            }
            (self.on_queue_length)(queue.len());
            let due = queue.next_due();
            let has_room = in_progress.len() < self.concurrency.get();
            tokio::select! {
                biased;
                Some(woken) = keys.next() => woken.iter().for_each(|key| queue.wake(key)),
                Some((key, result)) = in_progress.next() => {
                    schedule(&mut queue, &key, result, &*self.clock, &error_policy);
                }
                () = sleep_until_due(due), if has_room => {}
            }
        }
    }
}

fn schedule<K: Clone + Ord, E>(
    queue: &mut WorkQueue<K>,
    key: &K,
    result: Result<Action, E>,
    clock: &dyn Clock,
    error_policy: &impl Fn(&K, &E, u32) -> Duration,
) {
    let failures = queue.finish(key, result.is_err());
    match result {
        Ok(Action::Requeue) => queue.wake(key),
        Ok(Action::RequeueAt(date)) => queue.wake_at(key, instant_of(clock.now(), date)),
        Ok(Action::AwaitChange) => queue.forget_idle(key),
        Err(error) => {
            let delay = error_policy(key, &error, failures);
            if delay.is_zero() {
                queue.wake(key);
            } else {
                queue.wake_at(key, Instant::now() + delay);
            }
        }
    }
}

/// Returns the instant at which a clock that reads `now` will read `date`: in the future, and within [`MAX_TIMER`].
fn instant_of(now: DateTime<Utc>, date: DateTime<Utc>) -> Instant {
    let delay = between(now, date).max(MIN_DELAY);
    Instant::now() + delay.min(MAX_TIMER)
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl<S> fmt::Debug for Runner<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
