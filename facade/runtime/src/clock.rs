//! Where dates come from, so that a test can control them.
//!
//! Services and controllers take an `Arc<dyn Clock>` and never read the system's time themselves.

use std::{
    fmt::Debug,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// The shortest delay between two dates that must differ: one millisecond.
pub const MIN_DELAY: Duration = Duration::from_millis(1);

/// A source of the current date.
///
/// # Contract
///
/// Two readings are as far apart as tokio's timers measure, except for the drift of a wall clock.
///
/// A clock for a test that chooses its dates:
///
/// ```
/// # use chrono::{DateTime, Utc};
/// use fleetwright_runtime::clock::Clock;
///
/// #[derive(Debug)]
/// struct FixedClock(DateTime<Utc>);
///
/// impl Clock for FixedClock {
///     fn now(&self) -> DateTime<Utc> {
///         self.0
///     }
/// }
///
/// assert_eq!(FixedClock(DateTime::UNIX_EPOCH).now().timestamp(), 0);
/// ```
pub trait Clock: Debug + Send + Sync {
    /// Returns the current date.
    fn now(&self) -> DateTime<Utc>;
}

/// The wall clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        SystemTime::now().into()
    }
}

/// A clock that follows tokio's time, also while that is paused. For tests and simulations.
///
/// ```
/// # use std::time::Duration;
/// # use chrono::DateTime;
/// use fleetwright_runtime::clock::{Clock as _, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = TokioClock::starting_at(DateTime::UNIX_EPOCH);
/// tokio::time::sleep(Duration::from_secs(90)).await; // returns at once while tokio's time is paused
/// assert_eq!(clock.now().timestamp(), 90);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: DateTime<Utc>,
    started: Instant,
}

impl TokioClock {
    /// Creates a clock that reads `epoch` now.
    pub fn starting_at(epoch: DateTime<Utc>) -> Self {
        Self {
            epoch,
            started: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> DateTime<Utc> {
        later(self.epoch, self.started.elapsed())
    }
}

/// Returns the date `delay` after `date`, or the latest possible date if the sum is out of range. Never panics.
///
/// ```
/// # use std::time::Duration;
/// # use chrono::{DateTime, Utc};
/// use fleetwright_runtime::clock::{between, later};
///
/// let (epoch, minute) = (DateTime::<Utc>::UNIX_EPOCH, Duration::from_secs(60));
/// assert_eq!(between(epoch, later(epoch, minute)), minute);
/// assert_eq!(later(epoch, Duration::MAX), DateTime::<Utc>::MAX_UTC);
/// ```
pub fn later(date: DateTime<Utc>, delay: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(delay)
        .ok()
        .and_then(|delta| date.checked_add_signed(delta))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Returns the time from `earlier` to `date`, or zero if `date` is before `earlier`.
///
/// ```
/// # use std::time::Duration;
/// # use chrono::{DateTime, TimeDelta, Utc};
/// use fleetwright_runtime::clock::between;
///
/// let epoch = DateTime::<Utc>::UNIX_EPOCH;
/// let minute_later = epoch + TimeDelta::minutes(1);
/// assert_eq!(between(epoch, minute_later), Duration::from_secs(60));
/// assert_eq!(between(minute_later, epoch), Duration::ZERO);
/// ```
pub fn between(earlier: DateTime<Utc>, date: DateTime<Utc>) -> Duration {
    date.signed_duration_since(earlier)
        .to_std()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_paused_time() {
        let epoch = DateTime::<Utc>::UNIX_EPOCH;
        let clock = TokioClock::starting_at(epoch);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), later(epoch, Duration::from_secs(90)));
        assert_eq!(between(epoch, clock.now()), Duration::from_secs(90));
        assert_eq!(between(clock.now(), epoch), Duration::ZERO);
        assert_eq!(later(epoch, Duration::MAX), DateTime::<Utc>::MAX_UTC);
    }
}
