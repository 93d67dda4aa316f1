//! Whose turn it is: each key at most once in the queue and once at work, and when to wake it without being told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

/// Keys without payload: what is to be done is read when it is done. The cost of every call grows with the number of
/// waiting keys at most as a logarithm.
#[derive(Debug)]
pub struct Queue<K> {
    ready: VecDeque<K>,
    slots: BTreeMap<K, Slot>,
    timers: BTreeSet<(Instant, K)>,
}

#[derive(Debug, Default)]
struct Slot {
    queued: bool,
    working: bool,
    /// It was woken while it was worked on: what was read then may be old.
    again: bool,
    due: Option<Instant>,
    /// How often in a row the store failed it.
    failures: u32,
}

impl<K> Default for Queue<K> {
    /// Nobody waits.
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            slots: BTreeMap::new(),
            timers: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Something about a key has changed.
    pub fn wake(&mut self, id: &K) {
        let slot = self.slots.entry(id.clone()).or_default();
        if slot.working {
            slot.again = true;
        } else if !slot.queued {
            slot.queued = true;
            self.ready.push_back(id.clone());
        }
    }

    /// The next key to work on.
    pub fn take(&mut self, now: Instant) -> Option<K> {
        while self.next_due().is_some_and(|due| due <= now) {
            let Some((_, id)) = self.timers.pop_first() else {
                break;
            };
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.due = None;
            }
            self.wake(&id);
        }
        let id = self.ready.pop_front()?;
        let slot = self.slots.entry(id.clone()).or_default();
        slot.queued = false;
        slot.working = true;
        if let Some(due) = slot.due.take() {
            self.timers.remove(&(due, id.clone()));
        }
        Some(id)
    }

    /// The work on a key ended; `failed` if the store was in the way. Answers how often in a row that was so.
    pub fn ended(&mut self, id: &K, failed: bool) -> u32 {
        let slot = self.slots.entry(id.clone()).or_default();
        slot.working = false;
        slot.failures = if failed {
            slot.failures.saturating_add(1)
        } else {
            0
        };
        let failures = slot.failures;
        if std::mem::take(&mut slot.again) && !failed {
            self.wake(id);
        }
        failures
    }

    /// Wakes a key then, unless it is woken before.
    pub fn wake_at(&mut self, id: &K, due: Instant) {
        let slot = self.slots.entry(id.clone()).or_default();
        if slot.queued || slot.due.is_some_and(|earlier| earlier <= due) {
            return;
        }
        if let Some(later) = slot.due.replace(due) {
            self.timers.remove(&(later, id.clone()));
        }
        self.timers.insert((due, id.clone()));
    }

    /// Forgets a key that waits for nothing.
    pub fn rest(&mut self, id: &K) {
        let idle = |slot: &Slot| !slot.queued && !slot.working && slot.due.is_none();
        if self.slots.get(id).is_some_and(idle) {
            self.slots.remove(id);
        }
    }

    /// When the next key wakes by itself.
    pub fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// How many keys wait for their turn.
    pub fn waiting(&self) -> usize {
        self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::server::ServerId;

    fn id(number: u128) -> ServerId {
        ServerId::from_uuid(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_waits_once_and_is_worked_on_once() {
        let (mut queue, now) = (Queue::<ServerId>::default(), Instant::now());
        queue.wake(&id(1));
        queue.wake(&id(1));
        assert_eq!((queue.take(now), queue.take(now)), (Some(id(1)), None));
        queue.wake(&id(1));
        assert_eq!(queue.take(now), None, "it is being worked on");
        queue.ended(&id(1), false);
        assert_eq!(queue.take(now), Some(id(1)), "what was read may be old");
        queue.ended(&id(1), false);
        assert_eq!(queue.take(now), None);
        queue.rest(&id(1));
        assert!(queue.slots.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_its_times_wakes_a_server() {
        let (mut queue, now) = (Queue::<ServerId>::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        queue.wake_at(&id(1), at(9));
        queue.wake_at(&id(1), at(5));
        queue.wake_at(&id(1), at(7));
        assert_eq!(queue.next_due(), Some(at(5)));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.take(at(5)), Some(id(1)));
        assert_eq!(queue.next_due(), None, "the others are needless");
        assert_eq!(queue.ended(&id(1), true), 1);
        assert_eq!(queue.ended(&id(1), true), 2);
        assert_eq!(queue.ended(&id(1), false), 0);
    }
}
