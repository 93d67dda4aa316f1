//! Where the calendar comes from, so that a test can hold it.

use std::{fmt::Debug, time::SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// Tells the date. Two answers of one clock are as far apart as tokio's timers believe, within what a calendar drifts.
pub trait Clock: Debug + Send + Sync {
    /// The date now.
    fn now(&self) -> DateTime<Utc>;
}

/// The calendar of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        SystemTime::now().into()
    }
}

/// A calendar that follows tokio's clock, also when that is paused.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: DateTime<Utc>,
    began: Instant,
}

impl TokioClock {
    /// A calendar that says `epoch` now.
    pub fn starting_at(epoch: DateTime<Utc>) -> Self {
        Self {
            epoch,
            began: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> DateTime<Utc> {
        later(self.epoch, self.began.elapsed())
    }
}

/// The date that is `after` past `date`; the end of the calendar if that is beyond it. It never panics.
///
/// ```
/// # use std::time::Duration;
/// # use chrono::{DateTime, Utc};
/// use fleetwright_region::clock::{between, later};
///
/// let (epoch, minute) = (DateTime::<Utc>::UNIX_EPOCH, Duration::from_secs(60));
/// assert_eq!(between(epoch, later(epoch, minute)), minute);
/// assert_eq!(later(epoch, Duration::MAX), DateTime::<Utc>::MAX_UTC);
/// ```
pub fn later(date: DateTime<Utc>, after: std::time::Duration) -> DateTime<Utc> {
    TimeDelta::from_std(after)
        .ok()
        .and_then(|delta| date.checked_add_signed(delta))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// How long after `earlier` a date is; no time at all if it is before it.
pub fn between(earlier: DateTime<Utc>, date: DateTime<Utc>) -> std::time::Duration {
    date.signed_duration_since(earlier)
        .to_std()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_calendar_follows_the_paused_clock() {
        let epoch = DateTime::<Utc>::UNIX_EPOCH;
        let clock = TokioClock::starting_at(epoch);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), later(epoch, Duration::from_secs(90)));
        assert_eq!(between(epoch, clock.now()), Duration::from_secs(90));
        assert_eq!(between(clock.now(), epoch), Duration::ZERO);
        assert_eq!(later(epoch, Duration::MAX), DateTime::<Utc>::MAX_UTC);
    }
}
