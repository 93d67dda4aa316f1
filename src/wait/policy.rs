//! How long and how often to poll.

use std::{num::NonZeroU32, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use tokio::time::Instant;

use super::ticks::next_tick;

/// Thirty years: longer than any wait.
const FAR: Duration = Duration::from_secs(946_080_000);

/// How long and how often to poll.
///
/// The delay between two polls grows by half from [`first_delay`](Self::first_delay) or the backend's
/// [poll interval](crate::Capabilities::poll_interval), whichever is longer, to [`max_delay`](Self::max_delay). No delay is
/// shorter than the poll interval.
///
/// Each delay is extended to the next tick, less than twofold. All waits of a process have the same ticks, so that those of many tasks
/// poll at the same moments, and [`Coalesce`](crate::layer::Coalesce) combines their polls. With a
/// [`jitter_seed`](Self::jitter_seed) a random part is added to each delay instead; use it if many tasks wait without that layer.
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
    /// The shortest delay between two polls, and before the first one if a call has just changed the instance. Default: 500 ms.
    pub first_delay: Duration,
    /// The longest delay, before it is extended. Default: 10 s.
    pub max_delay: Duration,
    /// The most polls. Default: no limit.
    pub max_polls: Option<NonZeroU32>,
    /// A seed for delays with a random part, up to twofold, in place of common ticks. Default: `None`.
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

    /// Sets a seed for delays with a random part, in place of common ticks.
    #[must_use]
    pub const fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Returns the deadline of a wait that starts at `now`.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let deadline = now.checked_add(self.timeout);
        deadline.unwrap_or(now + FAR)
    }

    /// Returns the delays of a wait on a backend with the poll interval `interval`.
    pub(super) fn delays_from(&self, interval: Duration) -> Delays {
        let longest = self.max_delay.max(self.first_delay);
        let first = self.first_delay.max(interval.min(longest));
        Delays {
            interval,
            on_ticks: self.jitter_seed.is_none(),
            longest,
            backoff: Box::new(self.backoff(first)),
        }
    }

    /// Returns the delays from `first` on, without end. They have a random part if there is a seed.
    fn backoff(&self, first: Duration) -> impl Iterator<Item = Duration> + Send + use<> {
        let shortest = Duration::from_millis(1);
        let builder = ExponentialBuilder::new()
            .with_factor(1.5)
            .with_min_delay(first.max(shortest))
            .with_max_delay(self.max_delay.max(first).max(shortest))
            .without_max_times();
        let builder = match self.jitter_seed {
            Some(seed) => builder.with_jitter().with_jitter_seed(seed),
            None => builder,
        };
        builder.build()
    }
}

/// The delays of one wait.
pub(super) struct Delays {
    interval: Duration,
    on_ticks: bool,
    longest: Duration,
    backoff: Box<dyn Iterator<Item = Duration> + Send>,
}

impl Delays {
    /// Returns when to poll next, at least `min_delay` from now.
    pub(super) fn next_poll(&mut self, min_delay: Duration) -> Instant {
        let now = Instant::now();
        let delay = self.backoff.next().unwrap_or(self.longest).min(FAR);
        let own = if self.on_ticks && delay >= self.interval {
            next_tick(now, delay, self.interval)
        } else {
            now + delay
        };
        // A delay that the cloud requests can be so long that no clock has its end.
        let requested = now.checked_add(min_delay);
        own.max(requested.unwrap_or(now + FAR))
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
        let delays: Vec<_> = policy.backoff(five).take(9).collect();
        assert_eq!(delays.len(), 9);
        assert!(delays.iter().all(|delay| (five..=five * 2).contains(delay)));
    }

    #[test]
    fn delays_are_reproducible_with_the_same_seed() {
        let delays = |seed| {
            let policy = WaitPolicy::within(Duration::from_secs(60)).jitter_seed(seed);
            policy
                .backoff(policy.first_delay)
                .take(20)
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_begin_at_the_interval_and_grow_from_there() {
        let interval = Duration::from_secs(2);
        let mut delays = WaitPolicy::within(interval).delays_from(interval);
        let mut base = interval;
        for _ in 0..9 {
            let delay = delays.next_poll(interval) - Instant::now();
            assert!(
                delay >= base.mul_f64(0.999) && delay < base.mul_f64(2.001),
                "{delay:?} {base:?}"
            );
            base = base.mul_f32(1.5).min(Duration::from_secs(10));
        }
        // The interval alone decides for a policy without delays of its own.
        let policy = WaitPolicy::within(interval).delays(Duration::ZERO, Duration::ZERO);
        let mut delays = policy.delays_from(interval);
        assert_eq!(delays.next_poll(interval), Instant::now() + interval);
        assert!(delays.next_poll(Duration::MAX) > Instant::now() + interval * 1_000);
    }

    proptest! {
        #[test]
        fn delays_grow_within_bounds(first in 1_u64..5_000, longer in 0_u64..60_000, seed: u64) {
            let (first, max) = (Duration::from_millis(first), Duration::from_millis(first + longer));
            let policy = WaitPolicy::within(max).delays(first, max).jitter_seed(seed);
            let mut base = first;
            for delay in policy.backoff(first).take(50) {
                prop_assert!(delay >= base.mul_f64(0.999) && delay <= base.mul_f64(2.001), "{delay:?} {base:?}");
                base = base.mul_f32(1.5).min(max);
            }
        }
    }
}
