//! Clocks that a test controls.
//!
//! Owns the two clocks of simulated clouds. Nothing in a simulated cloud reads the system clock.

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// The time of a simulated cloud: how long it has existed, and its calendar date.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_chaos::{Clock as _, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(90));
/// assert_eq!(clock.elapsed(), Duration::from_secs(90));
/// assert_eq!(clock.date_at(clock.elapsed()).to_rfc3339(), "2026-01-01T00:01:30+00:00");
/// ```
pub trait Clock: Debug + Send + Sync {
    /// Returns the time since the start of the simulation. It never decreases.
    fn elapsed(&self) -> Duration;

    /// Returns the calendar date at the start of the simulation.
    fn epoch(&self) -> DateTime<Utc>;

    /// Returns the calendar date at the time `elapsed` after the start, at most the latest date that
    /// can be represented.
    fn date_at(&self, elapsed: Duration) -> DateTime<Utc> {
        let delta = TimeDelta::from_std(elapsed).unwrap_or(TimeDelta::MAX);
        self.epoch()
            .checked_add_signed(delta)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

/// 2026-01-01T00:00:00Z, the default start of simulated calendars.
const NEW_YEAR_2026: DateTime<Utc> = DateTime::from_timestamp(1_767_225_600, 0).unwrap();

/// Follows tokio's clock: real time in a program, virtual time under a paused runtime.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use fleetwright_chaos::{Clock as _, TokioClock};
///
/// let clock = TokioClock::new();
/// tokio::time::sleep(Duration::from_secs(3600)).await; // returns at once: the runtime's time is paused
/// assert_eq!(clock.elapsed(), Duration::from_secs(3600));
/// # }
/// ```
#[derive(Debug)]
pub struct TokioClock {
    epoch: DateTime<Utc>,
    start: Instant,
}

impl TokioClock {
    /// Starts the clock now, at the calendar date 2026-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self::starting_at(NEW_YEAR_2026)
    }

    /// Starts the clock now, at the calendar date `epoch`.
    pub fn starting_at(epoch: DateTime<Utc>) -> Self {
        Self {
            epoch,
            start: Instant::now(),
        }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn epoch(&self) -> DateTime<Utc> {
        self.epoch
    }
}

/// Stands still until [`advance`](Self::advance) is called.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_chaos::{Clock as _, ManualClock};
///
/// let clock = ManualClock::new();
/// assert_eq!(clock.elapsed(), Duration::ZERO);
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.elapsed(), Duration::from_secs(5));
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    /// Creates a clock at zero, at the calendar date 2026-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward by `duration`.
    pub fn advance(&self, duration: Duration) {
        let mut elapsed = self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        *elapsed = elapsed.saturating_add(duration);
    }
}

impl Clock for ManualClock {
    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch(&self) -> DateTime<Utc> {
        NEW_YEAR_2026
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_a_paused_runtime() {
        let clock = TokioClock::new();
        assert_eq!(clock.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(90));
        assert_eq!(
            clock.date_at(clock.elapsed()).to_rfc3339(),
            "2026-01-01T00:01:30+00:00"
        );
        let other = TokioClock::starting_at(DateTime::UNIX_EPOCH);
        assert_eq!(other.epoch().timestamp(), 0);
    }

    #[test]
    fn manual_clock_moves_only_when_advanced() {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(2));
        clock.advance(Duration::from_secs(3));
        assert_eq!(clock.elapsed(), Duration::from_secs(5));
        assert_eq!(clock.date_at(Duration::ZERO), clock.epoch());
        clock.advance(Duration::MAX);
        assert_eq!(clock.date_at(clock.elapsed()), DateTime::<Utc>::MAX_UTC);
    }
}
