//! The settings of the image controller.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright_runtime::Backoff;
use uuid::Uuid;

use super::NAMES;
use crate::{
    ids::ImageId,
    setting::{InvalidSetting, check_backoff},
};

/// Timeout, delays and concurrency of the image controller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotPolicy {
    /// How long after the cloud has returned its id an image counts as ready. A provisioner does not report progress: where images take a
    /// while until they can be launched, this avoids launches that fail at first. Default: zero.
    pub ready_after: Duration,
    /// How long after the request calls are retried. At least one call is made. Default: 6 hours.
    pub timeout: Duration,
    /// The delay after the first failure. It doubles with every further one. Default: 2 seconds.
    pub first_backoff: Duration,
    /// The longest delay, without the random part. A longer delay that the cloud requests is kept, up to an hour. Default: 5 minutes.
    pub max_backoff: Duration,
    /// How many images are reconciled at once. Default: 8.
    pub concurrency: NonZeroUsize,
}

impl Default for SnapshotPolicy {
    /// Ready when the cloud has returned its id; 6 hours of retries, with delays from 2 seconds to 5 minutes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            ready_after: Duration::ZERO,
            timeout: seconds(6 * 3600),
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            concurrency: NonZeroUsize::MIN.saturating_add(7),
        }
    }
}

impl SnapshotPolicy {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// The first delay is zero, or the longest delay is shorter than the first.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        check_backoff(self.first_backoff, self.max_backoff)
    }

    /// Returns the longest delay after a failure.
    pub fn longest_delay(&self) -> Duration {
        self.max_backoff
            .saturating_mul(2)
            .max(Duration::from_secs(3600))
    }

    /// Returns the delay after the given number of failures in a row, counted from 1.
    pub fn backoff(&self, image: &ImageId, failures: u32) -> Duration {
        let key = Uuid::new_v5(&NAMES, image.as_str().as_bytes());
        let backoff = Backoff {
            first: self.first_backoff,
            max: self.max_backoff,
        };
        backoff.delay(key, failures)
    }
}
