//! Token buckets by action, on the emulator's clock.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use fleetwright_chaos::{Bucket, Clock};

use super::{
    error::Refusal,
    knobs::{Counts, Throttle},
    wire::{action::Action, params::Params},
};

/// The bucket of every action that has none of its own.
const SHARED: &str = "*";

/// The buckets in force.
#[derive(Debug)]
pub(crate) struct Buckets(BTreeMap<String, (Bucket, Counts)>);

impl Buckets {
    /// Full buckets.
    pub(crate) fn new(knobs: &BTreeMap<String, Throttle>, clock: &Arc<dyn Clock>) -> Self {
        let bucket = |(name, throttle): (&String, &Throttle)| {
            let bucket = Bucket::new(throttle.period, throttle.burst, Arc::clone(clock));
            (name.clone(), (bucket, throttle.counts))
        };
        Self(knobs.iter().map(bucket).collect())
    }

    /// Takes what a call costs, or refuses it.
    pub(crate) fn take(&self, action: Action, params: &Params) -> Result<(), Refusal> {
        let Some((bucket, counts)) = self.0.get(action.name()).or_else(|| self.0.get(SHARED))
        else {
            return Ok(());
        };
        let cost = match counts {
            Counts::Requests => NonZeroU32::MIN,
            Counts::Resources => resources(params),
        };
        bucket.take(cost).map_err(|_wait| Refusal::throttled())
    }
}

/// How many resources a call asks for or names.
fn resources(params: &Params) -> NonZeroU32 {
    let asked = params.peek("MaxCount").and_then(|count| count.parse().ok());
    let named = || {
        ["InstanceId", "ResourceId"]
            .into_iter()
            .map(|name| params.count(name))
            .sum::<u32>()
    };
    NonZeroU32::new(asked.unwrap_or_else(named)).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetwright_chaos::ManualClock;
    use std::time::Duration;

    fn buckets(name: &str, burst: u32, counts: Counts, clock: &Arc<ManualClock>) -> Buckets {
        let throttle = Throttle {
            period: Duration::from_secs(1),
            burst: NonZeroU32::new(burst).unwrap(),
            counts,
        };
        let clock: Arc<dyn Clock> = clock.clone();
        Buckets::new(&[(name.to_owned(), throttle)].into(), &clock)
    }

    fn params(text: &str) -> Params {
        Params::parse(text, b"").unwrap()
    }

    #[test]
    fn an_action_has_its_own_bucket_or_the_shared_one() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("RunInstances", 1, Counts::Requests, &clock);
        assert_eq!(own.take(Action::RunInstances, &params("")), Ok(()));
        let refusal = own.take(Action::RunInstances, &params("")).unwrap_err();
        assert_eq!(
            (refusal.status, &*refusal.code),
            (503, "RequestLimitExceeded")
        );
        assert_eq!(own.take(Action::DescribeTags, &params("")), Ok(()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(own.take(Action::RunInstances, &params("")), Ok(()));
        let shared = buckets("*", 1, Counts::Requests, &clock);
        assert_eq!(shared.take(Action::RunInstances, &params("")), Ok(()));
        assert!(shared.take(Action::DescribeTags, &params("")).is_err());
    }

    #[test]
    fn a_large_call_spends_a_token_for_each_resource() {
        let clock = Arc::new(ManualClock::new());
        let own = buckets("*", 5, Counts::Resources, &clock);
        assert_eq!(
            own.take(Action::RunInstances, &params("MaxCount=3")),
            Ok(())
        );
        assert!(
            own.take(Action::RunInstances, &params("MaxCount=3"))
                .is_err()
        );
        let two = params("InstanceId.1=a&InstanceId.2=b");
        assert_eq!(own.take(Action::TerminateInstances, &two), Ok(()));
        assert!(own.take(Action::DescribeInstances, &params("")).is_err());
    }
}
