//! A caller without a batch.
//!
//! Owns when a caller of one instance sends it on its own: if no other one is there. The first other one that arrives before
//! that opens a batch, in which the caller that was alone is the first.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{BatchQueue, InFlightGuard, Joined, QueueState, lock, yield_to_other_tasks};
use crate::InstanceId;

impl<T: Clone + Send + Sync + 'static> BatchQueue<T> {
    /// Lets the caller of one instance send it without a batch, if no other caller is there: none waits or is in
    /// flight, and none arrives while the tasks run that are ready.
    pub(in crate::layer) async fn enter(&self, id: &InstanceId) -> Entered<T> {
        if self.window.is_zero() || self.max_size == NonZeroUsize::MIN {
            // No caller ever waits for another one.
            return Entered::Alone(self.send_alone(&mut lock(&self.state)));
        }
        let Some(place) = LonePlace::take(&self.state, self.window, id) else {
            return Entered::Busy;
        };
        yield_to_other_tasks().await;
        let mut state = lock(&self.state);
        match state.joined.remove(&place.number) {
            Some(joined) => Entered::Joined(joined),
            None => {
                state.alone = None;
                Entered::Alone(self.send_alone(&mut state))
            }
        }
    }

    /// Counts a call without a batch as in flight.
    fn send_alone(&self, state: &mut QueueState<T>) -> InFlightGuard<T> {
        state.in_flight += 1;
        state.last_sent = Some((Instant::now(), 1));
        InFlightGuard {
            state: Arc::clone(&self.state),
        }
    }
}

/// How a caller enters the queue.
pub(in crate::layer) enum Entered<T> {
    /// It is alone, and its call is in flight until the guard is dropped.
    Alone(InFlightGuard<T>),
    /// It was the first, and others that came after it have made it join their batch.
    Joined(Joined<T>),
    /// Others are there already: it must [submit](BatchQueue::submit) its instance.
    Busy,
}

/// A caller that is alone so far. Another one that arrives makes it join its batch.
struct LonePlace<'q, T> {
    state: &'q Mutex<QueueState<T>>,
    number: u64,
}

impl<'q, T> LonePlace<'q, T> {
    /// Takes the place if no caller waits or is in flight, and the batch before had no more than one.
    fn take(queue: &'q Mutex<QueueState<T>>, window: Duration, id: &InstanceId) -> Option<Self> {
        let mut state = lock(queue);
        let is_free = state.in_flight == 0 && state.open.is_none() && state.alone.is_none();
        if !is_free || state.recent_size(window, Instant::now()) > 1 {
            return None;
        }
        let number = state.next_number;
        state.next_number += 1;
        state.alone = Some((number, id.clone()));
        Some(Self {
            state: queue,
            number,
        })
    }
}

impl<T> Drop for LonePlace<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.alone.take_if(|(number, _)| *number == self.number);
        let joined = state.joined.remove(&self.number);
        drop(state);
        // Without the lock, because this may drop the batch.
        drop(joined);
    }
}
