//! Randomness that repeats from its seed.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Throws that are the same for the same seed, on every machine and in every release.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// Dice for `seed`.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Other dice for the same seed: throws for one purpose never shift those for another.
    #[must_use]
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(purpose);
        Self(rng)
    }

    /// A duration from zero to `most`, both included.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.0.random_range(0..=nanos))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn throws_repeat_by_seed_and_purpose() {
        let throws = |mut dice: Dice| [dice.bits(), dice.bits()];
        assert_eq!(throws(Dice::new(7)), throws(Dice::new(7)));
        assert_ne!(throws(Dice::new(7)), throws(Dice::new(8)));
        assert_eq!(
            throws(Dice::for_purpose(7, 1)),
            throws(Dice::for_purpose(7, 1))
        );
        assert_ne!(
            throws(Dice::for_purpose(7, 1)),
            throws(Dice::for_purpose(7, 2))
        );
        assert_eq!(throws(Dice::new(7)), throws(Dice::for_purpose(7, 0)));
    }

    #[test]
    fn throws_are_frozen() {
        assert_eq!(Dice::new(1).bits(), 7_424_550_030_962_593_201);
    }

    proptest! {
        #[test]
        fn a_duration_stays_within_its_bound(seed: u64, most in 0_u64..1_000) {
            let (mut dice, most) = (Dice::new(seed), Duration::from_nanos(most));
            prop_assert!((0..50).all(|_| dice.up_to(most) <= most));
        }
    }

    #[test]
    fn both_ends_of_a_duration_are_thrown() {
        let mut dice = Dice::new(1);
        let thrown: std::collections::BTreeSet<_> = (0..99)
            .map(|_| dice.up_to(Duration::from_nanos(2)).as_nanos())
            .collect();
        assert_eq!(thrown.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(dice.up_to(Duration::MAX) <= Duration::MAX);
    }
}
