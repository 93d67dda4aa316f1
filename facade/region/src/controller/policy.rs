//! What an operator may set about a controller.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright_runtime::Backoff;

use crate::server::ServerId;

/// How persistent a controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerPolicy {
    /// How many machines are launched for a server that has not booted in its present life.
    pub max_attempts: u32,
    /// How long a machine may take to its first boot before it counts as failed.
    pub boot_timeout: Duration,
    /// How long the end of a machine is waited for before it is asked for again.
    pub termination_timeout: Duration,
    /// The delay after the first failure of a server's calls. It doubles with every further one.
    pub first_backoff: Duration,
    /// The longest delay, before the random part. What a cloud asks for is kept even if it is longer.
    pub max_backoff: Duration,
    /// How long what is refused for good waits for a catalog or a cloud that was changed.
    pub refused_backoff: Duration,
    /// How many servers are worked on at once.
    pub concurrency: NonZeroUsize,
}

impl Default for ControllerPolicy {
    /// Three attempts of a quarter of an hour each; delays from two seconds to five minutes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            max_attempts: 3,
            boot_timeout: seconds(900),
            termination_timeout: seconds(300),
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            refused_backoff: seconds(600),
            concurrency: NonZeroUsize::MIN.saturating_add(31),
        }
    }
}

impl ControllerPolicy {
    /// How long to wait after the `failures`th failure in a row, counted from 1: each server in its own step, and the
    /// same in every process.
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
        fn delays_double_up_to_the_longest_and_differ_by_server(bits: u128, failures in 1_u32..200) {
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
