//! How many native calls an operation needs.
//!
//! Owns the formula with which a backend declares it and a rate limit charges it. It knows no cloud.

use std::num::{NonZeroU32, NonZeroUsize};

use serde::{Deserialize, Serialize};

/// How many native calls one call of an operation needs, as a function of its number of instances.
///
/// It is a sum: a constant, so many for each instance, and so many for each chunk of instances that the
/// cloud handles together. Some backends handle a few instances one by one and many together; the
/// cost of those few replaces the sum.
///
/// It counts the most calls of the ordinary case: the instances exist, the change is allowed, reads are
/// not stale, and caches are empty. Calls that explain a refusal, wait for a stale read or follow an operation of the cloud
/// come in addition, and so do the pages of a list after the first.
///
/// ```
/// use std::num::NonZeroUsize;
/// use fleetwright::NativeCost;
///
/// // One lookup for each 100 instances, and then one call for each instance.
/// let hundred = NonZeroUsize::new(100).unwrap();
/// let terminate = NativeCost::each(1).plus_per_chunk(1, hundred);
/// assert_eq!(terminate.native_calls(1).get(), 2);
/// assert_eq!(terminate.native_calls(500).get(), 505);
///
/// // Up to 3 instances are read one by one, more with two lists.
/// let describe = NativeCost::constant(2).few(3, 1);
/// assert_eq!(describe.native_calls(3).get(), 3);
/// assert_eq!(describe.native_calls(500).get(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NativeCost {
    /// The calls that do not depend on the number of instances.
    pub constant: u32,
    /// The calls for each instance.
    pub each: u32,
    /// The calls for each chunk of instances.
    pub per_chunk: u32,
    /// The size of a chunk.
    pub chunk_size: NonZeroUsize,
    /// Up to how many instances are handled one by one.
    pub few: usize,
    /// The calls for each instance if there are at most `few`.
    pub each_of_few: u32,
}

impl NativeCost {
    /// A cost that does not depend on the number of instances.
    pub const fn constant(calls: u32) -> Self {
        Self {
            constant: calls,
            each: 0,
            per_chunk: 0,
            chunk_size: NonZeroUsize::MAX,
            few: 0,
            each_of_few: 0,
        }
    }

    /// A cost of `calls` for each instance.
    pub const fn each(calls: u32) -> Self {
        let mut cost = Self::constant(0);
        cost.each = calls;
        cost
    }

    /// A cost of `calls` for each chunk of at most `size` instances.
    pub const fn per_chunk(calls: u32, size: NonZeroUsize) -> Self {
        Self::constant(0).plus_per_chunk(calls, size)
    }

    /// Adds calls that do not depend on the number of instances.
    #[must_use]
    pub const fn plus(mut self, calls: u32) -> Self {
        self.constant += calls;
        self
    }

    /// Sets the calls for each chunk of at most `size` instances.
    #[must_use]
    pub const fn plus_per_chunk(mut self, calls: u32, size: NonZeroUsize) -> Self {
        self.per_chunk = calls;
        self.chunk_size = size;
        self
    }

    /// Sets that up to `count` instances cost `calls` each, and nothing else.
    #[must_use]
    pub const fn few(mut self, count: usize, calls: u32) -> Self {
        self.few = count;
        self.each_of_few = calls;
        self
    }

    /// Returns the number of native calls for `instances`, at least one.
    pub fn native_calls(&self, instances: usize) -> NonZeroU32 {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let calls = if (1..=self.few).contains(&instances) {
            self.each_of_few.saturating_mul(count(instances))
        } else {
            let chunks = count(instances.div_ceil(self.chunk_size.get()));
            let together = self.per_chunk.saturating_mul(chunks);
            let one_by_one = self.each.saturating_mul(count(instances));
            self.constant
                .saturating_add(together)
                .saturating_add(one_by_one)
        };
        NonZeroU32::new(calls).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_cost_add_up() {
        let size = NonZeroUsize::new(10).unwrap();
        let cost = NativeCost::each(2).plus(3).plus_per_chunk(4, size);
        let calls = [0, 1, 10, 11].map(|count| cost.native_calls(count).get());
        assert_eq!(calls, [3, 9, 27, 33]);
        let calls = [1, 2, 3].map(|count| cost.few(2, 1).native_calls(count).get());
        assert_eq!(calls, [1, 2, 13]);
        assert_eq!(NativeCost::per_chunk(1, size).native_calls(0).get(), 1);
        assert_eq!(NativeCost::each(2).native_calls(usize::MAX).get(), u32::MAX);
        assert_eq!(NativeCost::constant(4).native_calls(9).get(), 4);
    }
}
