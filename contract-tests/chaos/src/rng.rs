//! Random numbers that depend on a seed alone.
//!
//! Owns the choice of the generator. It must never read the system's randomness or clock.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// A random number generator that returns the same numbers for the same seed, on every machine and
/// in every release.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_chaos::SeededRng;
///
/// let (mut one, mut same) = (SeededRng::new(7), SeededRng::new(7));
/// assert_eq!(one.bits(), same.bits());
/// assert!(one.up_to(Duration::from_secs(1)) <= Duration::from_secs(1));
/// // Another purpose: its numbers do not depend on how often the first generator is used.
/// let mut delays = SeededRng::for_purpose(7, 1);
/// assert_ne!(delays.bits(), SeededRng::new(7).bits());
/// ```
#[derive(Clone, Debug)]
pub struct SeededRng(ChaCha8Rng);

impl SeededRng {
    /// Creates the generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Creates an independent generator for the same seed: drawing numbers for one purpose never changes
    /// those for another. Purpose 0 is the generator of [`new`](Self::new).
    #[must_use]
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// Returns a duration between zero and `max`, both included, in whole nanoseconds. A `max` above 584
    /// years counts as 584 years.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.0.random_range(0..=nanos))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_repeat_by_seed_and_purpose() {
        let numbers = |mut rng: SeededRng| [rng.bits(), rng.bits()];
        assert_eq!(numbers(SeededRng::new(7)), numbers(SeededRng::new(7)));
        assert_ne!(numbers(SeededRng::new(7)), numbers(SeededRng::new(8)));
        assert_eq!(
            numbers(SeededRng::for_purpose(7, 1)),
            numbers(SeededRng::for_purpose(7, 1))
        );
        assert_ne!(
            numbers(SeededRng::for_purpose(7, 1)),
            numbers(SeededRng::for_purpose(7, 2))
        );
        assert_eq!(
            numbers(SeededRng::new(7)),
            numbers(SeededRng::for_purpose(7, 0))
        );
    }

    #[test]
    fn numbers_never_change() {
        assert_eq!(SeededRng::new(1).bits(), 7_424_550_030_962_593_201);
    }

    proptest! {
        #[test]
        fn duration_stays_within_its_bound(seed: u64, max in 0_u64..1_000) {
            let (mut rng, max) = (SeededRng::new(seed), Duration::from_nanos(max));
            prop_assert!((0..50).all(|_| rng.up_to(max) <= max));
        }
    }

    #[test]
    fn both_bounds_of_a_duration_occur() {
        let mut rng = SeededRng::new(1);
        let drawn: std::collections::BTreeSet<_> = (0..99)
            .map(|_| rng.up_to(Duration::from_nanos(2)).as_nanos())
            .collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(rng.up_to(Duration::MAX) <= Duration::MAX);
    }
}
