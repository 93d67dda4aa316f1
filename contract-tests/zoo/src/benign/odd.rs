//! Unusual behaviour that no knob of the memory cloud has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    BoxStream, Call, Capabilities, CloudInstanceState, ConsoleSession, ErrorKind, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceStatus, InvalidValue,
    LaunchRecord, LaunchToken, ListItem, Operation, Problem, Reboot, Result, RetryAdvice,
    SnapshotRequest,
};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep};

use crate::{CallContext, Override};

fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists in another order each time.
#[derive(Default)]
pub(super) struct ShufflesLists(AtomicUsize);

#[async_trait]
impl Override for ShufflesLists {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
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

/// Throttles the first of every two calls of an operation, with a retry delay.
#[derive(Default)]
pub(super) struct Throttles(Mutex<BTreeMap<Operation, usize>>);

impl Throttles {
    fn pass(&self, operation: Operation) -> Result<()> {
        let mut calls = lock(&self.0);
        let count = calls.entry(operation).or_default();
        *count += 1;
        if *count % 2 == 1 {
            return Err(Call::new("memory", operation).throttled(Duration::from_millis(300)));
        }
        Ok(())
    }
}

#[async_trait]
impl Override for Throttles {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        self.pass(Operation::LaunchInstance)?;
        at.inner.launch_instance(config).await
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        self.pass(Operation::DescribeInstance)?;
        at.inner.describe_instance(id).await
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        self.pass(Operation::ListInstances)?;
        at.inner.list_instances(filter).await
    }
    async fn find_launch(&self, at: CallContext<'_>, token: &LaunchToken) -> Result<LaunchRecord> {
        self.pass(Operation::FindLaunch)?;
        at.inner.find_launch(token).await
    }
    async fn terminate_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        self.pass(Operation::TerminateInstance)?;
        at.inner.terminate_instance(id).await
    }
}

/// Reports neither reasons nor native states of running instances.
#[derive(Default)]
pub(super) struct NoReasons;

fn without_reasons(mut info: InstanceInfo) -> InstanceInfo {
    if info.native_state.as_deref() == Some("ACTIVE") {
        info.native_state = None;
        info.state_reason = None;
    }
    info
}

#[async_trait]
impl Override for NoReasons {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let list = at.inner.list_instances(filter).await?;
        Ok(list.into_iter().map(without_reasons).collect())
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let strip_reasons = |item: Result<ListItem>| {
            item.map(|item| match item {
                ListItem::Instance(info) => ListItem::from(without_reasons(*info)),
                gap @ ListItem::Gap { .. } => gap,
            })
        };
        at.inner.stream_instances(filter).map(strip_reasons).boxed()
    }
}

/// Starts a stopping instance by waiting until it has stopped.
#[derive(Default)]
pub(super) struct WaitsForStop;

#[async_trait]
impl Override for WaitsForStop {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
        loop {
            match at.inner.start_instance(id).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let delay = error.retry().delay().unwrap_or_default();
                    sleep(delay.max(Duration::from_millis(1))).await;
                }
                result => return result,
            }
        }
    }
}

/// Returns each item of a stream after a pause.
#[derive(Default)]
pub(super) struct SlowStream;

#[async_trait]
impl Override for SlowStream {
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let slowly = |item| async move {
            sleep(Duration::from_millis(250)).await;
            item
        };
        at.inner.stream_instances(filter).then(slowly).boxed()
    }
}

/// Resends a launch with a token by itself if its effect is unknown.
#[derive(Default)]
pub(super) struct ResendsWithToken;

#[async_trait]
impl Override for ResendsWithToken {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let result = at.inner.launch_instance(config).await;
        match &result {
            Err(error) if error.kind() == ErrorKind::Timeout && config.launch_token.is_some() => {
                at.inner.launch_instance(config).await
            }
            _ => result,
        }
    }
}

/// Accepts only tags of ASCII letters, digits, spaces, hyphens, underscores and dots.
#[derive(Default)]
pub(super) struct PlainTags;

#[async_trait]
impl Override for PlainTags {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let plain = |c: char| c.is_ascii_alphanumeric() || " -_.".contains(c);
        let mut texts = config.tags.iter().flat_map(|(key, value)| [key, value]);
        if texts.any(|text| !text.chars().all(plain)) {
            let instead = "letters, digits and spaces".to_owned();
            let value = InvalidValue::new("tags", Problem::NotOffered { instead });
            return Err(Call::new("memory", Operation::LaunchInstance).invalid(value));
        }
        at.inner.launch_instance(config).await
    }
}

/// Can launch from an image, or delete it, only some time after it was created.
#[derive(Default)]
pub(super) struct SlowImages(Mutex<BTreeMap<ImageId, Instant>>);

