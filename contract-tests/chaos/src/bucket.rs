//! A token bucket on a simulated clock, as clouds use it to throttle clients.
//!
//! Owns the arithmetic of one bucket. It never waits: the caller decides what a refused call returns.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{
    InsufficientCapacity, Quota, RateLimiter, clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};

use crate::Clock;

type Limiter = RateLimiter<NotKeyed, InMemoryState, Ticker, NoOpMiddleware<Nanos>>;

/// The longest time that a bucket takes to fill, and the longest that it follows its clock: 136
/// years. The limiter counts nanoseconds in 64 bits and panics on overflow.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Holds up to `burst` tokens and regains one every `period`.
///
/// ```
/// use std::{num::NonZeroU32, sync::Arc, time::Duration};
/// use fleetwright_chaos::{ManualClock, TokenBucket};
///
/// let clock = Arc::new(ManualClock::new());
/// let second = Duration::from_secs(1);
/// let bucket = TokenBucket::new(second, NonZeroU32::MIN, clock.clone());
/// assert_eq!(bucket.take(NonZeroU32::MIN), Ok(()));
/// assert_eq!(bucket.take(NonZeroU32::MIN), Err(second), "retry after one second");
/// clock.advance(second);
/// assert_eq!(bucket.take(NonZeroU32::MIN), Ok(()));
/// ```
pub struct TokenBucket {
    burst: NonZeroU32,
    limiter: Limiter,
    clock: Ticker,
}

impl TokenBucket {
    /// Creates a full bucket.
    ///
    /// A `period` of zero counts as one nanosecond, which is practically no limit. A `period` with
    /// which the bucket would take more than 136 years to fill is shortened so that it takes 136.
    pub fn new(period: Duration, burst: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        let clock = Ticker(clock);
        let every = period.clamp(Duration::from_nanos(1), LONGEST / burst.get());
        let quota = Quota::with_period(every).unwrap_or(Quota::per_second(burst));
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), clock.clone());
        Self {
            burst,
            limiter,
            clock,
        }
    }

    /// Takes `tokens` at once, or none of them. A request for more tokens than `burst` is treated as
    /// a request for `burst`.
    ///
    /// # Errors
    /// How long to wait, by the bucket's clock, until the tokens are available.
    pub fn take(&self, tokens: NonZeroU32) -> Result<(), Duration> {
        let tokens = tokens.min(self.burst);
        match self.limiter.check_n(tokens) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_until)) => Err(not_until.wait_time_from(clock::Clock::now(&self.clock))),
            Err(InsufficientCapacity(_)) => Err(Duration::MAX),
        }
    }
}

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket")
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

/// A [`Clock`] in the form that governor reads.
#[derive(Clone, Debug)]
struct Ticker(Arc<dyn Clock>);

impl clock::Clock for Ticker {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // The limiter subtracts one burst from the current time, so time must not start at zero.
        Nanos::from(self.0.elapsed().min(LONGEST) + LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;
    use proptest::prelude::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    fn tokens(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn bucket_holds_its_burst_and_refills() {
        let clock = Arc::new(ManualClock::new());
        let second = Duration::from_secs(1);
        let bucket = TokenBucket::new(second, tokens(2), clock.clone());
        assert_eq!(bucket.take(ONE), Ok(()));
        assert_eq!(bucket.take(ONE), Ok(()));
        assert_eq!(bucket.take(ONE), Err(second));
        clock.advance(second / 2);
        assert_eq!(bucket.take(ONE), Err(second / 2));
        clock.advance(second / 2);
        assert_eq!(bucket.take(tokens(2)), Err(second));
        assert_eq!(bucket.take(ONE), Ok(()));
        clock.advance(second * 99);
        assert_eq!(bucket.take(tokens(99)), Ok(()));
        assert_eq!(bucket.take(ONE), Err(second));
        assert!(format!("{bucket:?}").contains("burst: 2"));
    }

    #[test]
    fn zero_period_is_no_limit_once_time_advances() {
        let clock = Arc::new(ManualClock::new());
        let bucket = TokenBucket::new(Duration::ZERO, ONE, clock.clone());
        for _ in 0..5 {
            assert_eq!(bucket.take(ONE), Ok(()));
            clock.advance(Duration::from_nanos(1));
        }
    }

    #[test]
    fn extreme_periods_bursts_and_times_do_not_overflow() {
        for period in [
            Duration::ZERO,
            Duration::from_secs(1),
            LONGEST,
            Duration::MAX,
        ] {
            for burst in [1, 2, u32::MAX] {
                let clock = Arc::new(ManualClock::new());
                let bucket = TokenBucket::new(period, tokens(burst), clock.clone());
                for step in [Duration::ZERO, LONGEST / 2, LONGEST, Duration::MAX] {
                    clock.advance(step);
                    for count in [1, burst] {
                        if let Err(wait) = bucket.take(tokens(count)) {
                            assert!(wait <= LONGEST, "{wait:?}");
                        }
                    }
                }
            }
        }
        let clock = Arc::new(ManualClock::new());
        let bucket = TokenBucket::new(Duration::MAX, tokens(2), clock.clone());
        assert_eq!(bucket.take(tokens(2)), Ok(()));
        assert_eq!(bucket.take(ONE), Err(LONGEST / 2));
        clock.advance(LONGEST / 2);
        assert_eq!(bucket.take(ONE), Ok(()));
    }

    proptest! {
        #[test]
        fn never_more_than_burst_plus_refill(
            steps in proptest::collection::vec((1_u32..4, 0_u64..3_000), 1..60), burst in 1_u32..6,
        ) {
            let clock = Arc::new(ManualClock::new());
            let bucket = TokenBucket::new(Duration::from_secs(1), tokens(burst), clock.clone());
            let mut taken = 0_u64;
            for (count, millis) in steps {
                let count = count.min(burst);
                if bucket.take(tokens(count)).is_ok() {
                    taken += u64::from(count);
                }
                prop_assert!(taken <= u64::from(burst) + clock.elapsed().as_secs());
                clock.advance(Duration::from_millis(millis));
            }
        }

        #[test]
        fn returned_wait_is_exactly_enough(burst in 1_u32..6, count in 1_u32..6) {
            let clock = Arc::new(ManualClock::new());
            let bucket = TokenBucket::new(Duration::from_millis(700), tokens(burst), clock.clone());
            bucket.take(tokens(burst)).unwrap();
            let wait = bucket.take(tokens(count)).unwrap_err();
            clock.advance(wait - Duration::from_nanos(1));
            prop_assert!(bucket.take(tokens(count)).is_err());
            clock.advance(Duration::from_nanos(1));
            prop_assert!(bucket.take(tokens(count)).is_ok());
        }
    }
}
