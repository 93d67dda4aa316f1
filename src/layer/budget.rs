//! The number of retries that a fleet may send, so that retries do not make an outage worse.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A shared reserve of retries. Retries are taken from it, and successful calls refill it.
///
/// Clones share one reserve: give a clone to every handle on the same account. At any time, at most
/// `reserve` retries plus one for every `calls_per_retry` successful calls were allowed. During an
/// outage no call succeeds, so at most `reserve` retries are sent in all.
///
/// ```
/// use std::num::NonZeroU32;
/// use fleetwright::layer::{RetryBudget, RetryPolicy};
///
/// // 50 retries in reserve; ten successful calls earn one back.
/// let budget = RetryBudget::new(50, NonZeroU32::new(10).unwrap());
/// assert_eq!(budget.remaining(), 50);
/// let policy = RetryPolicy::default().budget(budget.clone());
/// ```
#[derive(Clone, Debug)]
pub struct RetryBudget {
    /// Counted in successful calls: each one adds 1, and a retry costs `price`.
    balance: Arc<AtomicU64>,
    full: u64,
    price: u64,
}

impl RetryBudget {
    /// Creates a full reserve of `reserve` retries. Each `calls_per_retry` successful calls add one
    /// retry, up to the full reserve.
    pub fn new(reserve: u32, calls_per_retry: NonZeroU32) -> Self {
        let price = u64::from(calls_per_retry.get());
        let full = u64::from(reserve) * price;
        Self {
            balance: Arc::new(AtomicU64::new(full)),
            full,
            price,
        }
    }

    /// Returns how many retries are left.
    pub fn remaining(&self) -> u64 {
        self.balance.load(Ordering::Relaxed) / self.price
    }

    /// Takes one retry. Returns `false` if there is none.
    pub(super) fn withdraw(&self) -> bool {
        let take = |balance: u64| balance.checked_sub(self.price);
        let taken = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }

    /// Returns one retry that was taken and not sent.
    pub(super) fn give_back(&self) {
        let put = |balance: u64| Some(balance.saturating_add(self.price).min(self.full));
        let _ = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, put);
    }

    /// Counts one successful call.
    pub(super) fn deposit(&self) {
        let put = |balance: u64| (balance < self.full).then_some(balance + 1);
        let _ = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, put);
    }
}

impl Default for RetryBudget {
    /// 100 retries in reserve, and one more for every five successful calls.
    fn default() -> Self {
        Self::new(100, NonZeroU32::MIN.saturating_add(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn retries_never_exceed_the_reserve_plus_what_was_earned(
            reserve in 0_u32..9, price in 1_u32..9, calls in proptest::collection::vec(any::<bool>(), 0..200),
        ) {
            let budget = RetryBudget::new(reserve, NonZeroU32::new(price).unwrap());
            let shared = budget.clone();
            let (mut earned, mut taken) = (0_u32, 0_u32);
            for success in calls {
                if success {
                    shared.deposit();
                    earned += 1;
                } else if budget.withdraw() {
                    taken += 1;
                }
                prop_assert!(taken <= reserve + earned / price);
                prop_assert!(budget.remaining() <= u64::from(reserve));
            }
        }

        #[test]
        fn whole_reserve_can_be_used_and_refilled(reserve in 0_u32..9, price in 1_u32..9, rounds in 0_u32..9) {
            let budget = RetryBudget::new(reserve, NonZeroU32::new(price).unwrap());
            prop_assert_eq!((0..reserve + 5).filter(|_| budget.withdraw()).count() as u32, reserve);
            for _ in 0..rounds * price {
                budget.deposit();
            }
            prop_assert_eq!(budget.remaining(), u64::from(rounds.min(reserve)));
        }
    }
}
