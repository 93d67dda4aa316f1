//! Delays after repeated failures.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use uuid::Uuid;

use crate::clock::MIN_DELAY;

/// Exponential backoff with jitter: the delay starts at `first`, doubles with every further failure up to `max`, and has a
/// random part of up to its own length.
///
/// The random part is derived from the key, so that keys that fail together are retried apart, and every process computes
/// the same delay for the same key.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_runtime::Backoff;
/// use uuid::Uuid;
///
/// let backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_secs(300) };
/// let key = Uuid::from_u128(7);
/// let third = backoff.delay(key, 3);
/// assert!(third >= Duration::from_secs(8) && third <= Duration::from_secs(16));
/// assert_eq!(backoff.delay(key, 3), third);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure, without the random part. At least one millisecond is used.
    pub first: Duration,
    /// The longest delay, without the random part. `first` is used if that is longer.
    pub max: Duration,
}

impl Backoff {
    /// Returns the delay after the given number of failures in a row, counted from 1.
    pub fn delay(&self, key: Uuid, failures: u32) -> Duration {
        let (high, low) = key.as_u64_pair();
        let first = self.first.max(MIN_DELAY);
        let mut delays = ExponentialBuilder::new()
            .with_factor(2.0)
            .with_min_delay(first)
            .with_max_delay(self.max.max(first))
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(high ^ low.rotate_left(failures))
            .build();
        // After 64 doublings the longest delay is reached, whatever it is.
        let nth = failures.saturating_sub(1).min(64) as usize;
        delays.nth(nth).unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delays_double_up_to_the_maximum_and_are_reproducible(bits: u128, failures in 1_u32..200) {
            let backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_secs(300) };
            let key = Uuid::from_u128(bits);
            let delay = backoff.delay(key, failures);
            let base = backoff.first.saturating_mul(1 << (failures - 1).min(20));
            let base = base.min(backoff.max);
            prop_assert!(delay >= base && delay <= base * 2, "{delay:?} for base {base:?}");
            prop_assert_eq!(delay, backoff.delay(key, failures));
        }
    }

    #[test]
    fn zero_delay_becomes_the_minimum_delay() {
        let backoff = Backoff {
            first: Duration::ZERO,
            max: Duration::ZERO,
        };
        assert!(backoff.delay(Uuid::nil(), 1) >= MIN_DELAY);
    }
}
