//! Backends that report terminating and terminated instances wrongly.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    Call,
    CloudInstanceState::{Pending, Stopped, Terminated, Terminating},
    Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    LaunchRecord, Operation, ProvisionError, Result,
};
use tokio::time::Instant;

use super::{CallContext, Override, described, lock};

/// Returns the error of a description that cannot be parsed.
fn unreadable(at: CallContext<'_>) -> ProvisionError {
    let call = at.call(Operation::DescribeInstance);
    call.unexpected(Effect::None, "no such state")
}

#[derive(Default)]
pub(super) struct DoesNotDescribeTerminating;

#[async_trait]
impl Override for DoesNotDescribeTerminating {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        match at.inner.describe_instance(id).await? {
            status if status.state == Terminating => Err(unreadable(at)),
            status => Ok(status),
        }
    }
}

/// Cannot describe a terminated instance any more after a stop of it.
#[derive(Default)]
pub(super) struct UnreadableAfterStop(Mutex<HashSet<InstanceId>>);

#[async_trait]
impl Override for UnreadableAfterStop {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let result = at.inner.stop_instance(id).await;
        if result.is_err() {
            lock(&self.0).insert(id.clone());
        }
        result
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        if lock(&self.0).contains(id) {
            return Err(unreadable(at));
        }
        at.inner.describe_instance(id).await
    }
}

/// Lists a terminated instance as stopped some time later, in lists of every state.
#[derive(Default)]
pub(super) struct StoppedAfterTerminate(Mutex<HashMap<InstanceId, Instant>>);

#[async_trait]
impl Override for StoppedAfterTerminate {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if status.state == Terminated {
            let now = Instant::now();
            lock(&self.0).entry(id.clone()).or_insert(now);
        }
        Ok(status)
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let ended = lock(&self.0);
        let long_ago = |time: &Instant| time.elapsed() > Duration::from_millis(500);
        for info in &mut list {
            if info.state == Terminated && ended.get(&info.id).is_some_and(long_ago) {
                info.state = Stopped;
            }
        }
        Ok(list)
    }
}

/// Sets the record to pending before it checks whether the token is spent.
#[derive(Default)]
pub(super) struct PendingAfterReplay(Mutex<HashSet<InstanceId>>);

#[async_trait]
impl Override for PendingAfterReplay {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        if let (Err(error), Some(token)) = (&result, &config.launch_token) {
            if error.kind() == ErrorKind::TokenSpent {
                if let LaunchRecord::Terminated(kept) = at.inner.find_launch(token).await? {
                    let ended = kept.into_iter().filter(|info| info.state == Terminated);
                    lock(&self.0).extend(ended.map(|info| info.id));
                }
            }
        }
        result
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let back = lock(&self.0).contains(id);
        let change = |status: &mut InstanceStatus| {
            if back {
                status.state = Pending;
            }
        };
        described(at, id, change).await
    }
}

/// Returns whether the memory cloud terminated an instance because its launch failed.
fn failed_late(status: &InstanceStatus) -> bool {
    let reason = status.state_reason.as_deref();
    status.state == Terminated && reason.is_some_and(|reason| reason != "terminated")
}

#[derive(Default)]
pub(super) struct DropsTheReason;

#[async_trait]
impl Override for DropsTheReason {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        described(at, id, |status| status.state_reason = None).await
    }
}

#[derive(Default)]
pub(super) struct ListsNoReasons;

#[async_trait]
impl Override for ListsNoReasons {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        for info in &mut list {
            info.state_reason = None;
        }
        Ok(list)
    }
}

#[derive(Default)]
pub(super) struct StaysPending;

#[async_trait]
impl Override for StaysPending {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let change = |status: &mut InstanceStatus| {
            if failed_late(status) {
                status.state = Pending;
            }
        };
        described(at, id, change).await
    }
}

/// Deletes the record of a failed launch.
#[derive(Default)]
pub(super) struct ForgetsFailedLaunches;

#[async_trait]
impl Override for ForgetsFailedLaunches {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if failed_late(&status) {
            return Err(Call::new("memory", Operation::DescribeInstance).not_found(id));
        }
        Ok(status)
    }
}
