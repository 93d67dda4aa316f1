//! An end to calls that never answer.
//!
//! Owns how long each call may take. A call that is cut off is dropped, which its backend must be
//! ready for, and what became of it is unknown.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::timeout;

use super::{Layer, Request};
use crate::{BoxStream, Effect, InstanceId, ListItem, Operation, Result};

/// How long calls may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutPolicy {
    each: Duration,
    by_operation: BTreeMap<Operation, Duration>,
}

impl TimeoutPolicy {
    /// Any call may take so long.
    pub const fn new(limit: Duration) -> Self {
        Self {
            each: limit,
            by_operation: BTreeMap::new(),
        }
    }

    /// A call of `operation` may take so long.
    #[must_use]
    pub fn with(mut self, operation: Operation, limit: Duration) -> Self {
        self.by_operation.insert(operation, limit);
        self
    }

    /// How long a call of `operation` may take.
    pub fn timeout(&self, operation: Operation) -> Duration {
        self.by_operation
            .get(&operation)
            .copied()
            .unwrap_or(self.each)
    }
}

/// Ends calls that take too long, as [timed out](crate::ErrorKind::Timeout): a launch or a change
/// with its effect unknown, a read without one. Of a stream, each item may take so long.
#[derive(Clone, Debug)]
pub struct Timeout {
    policy: TimeoutPolicy,
}

impl Timeout {
    /// Ends calls as `policy` says.
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
                Ok(answer) => answer,
                Err(_) => Err(request.call.timeout(Effect::Unknown)),
            }
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let limit = self.policy.timeout(request.operation());
            match timeout(limit, send(request.ids.to_vec())).await {
                Ok(answers) => answers,
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
