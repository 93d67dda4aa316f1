//! The work queue: which key is next, and which one is woken later without a change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

/// A queue of keys without payload: the record of a key is read when it is reconciled.
///
/// Every key waits at most once and is in progress at most once. A key that is woken while it is in progress is queued again
/// when it [finishes](Self::finish). A call costs at most the logarithm of the number of known keys.
///
/// [`Runner`](crate::Runner) has its own queue; this type is public for loops that the runner does not fit.
///
/// ```
/// use fleetwright_runtime::WorkQueue;
/// use tokio::time::Instant;
///
/// let (mut queue, now) = (WorkQueue::default(), Instant::now());
/// queue.wake(&"a");
/// queue.wake(&"a");
/// assert_eq!(queue.take(now), Some("a"));
/// queue.wake(&"a");
/// assert_eq!(queue.take(now), None, "`a` is in progress");
/// queue.finish(&"a", false);
/// assert_eq!(queue.take(now), Some("a"), "`a` was woken while it was in progress");
/// ```
#[derive(Debug)]
pub struct WorkQueue<K> {
    ready: VecDeque<K>,
    slots: BTreeMap<K, Slot>,
    timers: BTreeSet<(Instant, K)>,
}

#[derive(Debug, Default)]
struct Slot {
    queued: bool,
    in_progress: bool,
    /// The key was woken while it was in progress: the record may have changed after it was read.
    woken_again: bool,
    due: Option<Instant>,
    /// How often in a row the key failed.
    failures: u32,
}

impl<K> Default for WorkQueue<K> {
    /// Creates an empty queue.
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            slots: BTreeMap::new(),
            timers: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Ord> WorkQueue<K> {
    /// Queues a key because something about it changed.
    pub fn wake(&mut self, key: &K) {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.in_progress {
            slot.woken_again = true;
        } else if !slot.queued {
            slot.queued = true;
            self.ready.push_back(key.clone());
        }
    }

    /// Takes the next key; it is in progress until it [finishes](Self::finish). Keys whose timers are due by `now` are
    /// queued first.
    pub fn take(&mut self, now: Instant) -> Option<K> {
        while self.next_due().is_some_and(|due| due <= now) {
            let Some((_, key)) = self.timers.pop_first() else {
                break;
            };
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.due = None;
            }
            self.wake(&key);
        }
        let key = self.ready.pop_front()?;
        let slot = self.slots.entry(key.clone()).or_default();
        slot.queued = false;
        slot.in_progress = true;
        if let Some(due) = slot.due.take() {
            self.timers.remove(&(due, key.clone()));
        }
        Some(key)
    }

    /// Marks a key as no longer in progress, and returns how often in a row it has failed.
    ///
    /// A key that was woken meanwhile is queued, unless it `failed`: then the caller chooses the delay.
    pub fn finish(&mut self, key: &K, failed: bool) -> u32 {
        let slot = self.slots.entry(key.clone()).or_default();
        slot.in_progress = false;
        slot.failures = if failed {
            slot.failures.saturating_add(1)
        } else {
            0
        };
        let failures = slot.failures;
        if std::mem::take(&mut slot.woken_again) && !failed {
            self.wake(key);
        }
        failures
    }

    /// Sets a timer that queues a key at `due`. An earlier timer of the key stays; a later one is replaced. A key that is
    /// queued already needs no timer.
    pub fn wake_at(&mut self, key: &K, due: Instant) {
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.queued || slot.due.is_some_and(|earlier| earlier <= due) {
            return;
        }
        if let Some(later) = slot.due.replace(due) {
            self.timers.remove(&(later, key.clone()));
        }
        self.timers.insert((due, key.clone()));
    }

    /// Forgets a key that is neither queued nor in progress and has no timer. Without this the queue grows with every key.
    pub fn forget_idle(&mut self, key: &K) {
        let is_idle = |slot: &Slot| !slot.queued && !slot.in_progress && slot.due.is_none();
        if self.slots.get(key).is_some_and(is_idle) {
            self.slots.remove(key);
        }
    }

    /// Returns when the next timer is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Returns how many keys are queued. Keys in progress and keys with a timer do not count.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether no key is queued.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn key_is_queued_once_and_in_progress_once() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.wake(&1);
        queue.wake(&1);
        assert_eq!((queue.take(now), queue.take(now)), (Some(1), None));
        queue.wake(&1);
        assert_eq!(queue.take(now), None, "it is in progress");
        queue.finish(&1, false);
        assert_eq!(queue.take(now), Some(1), "what was read may be old");
        queue.finish(&1, false);
        assert_eq!(queue.take(now), None);
        queue.forget_idle(&1);
        assert!(queue.slots.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn earliest_timer_of_a_key_wakes_it() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        queue.wake_at(&1, at(9));
        queue.wake_at(&1, at(5));
        queue.wake_at(&1, at(7));
        assert_eq!(queue.next_due(), Some(at(5)));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.take(at(5)), Some(1));
        assert_eq!(queue.next_due(), None, "the other timers are not needed");
        assert_eq!(queue.finish(&1, true), 1);
        assert_eq!(queue.finish(&1, true), 2);
        assert_eq!(queue.finish(&1, false), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn key_with_a_timer_is_kept() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.wake_at(&1, now);
        queue.forget_idle(&1);
        assert_eq!(queue.take(now), Some(1));
        queue.forget_idle(&1);
        assert_eq!(
            queue.finish(&1, true),
            1,
            "a key in progress is not forgotten"
        );
    }
}
