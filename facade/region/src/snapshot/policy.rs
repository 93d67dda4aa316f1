//! What an operator may set about the making of images.

use std::{num::NonZeroUsize, time::Duration};

use fleetwright_runtime::Backoff;
use uuid::Uuid;

use super::NAMES;
use crate::ids::ImageId;

/// How persistent the making of images is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotPolicy {
    /// How long after the cloud has named an image it counts as ready. A provisioner cannot be asked: where images take a while
    /// until they can be launched, this keeps tenants from launches that are refused at first.
    pub settling: Duration,
    /// For how long it is tried, from when it was asked for. It is tried once at least.
    pub timeout: Duration,
    /// The delay after the first failure. It doubles with every further one.
    pub first_backoff: Duration,
    /// The longest delay, before the random part. What a cloud asks for is kept even if it is longer.
    pub max_backoff: Duration,
    /// How many images are worked on at once.
    pub concurrency: NonZeroUsize,
}

impl Default for SnapshotPolicy {
    /// Ready when the cloud has named it; six hours, with delays from two seconds to five minutes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            settling: Duration::ZERO,
            timeout: seconds(6 * 3600),
            first_backoff: seconds(2),
            max_backoff: seconds(300),
            concurrency: NonZeroUsize::MIN.saturating_add(7),
        }
    }
}

impl SnapshotPolicy {
    /// How long to wait after the `failures`th failure in a row, counted from 1.
    pub fn backoff(&self, image: &ImageId, failures: u32) -> Duration {
        let key = Uuid::new_v5(&NAMES, image.as_str().as_bytes());
        let backoff = Backoff {
            first: self.first_backoff,
            max: self.max_backoff,
        };
        backoff.delay(key, failures)
    }
}
