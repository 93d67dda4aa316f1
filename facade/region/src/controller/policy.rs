//! The settings of the server controller.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright_runtime::Backoff;

use crate::{
    server::ServerId,
    setting::{InvalidSetting, check_backoff, check_positive},
};

/// Attempts, timeouts, delays and concurrency of a server controller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerPolicy {
    /// How many machines are launched for a server until one boots. Default: 3.
    pub max_attempts: u32,
    /// How long a machine may take to boot before it counts as failed. Default: 15 minutes.
    pub boot_timeout: Duration,
    /// How long the controller waits for a termination before it repeats the call. Default: 5 minutes.
    pub termination_timeout: Duration,
    /// The delay after the first failed call of a server. It doubles with every further failure. Default: 2 seconds.
    pub first_backoff: Duration,
    /// The longest delay, without the random part. A longer delay that the cloud requests is kept. Default: 5 minutes.
    pub max_backoff: Duration,
    /// The delay after a permanent refusal, in case the catalog or the cloud changes. Default: 10 minutes.
    pub refused_backoff: Duration,
    /// How long a reimage may take until the cloud has returned its result. One whose result is unknown is not repeated earlier, so that a
    /// second controller does not send it as well. Default: 2 minutes.
    pub reimage_timeout: Duration,
    /// How long a launch may take until the cloud has returned its result: longer than the provider's timeout of a call. One that is not
    /// found counts as without effect only after that, so that a second controller launches no other machine meanwhile. Default: 2 minutes.
    pub launch_timeout: Duration,
    /// How many servers are reconciled at once. Default: 32.
    pub concurrency: NonZeroUsize,
}

impl Default for ControllerPolicy {
    /// Three attempts of 15 minutes each, and delays from 2 seconds to 5 minutes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            max_attempts: 3,
            boot_timeout: seconds(900),
            termination_timeout: seconds(300),
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            refused_backoff: seconds(600),
            reimage_timeout: seconds(120),
            launch_timeout: seconds(120),
            concurrency: NonZeroUsize::MIN.saturating_add(31),
        }
    }
}

impl ControllerPolicy {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A time or the number of attempts is zero, or the longest delay is shorter than the first.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if self.max_attempts == 0 {
            let problem = "is zero, so that nothing is ever launched: set at least 1";
            return Err(InvalidSetting::new("max_attempts", problem));
        }
        check_positive(&[
            ("boot_timeout", self.boot_timeout),
            ("termination_timeout", self.termination_timeout),
            ("refused_backoff", self.refused_backoff),
            ("reimage_timeout", self.reimage_timeout),
            ("launch_timeout", self.launch_timeout),
        ])?;
        check_backoff(self.first_backoff, self.max_backoff)
    }

    /// Returns the longest delay after a failure, unless the cloud requests a longer one.
    pub fn longest_delay(&self) -> Duration {
        // The random part is at most as long as the delay itself.
        self.max_backoff.saturating_mul(2).max(self.refused_backoff)
    }

    /// Returns the delay after the given number of failures in a row, counted from 1: different for each server, and the same in every
    /// process.
    pub fn backoff(&self, server: ServerId, failures: u32) -> Duration {
        let backoff = Backoff {
            first: self.first_backoff,
            max: self.max_backoff,
        };
        backoff.delay(server.as_uuid(), failures)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    proptest! {
        #[test]
        fn delays_double_up_to_the_maximum_and_differ_by_server(bits: u128, failures in 1_u32..200) {
            let policy = ControllerPolicy::default();
            let server = ServerId::from_uuid(Uuid::from_u128(bits));
            let delay = policy.backoff(server, failures);
            let plain = policy.first_backoff.saturating_mul(1 << (failures - 1).min(20));
            let plain = plain.min(policy.max_backoff);
            prop_assert!(delay >= plain && delay <= plain * 2, "{delay:?} against {plain:?}");
            prop_assert_eq!(delay, policy.backoff(server, failures));
        }
    }
}
