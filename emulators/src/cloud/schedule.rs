//! The events that are due in the future.
//!
//! Nothing runs in the background: the next call processes the events that are due, each at its own
//! time.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_chaos::Clock;

/// Events in the order of their due times, and the current time.
#[derive(Debug)]
pub(crate) struct Schedule<E> {
    clock: Arc<dyn Clock>,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, E)>>,
    scheduled: u64,
}

impl<E: Ord> Schedule<E> {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            now: clock.elapsed(),
            clock,
            events: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    /// Returns the current time: while events are processed, the due time of the latest one.
    pub(crate) const fn now(&self) -> Duration {
        self.now
    }

    /// Schedules an event `delay` from now.
    pub(crate) fn after(&mut self, delay: Duration, event: E) {
        self.scheduled += 1;
        let due = self.now.saturating_add(delay);
        self.events.push(Reverse((due, self.scheduled, event)));
    }

    /// Returns the next event that is due. Without one, sets the current time to the clock's.
    pub(crate) fn due(&mut self) -> Option<E> {
        let now = self.clock.elapsed().max(self.now);
        let next = self.events.peek();
        if next.is_some_and(|Reverse((due, _, _))| *due <= now) {
            let Reverse((due, _, event)) = self.events.pop()?;
            self.now = due.max(self.now);
            return Some(event);
        }
        self.now = now;
        None
    }

    /// Returns the calendar date at a time.
    pub(crate) fn date(&self, time: Duration) -> DateTime<Utc> {
        self.clock.date_at(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright_chaos::ManualClock;

    #[test]
    fn events_are_due_at_their_times_and_in_order() {
        let clock = Arc::new(ManualClock::new());
        let mut schedule = Schedule::new(clock.clone());
        let second = Duration::from_secs(1);
        schedule.after(second * 2, "late");
        schedule.after(second, "early");
        schedule.after(second, "also early");
        assert_eq!(schedule.due(), None);
        clock.advance(second * 5);
        assert_eq!((schedule.due(), schedule.now()), (Some("early"), second));
        schedule.after(second, "scheduled by early");
        assert_eq!(schedule.due(), Some("also early"));
        assert_eq!((schedule.due(), schedule.now()), (Some("late"), second * 2));
        assert_eq!(schedule.due(), Some("scheduled by early"));
        assert_eq!((schedule.due(), schedule.now()), (None, second * 5));
    }
}
