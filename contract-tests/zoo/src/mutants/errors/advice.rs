//! Backends that advise to retry a call for an instance that does not exist.

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    ErrorKind, InstanceConfig, InstanceId, InstanceInfo, InstanceStatus, Operation, Result,
};

use super::{super::token::lock, CallContext, Override};

/// The calls of [`AdvisesRetry`].
const OPERATIONS: [Operation; 8] = [
    Operation::DescribeInstance,
    Operation::StartInstance,
    Operation::StopInstance,
    Operation::TerminateInstance,
    Operation::DescribeInstances,
    Operation::StartInstances,
    Operation::StopInstances,
    Operation::TerminateInstances,
];

/// Advises a retry with not found of one of the [`OPERATIONS`].
#[derive(Default)]
pub(super) struct AdvisesRetry<const OPERATION: usize>;

/// Adds advice to retry to not found of `operation`.
fn advise<T>(result: Result<T>, operation: Operation) -> Result<T> {
    result.map_err(|error| {
        let is_meant = error.operation() == operation && error.kind() == ErrorKind::NotFound;
        if is_meant {
            error.retry_after(Duration::from_secs(5))
        } else {
            error
        }
    })
}

/// Adds the advice to each item of a batch.
fn advise_each<T>(results: Vec<Result<T>>, operation: Operation) -> Vec<Result<T>> {
    let each = results.into_iter();
    each.map(|result| advise(result, operation)).collect()
}

#[async_trait]
impl<const OPERATION: usize> Override for AdvisesRetry<OPERATION> {
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        advise(at.inner.terminate_instance(id).await, OPERATIONS[OPERATION])
    }
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        advise(at.inner.stop_instance(id).await, OPERATIONS[OPERATION])
    }
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        advise(at.inner.start_instance(id).await, OPERATIONS[OPERATION])
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        advise(at.inner.describe_instance(id).await, OPERATIONS[OPERATION])
    }
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        let results = at.inner.terminate_instances(ids).await;
        advise_each(results, OPERATIONS[OPERATION])
    }
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        let results = at.inner.stop_instances(ids).await;
        advise_each(results, OPERATIONS[OPERATION])
    }
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let results = at.inner.start_instances(ids).await;
        advise_each(results, OPERATIONS[OPERATION])
    }
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let results = at.inner.describe_instances(ids).await;
        advise_each(results, OPERATIONS[OPERATION])
    }
}

/// Treats every instance that it launched as recent, without end.
#[derive(Default)]
pub(super) struct AdvisesRetryForGone(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for AdvisesRetryForGone {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        lock(&self.0).insert(info.id.clone());
        Ok(info)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let result = at.inner.describe_instance(id).await;
        if lock(&self.0).contains(id) {
            return advise(result, Operation::DescribeInstance);
        }
        result
    }
}
