//! How the operations that [`Coalesce`](super::Coalesce) combines are sent.

use futures_util::future::BoxFuture;

use super::Request;
use crate::{InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, Operation, Result};

/// A function that sends a call: for one instance or for many.
type SendFn<Target, Output> =
    for<'a> fn(&'a dyn InstanceProvisioner, &'a Target) -> BoxFuture<'a, Output>;

/// How one operation is sent, alone and as a batch.
pub(super) struct Senders<T> {
    /// The operation of a call for one instance.
    pub(super) single: Operation,
    /// The operation of a call for many.
    pub(super) batch: Operation,
    pub(super) one: SendFn<InstanceId, Result<T>>,
    pub(super) many: SendFn<[InstanceId], Vec<Result<T>>>,
}

impl<T> Clone for Senders<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Senders<T> {}

pub(super) const DESCRIBE: Senders<InstanceStatus> = Senders {
    single: Operation::DescribeInstance,
    batch: Operation::DescribeInstances,
    one: |inner, id| inner.describe_instance(id),
    many: |inner, ids| inner.describe_instances(ids),
};

pub(super) const STOP: Senders<()> = Senders {
    single: Operation::StopInstance,
    batch: Operation::StopInstances,
    one: |inner, id| inner.stop_instance(id),
    many: |inner, ids| inner.stop_instances(ids),
};

pub(super) const START: Senders<InstanceInfo> = Senders {
    single: Operation::StartInstance,
    batch: Operation::StartInstances,
    one: |inner, id| inner.start_instance(id),
    many: |inner, ids| inner.start_instances(ids),
};

pub(super) const TERMINATE: Senders<()> = Senders {
    single: Operation::TerminateInstance,
    batch: Operation::TerminateInstances,
    one: |inner, id| inner.terminate_instance(id),
    many: |inner, ids| inner.terminate_instances(ids),
};

/// Who must retry a failed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryOwner {
    /// Nobody: the layer below has already retried it as often as it may.
    Below,
    /// Its own caller, because other items of the batch succeeded or it was sent without retries.
    Caller,
}

/// Sends a batch of at least two instances, and returns its results and who must retry those that
/// failed.
pub(super) async fn send_batch<T>(
    request: &Request<'_>,
    senders: Senders<T>,
    provisioner: &dyn InstanceProvisioner,
) -> (Vec<Result<T>>, RetryOwner) {
    let results = (senders.many)(provisioner, request.ids).await;
    let results = request.one_result_per_id(request.ids.len(), results);
    let owner = if results.iter().any(Result::is_ok) {
        RetryOwner::Caller
    } else {
        RetryOwner::Below
    };
    (results, owner)
}
