//! How many repetitions a fleet may send, so that an outage is not made worse by those who wait for
//! its end.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A reserve of repetitions that calls which succeed fill up again. Clones share it: give one to
/// every handle on the same account.
///
/// At no time were more repetitions allowed than the reserve and one for every `calls_per_retry`
/// successful calls: in an outage, in which nothing succeeds, the reserve and no more.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    /// In successful calls: one is earned by each, a repetition costs `price`.
    balance: Arc<AtomicU64>,
    full: u64,
    price: u64,
}

impl RetryBudget {
    /// A full reserve of `reserve` repetitions, of which `calls_per_retry` successful calls earn
    /// one back.
    pub fn new(reserve: u32, calls_per_retry: NonZeroU32) -> Self {
        let price = u64::from(calls_per_retry.get());
        let full = u64::from(reserve) * price;
        Self {
            balance: Arc::new(AtomicU64::new(full)),
            full,
            price,
        }
    }

    /// How many repetitions are left.
    pub fn remaining(&self) -> u64 {
        self.balance.load(Ordering::Relaxed) / self.price
    }

    /// Takes one repetition, if there is one.
    pub(super) fn withdraw(&self) -> bool {
        let take = |balance: u64| balance.checked_sub(self.price);
        let taken = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }

    /// Puts back one repetition that was taken and not sent.
    pub(super) fn give_back(&self) {
        let put = |balance: u64| Some(balance.saturating_add(self.price).min(self.full));
        let _ = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, put);
    }

    /// A call has succeeded.
    pub(super) fn deposit(&self) {
        let put = |balance: u64| (balance < self.full).then_some(balance + 1);
        let _ = self
            .balance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, put);
    }
}

impl Default for RetryBudget {
    /// A hundred in reserve, and one for every five successful calls.
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
        fn no_more_than_the_reserve_and_what_was_earned(
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
        fn what_is_there_is_given(reserve in 0_u32..9, price in 1_u32..9, rounds in 0_u32..9) {
            let budget = RetryBudget::new(reserve, NonZeroU32::new(price).unwrap());
            prop_assert_eq!((0..reserve + 5).filter(|_| budget.withdraw()).count() as u32, reserve);
            for _ in 0..rounds * price {
                budget.deposit();
            }
            prop_assert_eq!(budget.remaining(), u64::from(rounds.min(reserve)));
        }
    }
}
