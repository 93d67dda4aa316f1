//! Token buckets by operation, on the emulator's clock.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use fleetwright_chaos::{Clock, TokenBucket};

use super::knobs::{Counts, Throttle};

/// The bucket of every operation that has none of its own.
const SHARED: &str = "*";

/// The buckets in force.
#[derive(Debug)]
pub(super) struct Buckets(BTreeMap<String, (TokenBucket, Throttle)>);

/// A call came too early. It may say when to come back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooEarly {
    pub(super) retry_after_secs: Option<u64>,
}

impl Buckets {
    /// Full buckets.
    pub(super) fn new(knobs: &BTreeMap<String, Throttle>, clock: &Arc<dyn Clock>) -> Self {
        let bucket = |(name, throttle): (&String, &Throttle)| {
            let bucket = TokenBucket::new(throttle.period, throttle.burst, Arc::clone(clock));
            (name.clone(), (bucket, *throttle))
        };
        Self(knobs.iter().map(bucket).collect())
    }

    /// Takes what a call of an operation costs that is about so many resources, or refuses it.
    pub(super) fn take(&self, operation: &str, resources: NonZeroU32) -> Result<(), TooEarly> {
        let Some((bucket, throttle)) = self.0.get(operation).or_else(|| self.0.get(SHARED)) else {
            return Ok(());
        };
        let cost = match throttle.counts {
            Counts::Requests => NonZeroU32::MIN,
            Counts::Resources => resources,
        };
        bucket.take(cost).map_err(|wait| TooEarly {
            retry_after_secs: throttle.retry_after.then(|| whole_seconds(wait)),
        })
    }
}

/// The header knows only whole seconds: enough of them, and at least one.
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
    fn an_operation_has_its_own_bucket_or_the_shared_one() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("Run", 1, Counts::Requests, &clock);
        assert_eq!(own.take("Run", ONE), Ok(()));
        let silent = TooEarly {
            retry_after_secs: None,
        };
        assert_eq!(own.take("Run", ONE), Err(silent));
        assert_eq!(own.take("Describe", ONE), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(own.take("Run", ONE), Ok(()));
        let shared = buckets("*", 1, Counts::Requests, &clock);
        assert_eq!(shared.take("Run", ONE), Ok(()));
        let early = shared.take("Describe", ONE).unwrap_err();
        assert_eq!(early.retry_after_secs, Some(1));
    }

    #[test]
    fn a_large_call_spends_a_token_for_each_resource() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("*", 5, Counts::Resources, &clock);
        let count = |count: u32| NonZeroU32::new(count).unwrap();
        assert_eq!(own.take("Run", count(3)), Ok(()));
        assert!(own.take("Run", count(3)).is_err());
        assert_eq!(own.take("End", count(2)), Ok(()));
        assert!(own.take("Describe", ONE).is_err());
    }
}
