//! Batches of existing instances: described, stopped, started and terminated.

use async_trait::async_trait;
use fleetwright::{
    Call, Effect, ErrorKind, InstanceId, InstanceInfo, InstanceStatus, Operation, ProvisionError,
    Result,
};

use crate::{CallContext, Override};

/// Returns the refusal of an id that no instance has.
fn not_found(operation: Operation, id: &InstanceId) -> ProvisionError {
    Call::new("memory", operation).not_found(id)
}

/// Returns the first of `ids` that no instance has.
fn missing<'a>(at: CallContext<'_>, ids: &'a [InstanceId]) -> Option<&'a InstanceId> {
    let oracle = at.harness.cloud().oracle();
    ids.iter().find(|id| oracle.instance(id).is_none())
}

#[derive(Default)]
pub(super) struct FailsWholeDescriptions;

#[async_trait]
impl Override for FailsWholeDescriptions {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        if let Some(missing) = missing(at, ids) {
            let error = not_found(Operation::DescribeInstances, missing);
            return ids.iter().map(|_| Err(error.clone())).collect();
        }
        at.inner.describe_instances(ids).await
    }
}

#[derive(Default)]
pub(super) struct LeavesMissingOut;

#[async_trait]
impl Override for LeavesMissingOut {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        results.retain(Result::is_ok);
        results
    }
}

/// Returns found instances in the cloud's order, and missing ones at their requested position.
#[derive(Default)]
pub(super) struct DescribesInItsOrder;

#[async_trait]
impl Override for DescribesInItsOrder {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let mut results = at.inner.describe_instances(ids).await;
        let mut found: Vec<_> = results.iter().flatten().cloned().collect();
        found.sort_by(|a, b| b.id.cmp(&a.id));
        for result in &mut results {
            if result.is_ok() {
                *result = found.pop().map_or_else(|| result.clone(), Ok);
            }
        }
        results
    }
}

#[derive(Default)]
pub(super) struct FailsWholeTerminations;

#[async_trait]
impl Override for FailsWholeTerminations {
    async fn terminate_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<()>> {
        if let Some(missing) = missing(at, ids) {
            let error = not_found(Operation::TerminateInstances, missing);
            return ids.iter().map(|_| Err(error.clone())).collect();
        }
        at.inner.terminate_instances(ids).await
    }
}

#[derive(Default)]
pub(super) struct StopsUntilFailure;

#[async_trait]
impl Override for StopsUntilFailure {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        let mut results: Vec<Result<()>> = Vec::new();
        for id in ids {
            let failed = results.last().and_then(|last| last.clone().err());
            results.push(match failed {
                Some(error) => Err(error),
                None => at.inner.stop_instance(id).await,
            });
        }
        results
    }
}

#[derive(Default)]
pub(super) struct FailsWholeStarts;

#[async_trait]
impl Override for FailsWholeStarts {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        if let Some(missing) = missing(at, ids) {
            let error = not_found(Operation::StartInstances, missing);
            return ids.iter().map(|_| Err(error.clone())).collect();
        }
        at.inner.start_instances(ids).await
    }
}

#[derive(Default)]
pub(super) struct DescribesOneBatch;

#[async_trait]
impl Override for DescribesOneBatch {
    async fn describe_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceStatus>> {
        let most = at.inner.capabilities().batch_size.get();
        at.inner
            .describe_instances(&ids[..ids.len().min(most)])
            .await
    }
}

/// Starts nothing of a batch if there is no capacity for one of its items.
#[derive(Default)]
pub(super) struct StartsAllOrNothing;

#[async_trait]
impl Override for StartsAllOrNothing {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let results = at.inner.start_instances(ids).await;
        let capacity = |error: &&ProvisionError| error.kind() == ErrorKind::Capacity;
        let Some(error) = results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .find(capacity)
        else {
            return results;
        };
        for (id, result) in ids.iter().zip(&results) {
            if result.is_ok() {
                // As if it had never been started.
                let _ = at.inner.stop_instance(id).await;
            }
        }
        ids.iter().map(|_| Err(error.clone())).collect()
    }
}

/// Reports missing capacity at a start as if the instance might have been started.
#[derive(Default)]
pub(super) struct UnknownStartEffect;

#[async_trait]
impl Override for UnknownStartEffect {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        let results = at.inner.start_instances(ids).await;
        let unknown = |error: ProvisionError| {
            if error.kind() == ErrorKind::Capacity {
                error.with_effect(Effect::Unknown)
            } else {
                error
            }
        };
        results
            .into_iter()
            .map(|result| result.map_err(unknown))
            .collect()
    }
}

/// Returns the refusal of the first of `ids` that is terminating or terminated.
fn ended(at: CallContext<'_>, operation: Operation, ids: &[InstanceId]) -> Option<ProvisionError> {
    let ended = ids.iter().find_map(|id| {
        let state = at.state(id)?;
        state.is_ending().then_some((id, state))
    });
    ended.map(|(id, state)| at.call(operation).wrong_state(id, state, "not terminated"))
}

#[derive(Default)]
pub(super) struct FailsWholeStopsByState;

#[async_trait]
impl Override for FailsWholeStopsByState {
    async fn stop_instances(&self, at: CallContext<'_>, ids: &[InstanceId]) -> Vec<Result<()>> {
        match ended(at, Operation::StopInstances, ids) {
            Some(error) => ids.iter().map(|_| Err(error.clone())).collect(),
            None => at.inner.stop_instances(ids).await,
        }
    }
}

#[derive(Default)]
pub(super) struct FailsWholeStartsByState;

#[async_trait]
impl Override for FailsWholeStartsByState {
    async fn start_instances(
        &self,
        at: CallContext<'_>,
        ids: &[InstanceId],
    ) -> Vec<Result<InstanceInfo>> {
        match ended(at, Operation::StartInstances, ids) {
            Some(error) => ids.iter().map(|_| Err(error.clone())).collect(),
            None => at.inner.start_instances(ids).await,
        }
    }
}
