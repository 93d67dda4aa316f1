//! Generates numbers and request ids that never repeat.

use uuid::Builder;

/// Generates numbers from a counter and a seed. No two are the same.
#[derive(Debug)]
pub(crate) struct IdGenerator {
    seed: u64,
    generated: u64,
}

impl IdGenerator {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, generated: 0 }
    }

    /// Returns a new request id, a UUID.
    pub(crate) fn request(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns the next number of the counter: 1, 2, 3 and so on.
    pub(crate) const fn count(&mut self) -> u64 {
        self.generated += 1;
        self.generated
    }

    /// Returns the next number, mixed by the finalizer of SplitMix64, which is a bijection: none
    /// repeats.
    pub(crate) fn number(&mut self) -> u64 {
        let start = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.count().wrapping_add(start);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_follow_the_seed_and_never_repeat() {
        let mut ids = IdGenerator::new(3);
        let numbers: BTreeSet<_> = (0..10_000).map(|_| ids.number()).collect();
        assert_eq!(numbers.len(), 10_000);
        assert_eq!(IdGenerator::new(3).number(), IdGenerator::new(3).number());
        assert_ne!(IdGenerator::new(3).number(), IdGenerator::new(4).number());
        assert_eq!(ids.request().len(), 36);
    }
}
