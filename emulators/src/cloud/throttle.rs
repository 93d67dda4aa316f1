//! Token buckets by operation, on the emulator's clock.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleetwright_chaos::{Clock, TokenBucket};

use super::knobs::{Counts, Refill, Throttle};

/// The name of the bucket that all operations without their own bucket share.
const SHARED: &str = "*";

/// The current token buckets.
#[derive(Debug)]
pub(super) struct Buckets(BTreeMap<String, (Bucket, Throttle)>);

/// A bucket with its kind of refill.
#[derive(Debug)]
enum Bucket {
    /// One token after each period.
    Steady(TokenBucket),
    /// All tokens at each full minute.
    EachMinute(MinuteBucket),
}

impl Bucket {
    fn new(throttle: &Throttle, clock: &Arc<dyn Clock>) -> Self {
        let clock = Arc::clone(clock);
        match throttle.refill {
            Refill::Steady => {
                Self::Steady(TokenBucket::new(throttle.period, throttle.burst, clock))
            }
            Refill::EachMinute => Self::EachMinute(MinuteBucket {
                size: throttle.burst,
                used: Mutex::default(),
                clock,
            }),
        }
    }

    /// Takes tokens, or returns the time until there are enough.
    fn take(&self, cost: NonZeroU32) -> Result<(), Duration> {
        match self {
            Self::Steady(bucket) => bucket.take(cost),
            Self::EachMinute(bucket) => bucket.take(cost),
        }
    }
}

/// A bucket that is full at each full minute of the calendar.
#[derive(Debug)]
struct MinuteBucket {
    size: NonZeroU32,
    /// The minute, counted from 1970, and the tokens that were taken in it.
    used: Mutex<(i64, u32)>,
    clock: Arc<dyn Clock>,
}

impl MinuteBucket {
    fn take(&self, cost: NonZeroU32) -> Result<(), Duration> {
        let millis = self.clock.date_at(self.clock.elapsed()).timestamp_millis();
        let minute = millis.div_euclid(60_000);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.0 != minute {
            *used = (minute, 0);
        }
        let needed = used.1.saturating_add(cost.get());
        if needed > self.size.get() {
            let left = u64::try_from(60_000 - millis.rem_euclid(60_000)).unwrap_or_default();
            return Err(Duration::from_millis(left));
        }
        used.1 = needed;
        Ok(())
    }
}

/// A call was refused because its bucket is empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Throttled {
    pub(super) retry_after_secs: Option<u64>,
}

impl Buckets {
    /// Creates full buckets.
    pub(super) fn new(knobs: &BTreeMap<String, Throttle>, clock: &Arc<dyn Clock>) -> Self {
        let bucket = |(name, throttle): (&String, &Throttle)| {
            (name.clone(), (Bucket::new(throttle, clock), *throttle))
        };
        Self(knobs.iter().map(bucket).collect())
    }

    /// Takes the tokens of a call with this number of resources, or refuses the call.
    pub(super) fn take(&self, operation: &str, resources: NonZeroU32) -> Result<(), Throttled> {
        let Some((bucket, throttle)) = self.0.get(operation).or_else(|| self.0.get(SHARED)) else {
            return Ok(());
        };
        let cost = match throttle.counts {
            Counts::Requests => NonZeroU32::MIN,
            Counts::Resources => resources,
        };
        bucket.take(cost).map_err(|wait| Throttled {
            retry_after_secs: throttle.retry_after.then(|| whole_seconds(wait)),
        })
    }
}

/// Returns the seconds of a `Retry-After` header: rounded up, and at least one.
fn whole_seconds(wait: Duration) -> u64 {
    let more = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(more).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright_chaos::ManualClock;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    fn buckets(name: &str, burst: u32, counts: Counts, clock: &Arc<ManualClock>) -> Buckets {
        let burst = NonZeroU32::new(burst).unwrap();
        let mut throttle = Throttle::new(Duration::from_secs(1), burst);
        throttle.counts = counts;
        throttle.retry_after = name == "*";
        let clock: Arc<dyn Clock> = clock.clone();
        Buckets::new(&[(name.to_owned(), throttle)].into(), &clock)
    }

    #[test]
    fn operation_uses_its_own_bucket_or_the_shared_one() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("Run", 1, Counts::Requests, &clock);
        assert_eq!(own.take("Run", ONE), Ok(()));
        let without_header = Throttled {
            retry_after_secs: None,
        };
        assert_eq!(own.take("Run", ONE), Err(without_header));
        assert_eq!(own.take("Describe", ONE), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(own.take("Run", ONE), Ok(()));
        let shared = buckets("*", 1, Counts::Requests, &clock);
        assert_eq!(shared.take("Run", ONE), Ok(()));
        let throttled = shared.take("Describe", ONE).unwrap_err();
        assert_eq!(throttled.retry_after_secs, Some(1));
    }

    #[test]
    fn call_costs_one_token_for_each_resource() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("*", 5, Counts::Resources, &clock);
        let count = |count: u32| NonZeroU32::new(count).unwrap();
        assert_eq!(own.take("Run", count(3)), Ok(()));
        assert!(own.take("Run", count(3)).is_err());
        assert_eq!(own.take("End", count(2)), Ok(()));
        assert!(own.take("Describe", ONE).is_err());
    }

    #[test]
    fn minute_bucket_is_full_at_the_next_full_minute() {
        let clock = Arc::new(ManualClock::new());
        clock.advance(Duration::from_secs(15));
        let mut throttle = Throttle::each_minute(NonZeroU32::new(2).unwrap());
        throttle.retry_after = true;
        let shared: Arc<dyn Clock> = clock.clone();
        let buckets = Buckets::new(&[("*".to_owned(), throttle)].into(), &shared);
        assert_eq!(buckets.take("Run", ONE), Ok(()));
        clock.advance(Duration::from_secs(30));
        assert_eq!(buckets.take("Run", ONE), Ok(()));
        let throttled = buckets.take("Run", ONE).unwrap_err();
        assert_eq!(throttled.retry_after_secs, Some(15));
        clock.advance(Duration::from_secs(15));
        assert_eq!(buckets.take("Run", ONE), Ok(()));
    }
}
