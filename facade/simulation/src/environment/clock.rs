//! The clock of one machine, which somebody can set.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright_runtime::clock::{Clock, TokioClock};

/// A clock that jumps when it is set, and keeps the difference until it is corrected.
#[derive(Debug)]
pub struct JumpingClock {
    right: TokioClock,
    offset: AtomicI64,
}

impl JumpingClock {
    /// Creates a clock that is right.
    pub const fn new(right: TokioClock) -> Self {
        Self {
            right,
            offset: AtomicI64::new(0),
        }
    }

    /// Sets the clock this many seconds later or earlier than it was.
    pub fn jump(&self, seconds: i64) {
        self.offset.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Returns whether it shows the right time.
    pub fn is_right(&self) -> bool {
        self.offset.load(Ordering::Relaxed) == 0
    }

    /// Sets the clock to the right time.
    pub fn correct(&self) {
        self.offset.store(0, Ordering::Relaxed);
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> DateTime<Utc> {
        let offset = TimeDelta::seconds(self.offset.load(Ordering::Relaxed));
        let now = self.right.now();
        now.checked_add_signed(offset).unwrap_or(now)
    }
}
