//! Ends calls that take too long.
//!
//! Owns how long each call may take. A call that times out is dropped, and its outcome is unknown
//! unless it was a read.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::timeout;

use super::{Layer, Request};
use crate::{BoxStream, Effect, InstanceId, ListItem, Operation, Result};

/// How long calls may take, by operation.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::{Operation, layer::TimeoutPolicy};
///
/// let policy = TimeoutPolicy::new(Duration::from_secs(60))
///     .with(Operation::ListInstances, Duration::from_secs(180));
/// assert_eq!(policy.timeout(Operation::ListInstances), Duration::from_secs(180));
/// assert_eq!(policy.timeout(Operation::LaunchInstance), Duration::from_secs(60));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutPolicy {
    default: Duration,
    by_operation: BTreeMap<Operation, Duration>,
}

impl TimeoutPolicy {
    /// Sets the timeout of every call.
    pub const fn new(timeout: Duration) -> Self {
        Self {
            default: timeout,
            by_operation: BTreeMap::new(),
        }
    }

    /// Sets the timeout of `operation` only. A single call and its batch are two operations here.
    #[must_use]
    pub fn with(mut self, operation: Operation, timeout: Duration) -> Self {
        self.by_operation.insert(operation, timeout);
        self
    }

    /// Returns the timeout of `operation`.
    pub fn timeout(&self, operation: Operation) -> Duration {
        self.by_operation
            .get(&operation)
            .copied()
            .unwrap_or(self.default)
    }
}

/// Ends calls that take too long with the error kind [`Timeout`](crate::ErrorKind::Timeout).
///
/// The effect of a launch or change that timed out is unknown; a read has none. In a stream, the
/// timeout applies to each item, and a timeout ends the stream.
///
/// ```
/// use std::time::Duration;
/// use fleetwright::layer::{Layered, Timeout, TimeoutPolicy};
/// use fleetwright_memory::MemoryCloud;
///
/// let timeout = Timeout::new(TimeoutPolicy::new(Duration::from_secs(60)));
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), timeout);
/// ```
#[derive(Clone, Debug)]
pub struct Timeout {
    policy: TimeoutPolicy,
}

impl Timeout {
    /// Creates a layer with the timeouts of `policy`.
    pub const fn new(policy: TimeoutPolicy) -> Self {
        Self { policy }
    }
}

impl Layer for Timeout {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let limit = self.policy.timeout(request.operation());
            match timeout(limit, send()).await {
                Ok(result) => result,
                Err(_) => Err(request.call.timeout(Effect::Unknown)),
            }
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let limit = self.policy.timeout(request.operation());
            match timeout(limit, send(Cow::Borrowed(request.ids))).await {
                Ok(results) => results,
                Err(_) => {
                    let error = request.call.timeout(Effect::Unknown);
                    request.ids.iter().map(|_| Err(error.clone())).collect()
                }
            }
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let limit = self.policy.timeout(request.operation());
        let call = request.call;
        stream::unfold(Some(open()), move |items| {
            let call = call.clone();
            async move {
                let mut items = items?;
                match timeout(limit, items.next()).await {
                    Ok(Some(item)) => Some((item, Some(items))),
                    Ok(None) => None,
                    Err(_) => Some((Err(call.timeout(Effect::None)), None)),
                }
            }
        })
        .boxed()
    }
}
