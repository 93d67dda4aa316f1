//! What is due when.
//!
//! Nothing runs in the background: whoever calls first carries out what is due, each at its own moment.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use fleetwright_chaos::Clock;

/// Events in the order of their due times, and what time it is.
#[derive(Debug)]
pub(crate) struct Schedule<E> {
    clock: Arc<dyn Clock>,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, E)>>,
    made: u64,
}

impl<E: Ord> Schedule<E> {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            now: clock.elapsed(),
            clock,
            events: BinaryHeap::new(),
            made: 0,
        }
    }

    /// What time it is: while events are carried out, the moment of the latest.
    pub(crate) const fn now(&self) -> Duration {
        self.now
    }

    /// Has something handle_event `delay` from now.
    pub(crate) fn after(&mut self, delay: Duration, event: E) {
        self.made += 1;
        let due = self.now.saturating_add(delay);
        self.events.push(Reverse((due, self.made, event)));
    }

    /// The next event that is due by the clock; without one, it is as late as the clock says.
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

    /// What the calendar says at a moment.
    pub(crate) fn date(&self, moment: Duration) -> DateTime<Utc> {
        self.clock.date_at(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright_chaos::ManualClock;

    #[test]
    fn events_happen_at_their_moments_and_in_order() {
        let clock = Arc::new(ManualClock::new());
        let mut schedule = Schedule::new(clock.clone());
        let second = Duration::from_secs(1);
        schedule.after(second * 2, "late");
        schedule.after(second, "early");
        schedule.after(second, "also early");
        assert_eq!(schedule.due(), None);
        clock.advance(second * 5);
        assert_eq!((schedule.due(), schedule.now()), (Some("early"), second));
        schedule.after(second, "made by early");
        assert_eq!(schedule.due(), Some("also early"));
        assert_eq!((schedule.due(), schedule.now()), (Some("late"), second * 2));
        assert_eq!(schedule.due(), Some("made by early"));
        assert_eq!((schedule.due(), schedule.now()), (None, second * 5));
    }
}
