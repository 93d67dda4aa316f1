//! The blessed order, built in one place.

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

/// All layers, in the order that [the module](super) gives reasons for.
///
/// ```
/// use fleetwright::{InstanceProvisioner, layer::Stack};
/// use fleetwright_memory::MemoryCloud;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cloud = MemoryCloud::new();
/// let provisioner = Stack::default().wrap(cloud.provisioner());
/// assert_eq!(provisioner.capabilities().provider, "memory");
/// # Ok(())
/// # }
/// ```
///
/// A layer that is set to `None` is left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stack {
    /// How long a call may take in all.
    pub total_timeout: Option<TimeoutPolicy>,
    /// Other offerings; none unless they are given.
    pub fallback: Option<FallbackPolicy>,
    /// How calls are gathered.
    pub coalesce: Option<CoalescePolicy>,
    /// How calls are repeated.
    pub retry: Option<RetryPolicy>,
    /// How fast calls may go.
    #[cfg(feature = "limit")]
    pub limit: Option<LimitPolicy>,
    /// How long one attempt may take.
    pub attempt_timeout: Option<TimeoutPolicy>,
}

impl Default for Stack {
    /// Every layer with its own defaults, without alternatives: an attempt may take one minute, a list
    /// or a batch three, and a call ten minutes in all.
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
        ];
        let attempt = longer
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
            attempt_timeout: Some(attempt),
        }
    }
}

impl Stack {
    /// Lets a call take so long in all.
    #[must_use]
    pub fn total_timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.total_timeout = Some(policy);
        self
    }

    /// Tries other offerings.
    #[must_use]
    pub fn fallback(mut self, policy: FallbackPolicy) -> Self {
        self.fallback = Some(policy);
        self
    }

    /// Gathers calls.
    #[must_use]
    pub const fn coalesce(mut self, policy: CoalescePolicy) -> Self {
        self.coalesce = Some(policy);
        self
    }

    /// Repeats calls.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Limits how fast calls may go.
    #[cfg(feature = "limit")]
    #[must_use]
    pub fn limit(mut self, policy: LimitPolicy) -> Self {
        self.limit = Some(policy);
        self
    }

    /// Lets one attempt take so long.
    #[must_use]
    pub fn attempt_timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.attempt_timeout = Some(policy);
        self
    }

    /// Puts the layers around `provisioner`.
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
