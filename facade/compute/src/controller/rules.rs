//! What an operator may set about the controllers of this crate.

use std::{num::NonZeroUsize, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use fleetwright_runtime::Backoff;
use uuid::Uuid;

/// How persistent a controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The delay after the first failure of a pass. It doubles with every further one in a row.
    pub first_backoff: Duration,
    /// The longest delay after failures, before the random part.
    pub max_backoff: Duration,
    /// The longest delay before what was refused in words is asked for again, should nothing change before.
    pub refused_backoff: Duration,
    /// How long what still stands in a network that is going is waited for before it is looked at unasked.
    pub network_patience: Duration,
    /// How many keys are worked on at once.
    pub concurrency: NonZeroUsize,
}

impl Default for Rules {
    /// Delays from two seconds to five minutes; what is refused is asked for again after ten, and networks are looked at every minute.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            refused_backoff: seconds(600),
            network_patience: seconds(60),
            concurrency: NonZeroUsize::MIN.saturating_add(31),
        }
    }
}

impl Rules {
    /// How long to wait after the `failures`th failure in a row, counted from 1.
    pub(crate) fn backoff(&self, key: Uuid, failures: u32) -> Duration {
        let backoff = Backoff {
            first: self.first_backoff,
            max: self.max_backoff,
        };
        backoff.delay(key, failures)
    }

    /// When what is refused since then is asked for again: after as long as it has lasted, which doubles it, within what is set. It
    /// needs no memory, so that a new process goes on with it.
    pub(crate) fn ask_again(&self, since: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        let lasted = now.signed_duration_since(since).to_std();
        let lasted = lasted.unwrap_or_default();
        let delay = lasted.max(self.first_backoff).min(self.refused_backoff);
        after(now, delay)
    }
}

/// A date `delay` after another; the end of the calendar if it is beyond it.
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
        fn what_is_refused_is_asked_for_ever_more_rarely_within_what_is_set(lasted in 0_u64..1 << 40) {
            let rules = Rules::default();
            let since = DateTime::<Utc>::UNIX_EPOCH;
            let now = after(since, Duration::from_secs(lasted));
            let delay = rules.ask_again(since, now).signed_duration_since(now).to_std().unwrap();
            prop_assert!(delay >= rules.first_backoff && delay <= rules.refused_backoff);
            prop_assert!(delay.as_secs() <= lasted.max(2));
            // A calendar that was set back refuses nobody for ever.
            let back = rules.ask_again(now, since).signed_duration_since(since).to_std().unwrap();
            prop_assert_eq!(back, rules.first_backoff);
        }
    }
}
