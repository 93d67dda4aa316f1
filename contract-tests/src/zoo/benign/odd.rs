//! Oddities that no knob of the memory cloud makes.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, ErrorKind, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo,
    InstanceStatus, LaunchRecord, LaunchToken, Operation, Result, Seen,
};
use futures_util::StreamExt as _;
use tokio::time::sleep;

use crate::zoo::{At, Twist};

/// Lists in another order each time.
#[derive(Default)]
pub(super) struct Shuffles(AtomicUsize);

#[async_trait]
impl Twist for Shuffles {
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        let turn = self.0.fetch_add(1, Ordering::SeqCst);
        list.reverse();
        let middle = turn % list.len().max(1);
        list.rotate_left(middle);
        Ok(list)
    }
}

/// Throttles the first of every two calls of an operation, with a time to come back.
#[derive(Default)]
pub(super) struct Throttles(Mutex<BTreeMap<Operation, usize>>);

impl Throttles {
    fn pass(&self, operation: Operation) -> Result<()> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(operation).or_default();
        *count += 1;
        if *count % 2 == 1 {
            return Err(Call::new("memory", operation).throttled(Duration::from_millis(300)));
        }
        Ok(())
    }
}

#[async_trait]
impl Twist for Throttles {
    async fn launch_instance(&self, at: At<'_>, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.pass(Operation::LaunchInstance)?;
        at.inner.launch_instance(config).await
    }
    async fn describe_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceStatus> {
        self.pass(Operation::DescribeInstance)?;
        at.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.pass(Operation::ListInstances)?;
        at.inner.list_instances(filter).await
    }
    async fn find_launch(&self, at: At<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        self.pass(Operation::FindLaunch)?;
        at.inner.find_launch(token).await
    }
    async fn terminate_instance(&self, at: At<'_>, id: &InstanceId) -> Result<()> {
        self.pass(Operation::TerminateInstance)?;
        at.inner.terminate_instance(id).await
    }
}

/// Tells neither reasons nor native states of what runs.
#[derive(Default)]
pub(super) struct Silent;

fn hushed(mut info: InstanceInfo) -> InstanceInfo {
    if info.native_state.as_deref() == Some("ACTIVE") {
        info.native_state = None;
        info.state_reason = None;
    }
    info
}

#[async_trait]
impl Twist for Silent {
    async fn list_instances(
        &self,
        at: At<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let list = at.inner.list_instances(filter).await?;
        Ok(list.into_iter().map(hushed).collect())
    }
    fn stream_instances<'a>(
        &'a self,
        at: At<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<Seen>> {
        let hush = |item: Result<Seen>| {
            item.map(|seen| match seen {
                Seen::Instance(info) => Seen::from(hushed(*info)),
                gap @ Seen::Gap { .. } => gap,
            })
        };
        at.inner.stream_instances(filter).map(hush).boxed()
    }
}

/// Starts a stopping instance by waiting until it has stopped.
#[derive(Default)]
pub(super) struct PatientStart;

#[async_trait]
impl Twist for PatientStart {
    async fn start_instance(&self, at: At<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        loop {
            match at.inner.start_instance(id).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let delay = error.retry().delay().unwrap_or_default();
                    sleep(delay.max(Duration::from_millis(1))).await;
                }
                answer => return answer,
            }
        }
    }
}

/// Answers each item of a stream only after a while.
#[derive(Default)]
pub(super) struct Drops;

#[async_trait]
impl Twist for Drops {
    fn stream_instances<'a>(
        &'a self,
        at: At<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<Seen>> {
        let slowly = |item| async move {
            sleep(Duration::from_millis(250)).await;
            item
        };
        at.inner.stream_instances(filter).then(slowly).boxed()
    }
}
