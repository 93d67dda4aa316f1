//! The calls that wait for permits of one rate, in the order of their arrival.
//!
//! Owns whose turn it is. No lock is held while a call waits, so a call that exists and is not
//! polled, as in a `select!`, does not keep the calls behind it from being sent: whichever waiting
//! call is polled gives permits to all calls whose turn has come. A call that is dropped before its
//! turn leaves the queue and has used no permit.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::adaptive_rate::{AdaptiveRate, Permit};

/// The queue in front of a rate.
#[derive(Debug)]
pub(super) struct PermitQueue {
    pub(super) rate: AdaptiveRate,
    waiting: Mutex<Waiting>,
}

/// The calls without a permit.
#[derive(Debug, Default)]
struct Waiting {
    /// By their numbers, which grow with the time of arrival.
    calls: BTreeMap<u64, WaitingCall>,
    next_number: u64,
    /// How many native calls all calls so far need together.
    native_calls: u64,
}

#[derive(Debug)]
struct WaitingCall {
    native_calls: NonZeroU32,
    /// How many native calls the calls that arrived before need together.
    before: u64,
    turn: Arc<Turn>,
}

/// What a call waits for.
#[derive(Debug, Default)]
struct Turn {
    permit: Mutex<Option<Permit>>,
    /// Signals that there is a permit, or that the call is the first one now.
    changed: Notify,
}

/// A call's place in the queue. Dropping it leaves the queue.
struct Place<'q> {
    queue: &'q PermitQueue,
    number: u64,
    turn: Arc<Turn>,
}

impl PermitQueue {
    pub(super) fn new(rate: AdaptiveRate) -> Self {
        Self {
            rate,
            waiting: Mutex::default(),
        }
    }

    /// Waits for the permit of a call that needs `native_calls`, behind all others.
    pub(super) async fn acquire(&self, native_calls: NonZeroU32) -> Permit {
        let place = self.enter(native_calls);
        // Whether the first call did not take its turn in time, so that this one must watch for it.
        let mut watches_first = false;
        loop {
            match self.advance(&place, watches_first) {
                Ok(permit) => return permit,
                Err(until) => {
                    let woken = timeout_at(until, place.turn.changed.notified()).await;
                    watches_first |= woken.is_err();
                }
            }
        }
    }

    /// Returns a permit if no call waits and there is one.
    pub(super) fn acquire_at_once(&self, native_calls: NonZeroU32) -> Option<Permit> {
        let waiting = lock(&self.waiting);
        if !waiting.calls.is_empty() {
            return None;
        }
        self.rate.acquire(native_calls).ok()
    }

    fn enter(&self, native_calls: NonZeroU32) -> Place<'_> {
        let mut waiting = lock(&self.waiting);
        let (number, before) = (waiting.next_number, waiting.native_calls);
        waiting.next_number += 1;
        waiting.native_calls = before.saturating_add(native_calls.get().into());
        let turn = Arc::new(Turn::default());
        let call = WaitingCall {
            native_calls,
            before,
            turn: Arc::clone(&turn),
        };
        waiting.calls.insert(number, call);
        Place {
            queue: self,
            number,
            turn,
        }
    }

    /// Gives permits to the calls whose turn has come. Returns that of `place`, or when to try again.
    ///
    /// Only the first call, and a call that watches it, try again when the first one's turn comes.
    /// The others are woken when they become the first. If that does not happen, because the first
    /// one is not polled, they try again at the time of their own turn.
    fn advance(&self, place: &Place<'_>, watches_first: bool) -> Result<Permit, Instant> {
        let mut waiting = lock(&self.waiting);
        let (mut first_turn, mut is_new_first) = (None, false);
        while let Some(first) = waiting.calls.first_entry() {
            match self.rate.acquire(first.get().native_calls) {
                Ok(permit) => {
                    let turn = first.remove().turn;
                    *lock(&turn.permit) = Some(permit);
                    turn.changed.notify_one();
                    is_new_first = true;
                }
                Err(until) => {
                    first_turn = Some((until, first.get().before));
                    if is_new_first && *first.key() != place.number {
                        first.get().turn.changed.notify_one();
                    }
                    break;
                }
            }
        }
        if let Some(permit) = lock(&place.turn.permit).take() {
            return Ok(permit);
        }
        let (until, first_before) = first_turn.unwrap_or_else(|| (Instant::now(), 0));
        let own = waiting.calls.get(&place.number);
        let ahead = own.map_or(0, |own| own.before.saturating_sub(first_before));
        Err(if watches_first {
            until
        } else {
            self.rate.after(until, ahead)
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.queue.waiting);
        let first = waiting.calls.keys().next().copied();
        waiting.calls.remove(&self.number);
        if first == Some(self.number) {
            if let Some((_, next)) = waiting.calls.first_key_value() {
                next.turn.changed.notify_one();
            }
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // No code panics while it holds one of these locks, and the values would be valid if it did.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
