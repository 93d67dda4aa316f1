//! Polling: delays between two reads, and deadlines.
//!
//! Owns the pace of polls that no service dictates. It sends nothing.

use std::time::Duration;

use backon::BackoffBuilder as _;
use tokio::time::{Instant, sleep};

/// The longest first delay between two polls.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest timeout. A longer one would overflow the clock.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Returns the delays between polls, without end: half a second or `interval`, whichever is shorter,
/// then twice as long each time, up to `interval`.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_provider_support::poll::poll_delays;
///
/// let delays: Vec<_> = poll_delays(Duration::from_secs(3)).take(5).collect();
/// assert_eq!(delays, [500, 1000, 2000, 3000, 3000].map(Duration::from_millis));
/// ```
pub fn poll_delays(interval: Duration) -> impl Iterator<Item = Duration> + use<> {
    backon::ExponentialBuilder::new()
        .with_min_delay(interval.min(FIRST_DELAY))
        .with_max_delay(interval)
        .without_max_times()
        .build()
}

/// Returns the time at which `timeout` ends, a year from now at most.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_provider_support::poll::deadline_after;
/// use tokio::time::Instant;
///
/// assert!(deadline_after(Duration::from_secs(60)) > Instant::now());
/// assert!(deadline_after(Duration::MAX) > Instant::now(), "a year from now, without an overflow");
/// ```
#[must_use]
pub fn deadline_after(timeout: Duration) -> Instant {
    Instant::now() + timeout.min(YEAR)
}

/// Sleeps for `delay` or `retry_after`, whichever is longer, but not past the deadline.
///
/// Returns `false` without sleeping if the deadline has passed or comes before `retry_after`: a
/// request before that time would be throttled too, and would count against the limit.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_provider_support::poll::{deadline_after, poll_delays, sleep_before};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let deadline = deadline_after(Duration::from_secs(60));
/// let mut polls = 1;
/// for delay in poll_delays(Duration::from_secs(15)) {
///     if !sleep_before(deadline, delay, Duration::ZERO).await {
///         break;
///     }
///     polls += 1; // ask the service again
/// }
/// assert_eq!(polls, 9);
/// # }
/// ```
pub async fn sleep_before(deadline: Instant, delay: Duration, retry_after: Duration) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() || retry_after > left {
        return false;
    }
    sleep(delay.max(retry_after).min(left)).await;
    true
}
