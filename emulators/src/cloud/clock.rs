//! The emulator's time: that of another clock, plus what tests have skipped.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use fleetwright_chaos::Clock;

/// Real time since its creation, on the real calendar. It is independent of any runtime: sockets
/// are real, so a paused runtime must not pause it.
#[derive(Debug)]
pub(crate) struct RealClock {
    epoch: DateTime<Utc>,
    began: Instant,
}

impl RealClock {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Utc::now(),
            began: Instant::now(),
        }
    }
}

impl Clock for RealClock {
    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn epoch(&self) -> DateTime<Utc> {
        self.epoch
    }
}

/// Returns a date in the format of HTTP headers.
#[cfg(any(feature = "gcp", feature = "azure"))]
pub(crate) fn http_date(date: DateTime<Utc>) -> String {
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A clock that can be advanced.
#[derive(Debug)]
pub(crate) struct SkippingClock {
    inner: Arc<dyn Clock>,
    skipped: Mutex<Duration>,
}

impl SkippingClock {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            skipped: Mutex::new(Duration::ZERO),
        }
    }

    /// Advances the clock by `duration`.
    pub(crate) fn advance(&self, duration: Duration) {
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        *skipped = skipped.saturating_add(duration);
    }
}

impl Clock for SkippingClock {
    fn elapsed(&self) -> Duration {
        let skipped = *self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.elapsed().saturating_add(skipped)
    }

    fn epoch(&self) -> DateTime<Utc> {
        self.inner.epoch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright_chaos::ManualClock;

    #[test]
    fn skipped_time_adds_to_the_time_that_passes() {
        let manual = Arc::new(ManualClock::new());
        let clock = SkippingClock::new(manual.clone());
        clock.advance(Duration::from_secs(5));
        manual.advance(Duration::from_secs(2));
        assert_eq!(clock.elapsed(), Duration::from_secs(7));
        assert_eq!(clock.epoch(), manual.epoch());
        clock.advance(Duration::MAX);
        assert_eq!(clock.elapsed(), Duration::MAX);
    }

    #[test]
    fn real_time_never_goes_back() {
        let clock = RealClock::new();
        let first = clock.elapsed();
        assert!(clock.elapsed() >= first);
    }
}
