//! Backends whose reads lag in another way than they declare.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use async_trait::async_trait;
use fleetwright::{
    Capabilities,
    CloudInstanceState::{Pending, Running, Stopped, Stopping},
    Effect, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus,
    Operation, Result,
};
use tokio::time::Instant;

use super::{CallContext, Override, lock};

#[derive(Default)]
pub(super) struct NotFoundIsAnOutage;

#[async_trait]
impl Override for NotFoundIsAnOutage {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let result = at.inner.describe_instance(id).await;
        result.map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return error;
            }
            let call = at.call(Operation::DescribeInstance);
            let window = at.inner.capabilities().consistency_window;
            let outage = call.unavailable(Effect::None, "not there yet");
            outage.retry_after(window)
        })
    }
}

/// Finds the launch of another handle only `SECONDS` seconds after it.
#[derive(Default)]
pub(super) struct HidesFreshLaunches<const SECONDS: u64>(
    Mutex<HashMap<InstanceId, (usize, Instant)>>,
);

#[async_trait]
impl<const SECONDS: u64> Override for HidesFreshLaunches<SECONDS> {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let info = at.inner.launch_instance(config).await?;
        let now = (at.handle, Instant::now());
        lock(&self.0).entry(info.id.clone()).or_insert(now);
        Ok(info)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let launched = lock(&self.0).get(id).copied();
        let lag = Duration::from_secs(SECONDS);
        let hidden = launched.filter(|(by, at_)| *by != at.handle && at_.elapsed() < lag);
        if hidden.is_some() {
            return Err(at.call(Operation::DescribeInstance).not_found(id));
        }
        at.inner.describe_instance(id).await
    }
}

/// Declares half of the cloud's consistency window.
#[derive(Default)]
pub(super) struct DeclaresHalfTheLag;

impl Override for DeclaresHalfTheLag {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.consistency_window /= 2;
        declared
    }
}

/// Lists a started instance from a copy that is refreshed rarely.
#[derive(Default)]
pub(super) struct ListsStartsLate(Mutex<HashMap<InstanceId, Instant>>);

#[async_trait]
impl Override for ListsStartsLate {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        let info = at.inner.start_instance(id).await?;
        lock(&self.0).insert(id.clone(), Instant::now());
        Ok(info)
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let started = lock(&self.0);
        let is_recent = |at: &Instant| at.elapsed() < Duration::from_secs(3);
        for info in &mut list {
            if info.state == Pending && started.get(&info.id).is_some_and(is_recent) {
                info.state = Stopped;
            }
        }
        Ok(list)
    }
}

/// Describes a stopped instance from a copy that is refreshed rarely.
#[derive(Default)]
pub(super) struct DescribesStopsLate(Mutex<HashMap<InstanceId, Instant>>);

#[async_trait]
impl Override for DescribesStopsLate {
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        at.inner.stop_instance(id).await?;
        lock(&self.0).insert(id.clone(), Instant::now());
        Ok(())
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut status = at.inner.describe_instance(id).await?;
        let stopped = lock(&self.0).get(id).copied();
        let is_recent = |at: Instant| at.elapsed() < Duration::from_secs(1);
        if status.state == Stopping && stopped.is_some_and(is_recent) {
            status.state = Running;
        }
        Ok(status)
    }
}

/// Declares half of the cloud's consistency window, and repeats reads until one returns new data.
#[derive(Default)]
pub(super) struct ReadsUntilFresh;

#[async_trait]
impl Override for ReadsUntilFresh {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        DeclaresHalfTheLag.capabilities(sound)
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let mut result = at.inner.describe_instance(id).await;
        for _ in 0..30 {
            if result.as_ref().ok().map(|status| status.state) == at.state(id) {
                break;
            }
            result = at.inner.describe_instance(id).await;
        }
        result
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        at.inner.list_instances(filter).await?;
        let all = at.harness.cloud().oracle().instances().into_iter();
        let infos = all.map(|truth| truth.info);
        Ok(infos.filter(|info| filter.matches(info)).collect())
    }
}
