//! All layers in the recommended order.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "metrics")]
use super::Metrics;
#[cfg(feature = "trace")]
use super::Trace;
use super::{
    Coalesce, CoalescePolicy, Fallback, FallbackPolicy, Layered, Retry, RetryPolicy, Timeout,
    TimeoutPolicy,
};
#[cfg(feature = "limit")]
use super::{Limit, LimitPolicy};
use crate::{InstanceProvisioner, Operation};

/// All layers, in the order that the [module](super#the-order-and-why) explains.
///
/// The default has every layer with its default policy, except [`Fallback`], which needs
/// alternatives. Set a field to `None` to leave its layer out.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{
///     InstanceProvisioner, Market,
///     layer::{Alternative, FallbackPolicy, RetryPolicy, Stack, TimeoutPolicy},
/// };
/// use fleetwright_memory::MemoryCloud;
///
/// let alternatives = [Alternative::new("as requested"), Alternative::new("spot").market(Market::Spot)];
/// let mut stack = Stack::default()
///     .total_timeout(TimeoutPolicy::new(Duration::from_secs(300)))
///     .retry(RetryPolicy::default().timeout(Duration::from_secs(120)))
///     .fallback(FallbackPolicy::new(alternatives));
/// stack.coalesce = None; // every call is sent on its own
///
/// let provisioner = stack.wrap(MemoryCloud::new().provisioner());
/// assert_eq!(provisioner.capabilities().provider, "memory");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stack {
    /// How long a call may take in total. Default: 10 minutes.
    pub total_timeout: Option<TimeoutPolicy>,
    /// What to launch when an offering has no capacity. Default: `None`.
    pub fallback: Option<FallbackPolicy>,
    /// How calls are combined into batches. Default: [`CoalescePolicy::default`].
    pub coalesce: Option<CoalescePolicy>,
    /// How calls are retried. Default: [`RetryPolicy::default`].
    pub retry: Option<RetryPolicy>,
    /// How many calls may be sent per second. Default: [`LimitPolicy::default`].
    #[cfg(feature = "limit")]
    pub limit: Option<LimitPolicy>,
    /// How long one attempt may take. Default: 1 minute; 3 minutes for lists, batches and images.
    pub attempt_timeout: Option<TimeoutPolicy>,
}

impl Default for Stack {
    /// Every layer with its defaults and without alternatives. An attempt may take one minute, a
    /// list, a batch or an image three minutes, and a call ten minutes in total.
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let longer = [
            Operation::ListInstances,
            Operation::StreamInstances,
            Operation::LaunchInstances,
            Operation::TerminateInstances,
            Operation::StopInstances,
            Operation::StartInstances,
            Operation::DescribeInstances,
            Operation::SnapshotImage,
            Operation::DeleteImage,
        ];
        let attempt_timeout = longer
            .into_iter()
            .fold(TimeoutPolicy::new(minutes(1)), |policy, operation| {
                policy.with(operation, minutes(3))
            });
        Self {
            total_timeout: Some(TimeoutPolicy::new(minutes(10))),
            fallback: None,
            coalesce: Some(CoalescePolicy::default()),
            retry: Some(RetryPolicy::default()),
            #[cfg(feature = "limit")]
            limit: Some(LimitPolicy::default()),
            attempt_timeout: Some(attempt_timeout),
        }
    }
}

impl Stack {
    /// Sets how long a call may take in total.
    #[must_use]
    pub fn total_timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.total_timeout = Some(policy);
        self
    }

    /// Sets what to launch when an offering has no capacity.
    #[must_use]
    pub fn fallback(mut self, policy: FallbackPolicy) -> Self {
        self.fallback = Some(policy);
        self
    }

    /// Sets how calls are combined into batches.
    #[must_use]
    pub const fn coalesce(mut self, policy: CoalescePolicy) -> Self {
        self.coalesce = Some(policy);
        self
    }

    /// Sets how calls are retried.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets how many calls may be sent per second.
    #[cfg(feature = "limit")]
    #[must_use]
    pub fn limit(mut self, policy: LimitPolicy) -> Self {
        self.limit = Some(policy);
        self
    }

    /// Sets how long one attempt may take.
    #[must_use]
    pub fn attempt_timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.attempt_timeout = Some(policy);
        self
    }

    /// Puts the layers around `provisioner`. Clone the returned `Arc` to share the limits, the retry
    /// budget and the batches between tasks.
    pub fn wrap(
        self,
        provisioner: impl InstanceProvisioner + 'static,
    ) -> Arc<dyn InstanceProvisioner> {
        let mut stack: Arc<dyn InstanceProvisioner> = Arc::new(provisioner);
        if let Some(policy) = self.attempt_timeout {
            stack = Arc::new(Layered::new(stack, Timeout::new(policy)));
        }
        #[cfg(feature = "limit")]
        if let Some(policy) = self.limit {
            stack = Arc::new(Layered::new(stack, Limit::new(&policy)));
        }
        stack = match (self.coalesce, self.retry) {
            (Some(coalesce), Some(retry)) => Arc::new(Coalesce::with_retry(stack, coalesce, retry)),
            (Some(coalesce), None) => Arc::new(Coalesce::new(stack, coalesce)),
            (None, Some(retry)) => Arc::new(Layered::new(stack, Retry::new(retry))),
            (None, None) => stack,
        };
        if let Some(policy) = self.fallback {
            stack = Arc::new(Layered::new(stack, Fallback::new(policy)));
        }
        if let Some(policy) = self.total_timeout {
            stack = Arc::new(Layered::new(stack, Timeout::new(policy)));
        }
        #[cfg(feature = "metrics")]
        {
            stack = Arc::new(Layered::new(stack, Metrics));
        }
        #[cfg(feature = "trace")]
        {
            stack = Arc::new(Layered::new(stack, Trace));
        }
        stack
    }
}
