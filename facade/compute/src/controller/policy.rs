//! The policy of this crate's controllers, for operators to set.

use std::{num::NonZeroUsize, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright_region::setting::{InvalidSetting, check_backoff, check_positive};
use fleetwright_runtime::Backoff;
use uuid::Uuid;

/// How often and how soon the controllers of instances and networks retry.
///
/// ```
/// use std::time::Duration;
/// use fleetwright_compute::controller::ControllerPolicy;
///
/// let mut policy = ControllerPolicy::default();
/// policy.max_backoff = Duration::from_secs(60);
/// assert_eq!(policy.first_backoff, Duration::from_secs(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerPolicy {
    /// The delay after the first failed reconcile of a record. It doubles with every further failure in a row. Default: 2 seconds.
    pub first_backoff: Duration,
    /// The longest delay after failures, before jitter is added. Default: 5 minutes.
    pub max_backoff: Duration,
    /// The longest delay before a refused call is repeated, if nothing changes earlier. Default: 10 minutes.
    pub refused_backoff: Duration,
    /// How often a network that is being deleted is reconciled without a change of its instances. Default: 1 minute.
    pub network_recheck: Duration,
    /// How many records are reconciled at once. Default: 32.
    pub concurrency: NonZeroUsize,
}

impl Default for ControllerPolicy {
    /// The defaults that the fields name.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            refused_backoff: seconds(600),
            network_recheck: seconds(60),
            concurrency: NonZeroUsize::MIN.saturating_add(31),
        }
    }
}

impl ControllerPolicy {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A time is zero, or the longest delay is shorter than the first.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        check_positive(&[
            ("refused_backoff", self.refused_backoff),
            ("network_recheck", self.network_recheck),
        ])?;
        check_backoff(self.first_backoff, self.max_backoff)
    }

    /// How long to wait after the `failures`th failure in a row, counted from 1.
    pub(crate) fn backoff(&self, key: Uuid, failures: u32) -> Duration {
        let backoff = Backoff {
            first: self.first_backoff,
            max: self.max_backoff,
        };
        backoff.delay(key, failures)
    }

    /// Returns when to repeat a call that has been refused since `since`. The delay equals the time since then, so it doubles with each
    /// attempt, within the limits of the policy. It needs no counter, so a new process continues with the same delays.
    pub(crate) fn retry_refused_at(
        &self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let lasted = now.signed_duration_since(since).to_std();
        let lasted = lasted.unwrap_or_default();
        let delay = lasted.max(self.first_backoff).min(self.refused_backoff);
        after(now, delay)
    }
}

/// The date `delay` after `now`, at most the end of the calendar.
pub(crate) fn after(now: DateTime<Utc>, delay: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(delay)
        .ok()
        .and_then(|delta| now.checked_add_signed(delta))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn refused_calls_are_repeated_with_growing_delays_within_the_policy(lasted in 0_u64..1 << 40) {
            let policy = ControllerPolicy::default();
            let since = DateTime::<Utc>::UNIX_EPOCH;
            let now = after(since, Duration::from_secs(lasted));
            let delay = policy.retry_refused_at(since, now).signed_duration_since(now).to_std().unwrap();
            prop_assert!(delay >= policy.first_backoff && delay <= policy.refused_backoff);
            prop_assert!(delay.as_secs() <= lasted.max(2));
            // A clock that was set back does not delay the call forever.
            let set_back = policy.retry_refused_at(now, since).signed_duration_since(since).to_std().unwrap();
            prop_assert_eq!(set_back, policy.first_backoff);
        }
    }
}
