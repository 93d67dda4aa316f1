//! Working: passes over keys, a bounded number at once, each key's one after another.

use std::{future::Future, num::NonZeroUsize, pin::pin, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use chrono::{DateTime, Utc};
use futures_util::{Stream, StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::Queue;
use crate::clock::between;

/// The least time that passes between two moments that must differ.
pub(crate) const TURN: Duration = Duration::from_millis(1);
/// After this a key is woken, whatever the calendar said.
const FAR: Duration = Duration::from_secs(3600);

/// When a key is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once.
    Again,
    /// Then, or when its record changes.
    At(DateTime<Utc>),
    /// When its record changes.
    Idle,
}

/// Works until it is dropped, which is as safe as the passes are: makes a `pass` over each key that is `woken` or due, at most
/// `most` at once and one at a time for each key, and tells `ended` what each came to, which says when the key's next turn is. `shown`
/// hears how many keys wait for their turn.
pub async fn work<K, P, F, T>(
    most: NonZeroUsize,
    woken: impl Stream<Item = Vec<K>> + Send,
    pass: P,
    mut ended: impl FnMut(&mut Queue<K>, K, T) + Send,
    shown: impl Fn(f64) + Send,
) where
    K: Clone + Ord + Send + Sync,
    T: Send,
    P: Fn(K) -> F + Send + Sync,
    F: Future<Output = T> + Send,
{
    let (mut queue, mut woken) = (Queue::<K>::default(), pin!(woken));
    let mut working = FuturesUnordered::new();
    let at_work = |key, passing: F| async move { (key, passing.await) };
    loop {
        while working.len() < most.get() {
            let Some(key) = queue.take(Instant::now()) else {
                break;
            };
            let passing = pass(key.clone());
            working.push(at_work(key, passing));
        }
        shown(float(queue.waiting()));
        let due = queue.next_due();
        let room = working.len() < most.get();
        tokio::select! {
            biased;
            Some(keys) = woken.next() => keys.iter().for_each(|key| queue.wake(key)),
            Some((key, answer)) = working.next() => ended(&mut queue, key, answer),
            () = until(due), if room => {}
        }
    }
}

/// The moment at which the calendar will say `date`, by one that says `now`; later than now, and within the hour.
pub fn instant(now: DateTime<Utc>, date: DateTime<Utc>) -> Instant {
    let delay = between(now, date).max(TURN);
    Instant::now() + delay.min(FAR)
}

/// How long to wait after the `failures`th failure in a row, counted from 1: from `first` on it doubles up to the `longest`, with a
/// random part that each key has for itself, the same in every process.
pub fn backoff(first: Duration, longest: Duration, key: Uuid, failures: u32) -> Duration {
    let (high, low) = key.as_u64_pair();
    let first = first.max(TURN);
    let mut delays = ExponentialBuilder::new()
        .with_factor(2.0)
        .with_min_delay(first)
        .with_max_delay(longest.max(first))
        .without_max_times()
        .with_jitter()
        .with_jitter_seed(high ^ low.rotate_left(failures))
        .build();
    // Beyond so many the longest delay is reached, whatever it is.
    let nth = failures.saturating_sub(1).min(64) as usize;
    delays.nth(nth).unwrap_or(longest)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn float(count: usize) -> f64 {
    count as f64
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