#[async_trait]
impl Override for SlowImages {
    async fn snapshot_image(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        request: &SnapshotRequest,
    ) -> Result<ImageId> {
        let image = at.inner.snapshot_image(id, request).await?;
        let mut created = lock(&self.0);
        created.entry(image.clone()).or_insert_with(Instant::now);
        Ok(image)
    }
    async fn delete_image(&self, at: CallContext<'_>, image: &ImageId) -> Result<()> {
        let created = lock(&self.0).get(image).copied();
        if created.is_some_and(|created| created.elapsed() < Duration::from_secs(40)) {
            let later = RetryAdvice::After(Duration::from_secs(10));
            let call = Call::new("memory", Operation::DeleteImage);
            return Err(call.conflict("the image is being created", later));
        }
        at.inner.delete_image(image).await
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let created = lock(&self.0).get(&config.image).copied();
        if created.is_some_and(|created| created.elapsed() < Duration::from_secs(40)) {
            let later = RetryAdvice::After(Duration::from_secs(10));
            let call = Call::new("memory", Operation::LaunchInstance);
            return Err(call.conflict("the image is being created", later));
        }
        at.inner.launch_instance(config).await
    }
}

/// Refuses a launch as a conflict with a retry delay while another one with its token is in progress.
#[derive(Default)]
pub(super) struct OneLaunchPerToken(Mutex<BTreeSet<LaunchToken>>);

/// Marks a launch as in progress until it is dropped.
struct InProgress<'a>(&'a Mutex<BTreeSet<LaunchToken>>, &'a LaunchToken);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}

#[async_trait]
impl Override for OneLaunchPerToken {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let Some(token) = &config.launch_token else {
            return at.inner.launch_instance(config).await;
        };
        if !lock(&self.0).insert(token.clone()) {
            let later = RetryAdvice::After(Duration::from_millis(50));
            let call = Call::new("memory", Operation::LaunchInstance);
            return Err(call.conflict("a launch with the token is in progress", later));
        }
        let _until_then = InProgress(&self.0, token);
        at.inner.launch_instance(config).await
    }
}

/// For how long the state before a change is still used.
const LAG: Duration = Duration::from_secs(2);

/// Decides about optional verbs by a state that may be as stale as its window allows.
#[derive(Default)]
pub(super) struct DecidesByStaleReads(Mutex<BTreeMap<InstanceId, Watched>>);

struct Watched {
    state: CloudInstanceState,
    before: CloudInstanceState,
    since: Instant,
}

impl DecidesByStaleReads {
    fn see(&self, status: &InstanceStatus) {
        let mut watched = lock(&self.0);
        let (state, since) = (status.state, Instant::now());
        let one = watched.entry(status.id.clone()).or_insert(Watched {
            state,
            before: CloudInstanceState::Pending,
            since,
        });
        if one.state != state {
            let before = one.state;
            *one = Watched {
                state,
                before,
                since,
            };
        }
    }

    fn runs(&self, operation: Operation, id: &InstanceId) -> Result<()> {
        let watched = lock(&self.0);
        let late = watched.get(id).filter(|one| one.since.elapsed() < LAG);
        match late.map(|one| one.before) {
            Some(CloudInstanceState::Running) | None => Ok(()),
            Some(before) => {
                let call = Call::new("memory", operation);
                Err(call.wrong_state(id, before, "running"))
            }
        }
    }
}

#[async_trait]
impl Override for DecidesByStaleReads {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.consistency_window = LAG;
        declared
    }
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        self.see(&status);
        Ok(status)
    }
    async fn console_session(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<ConsoleSession> {
        self.runs(Operation::ConsoleSession, id)?;
        at.inner.console_session(id).await
    }
    async fn reboot_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
        how: Reboot,
    ) -> Result<()> {
        self.runs(Operation::RebootInstance, id)?;
        at.inner.reboot_instance(id, how).await
    }
}

/// Refuses to stop an instance that does not run yet, with a retry delay.
#[derive(Default)]
pub(super) struct StopsOnlyRunning(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for StopsOnlyRunning {
    async fn describe_instance(
        &self,
        at: CallContext<'_>,
        id: &InstanceId,
    ) -> Result<InstanceStatus> {
        let status = at.inner.describe_instance(id).await?;
        if status.state != CloudInstanceState::Pending {
            lock(&self.0).insert(id.clone());
        }
        Ok(status)
    }
    async fn stop_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<()> {
        let ran = lock(&self.0).contains(id);
        let status = if ran {
            None
        } else {
            self.describe_instance(at, id).await.ok()
        };
        if status.is_some_and(|status| status.state == CloudInstanceState::Pending) {
            let retry = RetryAdvice::After(Duration::from_millis(200));
            let call = Call::new("memory", Operation::StopInstance);
            return Err(call.conflict("it is not running yet", retry));
        }
        at.inner.stop_instance(id).await
    }
}

/// Never lists terminated instances.
#[derive(Default)]
pub(super) struct NeverListsTerminated;

#[async_trait]
impl Override for NeverListsTerminated {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.terminated_listed = false;
        declared
    }
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let mut list = at.inner.list_instances(filter).await?;
        list.retain(|info| info.state != CloudInstanceState::Terminated);
        Ok(list)
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let alive = |item: &Result<ListItem>| {
            let terminated = matches!(item, Ok(ListItem::Instance(info)) if info.state == CloudInstanceState::Terminated);
            futures_util::future::ready(!terminated)
        };
        at.inner.stream_instances(filter).filter(alive).boxed()
    }
}
