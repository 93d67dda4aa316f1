//! Terminating, stopping and starting, with one implementation of everything around the native call.
//!
//! Owns two rules: an id that is given twice is changed once, and a recent launch is waited for. It never
//! sends a change again that may have had an effect.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fleetwright::{
    Call, InstanceId, InstanceInfo, Operation, ProvisionError, Result, RetryAdvice, Scope,
};
use futures_util::future::{BoxFuture, join_all};

use crate::{
    ReadInstances,
    batch::{deduplicate, replace_successes, results_in_order, single_result},
};

/// A change of the power state of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Terminate.
    Terminate,
    /// Stop.
    Stop,
    /// Start.
    Start,
}

impl Change {
    /// Returns the state that the change needs, for errors.
    pub const fn needed_state(self) -> &'static str {
        match self {
            Self::Terminate => "not terminated",
            Self::Stop => "running",
            Self::Start => "stopped",
        }
    }
}

/// A backend that changes many instances with few native calls. It implements the native calls once, in
/// [`change_once`](Self::change_once), and gets the rest. `change.rs` of the EC2 provider is an example.
#[async_trait]
pub trait ChangeInstances: ReadInstances + Sized {
    /// Changes instances with as few native calls as possible. Each id is given once. Returns one result for
    /// each id, in the same order.
    async fn change_once(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>>;

    /// Changes instances, each once, and waits for recent launches of this handle to be found.
    async fn change_all(
        &self,
        operation: Operation,
        change: Change,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.change_once(operation, change, &ids).await })
        };
        let unique = deduplicate(ids);
        let (launches, capabilities) = (self.recent_launches(), self.capabilities());
        let results = launches.retry_not_found(&unique, capabilities, send).await;
        let results: BTreeMap<_, _> = unique.into_iter().zip(results).collect();
        let call = self.call(operation);
        results_in_order(ids, &results, |id| self.not_found_yet(&call, id))
    }

    /// Changes one instance.
    async fn change_one(
        &self,
        operation: Operation,
        change: Change,
        id: &InstanceId,
    ) -> Result<()> {
        let send = |ids: Vec<InstanceId>| -> BoxFuture<'_, _> {
            Box::pin(async move { self.change_once(operation, change, &ids).await })
        };
        let (launches, capabilities) = (self.recent_launches(), self.capabilities());
        let results = launches
            .retry_not_found(std::slice::from_ref(id), capabilities, send)
            .await;
        let missing = || single_result(&self.call(operation), Vec::new());
        results.into_iter().next().unwrap_or_else(missing)
    }

    /// Starts one instance, and reads it after the start.
    async fn start_one(&self, operation: Operation, id: &InstanceId) -> Result<InstanceInfo> {
        self.change_one(operation, Change::Start, id).await?;
        self.describe_started(operation, id).await
    }

    /// Starts instances, and reads those that were started.
    async fn start_all(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let results = self.change_all(operation, Change::Start, ids).await;
        let started = ids
            .iter()
            .zip(&results)
            .filter(|(_, result)| result.is_ok());
        let started: Vec<_> = started.map(|(id, _)| id.clone()).collect();
        let infos = self.describe_all_started(operation, &started).await;
        replace_successes(&self.call(operation), results, infos)
    }

    /// Reads instances that were just started, one by one. A backend that reads many with one native call
    /// overrides it.
    async fn describe_all_started(
        &self,
        operation: Operation,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let reads = ids.iter().map(|id| self.describe_started(operation, id));
        join_all(reads).await
    }

    /// Returns the error for an instance that refuses a change because it is between two states. A retry
    /// after the poll interval can succeed.
    fn between_states(&self, call: &Call, id: &InstanceId) -> ProvisionError {
        let message = format!("instance {id} is changing its state; retry when it has changed");
        let retry = RetryAdvice::After(self.capabilities().poll_interval);
        call.conflict(&message, retry)
            .with_scope(Scope::Instance(id.clone()))
    }
}
