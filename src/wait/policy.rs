//! How long and how often to poll.

use std::{num::NonZeroU32, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::time::Instant;

/// How long and how often to poll.
///
/// The delay between two polls grows by half from [`first_delay`](Self::first_delay) to
/// [`max_delay`](Self::max_delay). A random part of itself is added to each delay, so that a thousand
/// waiters do not poll at the same time. No delay is shorter than the backend's
/// [poll interval](crate::Capabilities::poll_interval).
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use fleetwright::wait::WaitPolicy;
///
/// let policy = WaitPolicy::within(Duration::from_secs(300))
///     .delays(Duration::from_secs(1), Duration::from_secs(15))
///     .max_polls(NonZeroU32::new(50).unwrap());
/// assert_eq!(policy.timeout, Duration::from_secs(300));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitPolicy {
    /// How long to wait in total. Required. [`Duration::MAX`] waits without a limit.
    pub timeout: Duration,
    /// The delay after the first poll. Default: 500 ms.
    pub first_delay: Duration,
    /// The longest delay, before the random part is added. Default: 10 s.
    pub max_delay: Duration,
    /// The most polls. Default: no limit.
    pub max_polls: Option<NonZeroU32>,
    /// A seed that makes the random part reproducible. Default: `None`.
    pub jitter_seed: Option<u64>,
}

impl WaitPolicy {
    /// Creates a policy that waits for at most `timeout`, with delays from 500 ms to 10 s.
    pub const fn within(timeout: Duration) -> Self {
        Self {
            timeout,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(10),
            max_polls: None,
            jitter_seed: None,
        }
    }

    /// Sets the first and the longest delay between two polls.
    #[must_use]
    pub const fn delays(mut self, first: Duration, max: Duration) -> Self {
        self.first_delay = first;
        self.max_delay = max;
        self
    }

    /// Sets the most polls.
    #[must_use]
    pub const fn max_polls(mut self, polls: NonZeroU32) -> Self {
        self.max_polls = Some(polls);
        self
    }

    /// Sets a seed that makes the random part of the delays reproducible.
    #[must_use]
    pub const fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Returns the deadline of a wait that starts at `now`.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        const THIRTY_YEARS: Duration = Duration::from_secs(946_080_000);
        let deadline = now.checked_add(self.timeout);
        deadline.unwrap_or_else(|| now + THIRTY_YEARS)
    }

    /// Returns the delays between polls, without end.
    pub(super) fn backoff(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        let mut builder = ExponentialBuilder::new()
            .with_factor(1.5)
            .with_min_delay(self.first_delay.max(Duration::from_millis(1)))
            .with_max_delay(
                self.max_delay
                    .max(self.first_delay)
                    .max(Duration::from_millis(1)),
            )
            .without_max_times()
            .with_jitter();
        if let Some(seed) = self.jitter_seed {
            builder = builder.with_jitter_seed(seed);
        }
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn setters_set_the_fields() {
        let second = Duration::from_secs(1);
        let policy = WaitPolicy::within(second * 60)
            .delays(second, second * 2)
            .max_polls(NonZeroU32::MIN)
            .jitter_seed(7);
        assert_eq!(
            (policy.timeout, policy.first_delay, policy.max_delay),
            (second * 60, second, second * 2)
        );
        assert_eq!(
            (policy.max_polls, policy.jitter_seed),
            (Some(NonZeroU32::MIN), Some(7))
        );
    }

    #[test]
    fn default_delays_are_half_a_second_to_ten_seconds() {
        let policy = WaitPolicy::within(Duration::from_secs(60));
        let (half, ten) = (Duration::from_millis(500), Duration::from_secs(10));
        assert_eq!((policy.first_delay, policy.max_delay), (half, ten));
        assert_eq!((policy.max_polls, policy.jitter_seed), (None, None));
    }

    #[test]
    fn first_delay_above_the_longest_delay_is_kept() {
        let (five, two) = (Duration::from_secs(5), Duration::from_secs(2));
        let policy = WaitPolicy::within(five).delays(five, two).jitter_seed(1);
        let delays: Vec<_> = policy.backoff().take(9).collect();
        assert_eq!(delays.len(), 9);
        assert!(delays.iter().all(|delay| (five..=five * 2).contains(delay)));
    }

    #[test]
    fn delays_are_reproducible_with_the_same_seed() {
        let delays = |seed| {
            let policy = WaitPolicy::within(Duration::from_secs(60)).jitter_seed(seed);
            policy.backoff().take(20).collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }

    proptest! {
        #[test]
        fn delays_grow_within_bounds(first in 1_u64..5_000, longer in 0_u64..60_000, seed: u64) {
            let (first, max) = (Duration::from_millis(first), Duration::from_millis(first + longer));
            let policy = WaitPolicy::within(max).delays(first, max).jitter_seed(seed);
            let mut base = first;
            for delay in policy.backoff().take(50) {
                prop_assert!(delay >= base.mul_f64(0.999) && delay <= base.mul_f64(2.001), "{delay:?} {base:?}");
                base = base.mul_f32(1.5).min(max);
            }
        }
    }
}
