//! The options of [`Coalesce`](super::Coalesce).

use std::{num::NonZeroUsize, time::Duration};

/// How calls are combined.
///
/// ```
/// use std::{num::NonZeroUsize, time::Duration};
/// use fleetwright::layer::CoalescePolicy;
///
/// let policy = CoalescePolicy::default()
///     .window(Duration::from_millis(50))
///     .max_size(NonZeroUsize::new(100).unwrap());
/// assert_eq!(policy.window, Duration::from_millis(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoalescePolicy {
    /// How long a batch waits for more callers while one other call of the same operation is in
    /// flight. Each further call in flight doubles it, so that calls do not pile up in front of a
    /// rate limit. Default: 100 ms. If it is zero, no call waits and calls share a batch only by
    /// chance.
    pub window: Duration,
    /// The most instances in one batch. A batch never has more than the backend's
    /// [batch size](crate::Capabilities::batch_size). Default: no limit but that.
    pub max_size: NonZeroUsize,
}

impl Default for CoalescePolicy {
    /// A window of 100 ms, and as many instances as the backend allows.
    fn default() -> Self {
        Self {
            window: Duration::from_millis(100),
            max_size: NonZeroUsize::MAX,
        }
    }
}

impl CoalescePolicy {
    /// Sets how long a batch waits for more callers. Zero sends every batch at once.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets the most instances in one batch.
    #[must_use]
    pub const fn max_size(mut self, instances: NonZeroUsize) -> Self {
        self.max_size = instances;
        self
    }
}
