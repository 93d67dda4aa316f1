//! Oddities that no knob of the memory cloud makes.

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
pub(super) struct Shuffles(AtomicUsize);

#[async_trait]
impl Override for Shuffles {
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

/// Throttles the first of every two calls of an operation, with a time to come back.
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
impl Override for Silent {
    async fn list_instances(
        &self,
        at: CallContext<'_>,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceInfo>> {
        let list = at.inner.list_instances(filter).await?;
        Ok(list.into_iter().map(hushed).collect())
    }
    fn stream_instances<'a>(
        &'a self,
        at: CallContext<'a>,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        let hush = |item: Result<ListItem>| {
            item.map(|seen| match seen {
                ListItem::Instance(info) => ListItem::from(hushed(*info)),
                gap @ ListItem::Gap { .. } => gap,
            })
        };
        at.inner.stream_instances(filter).map(hush).boxed()
    }
}

/// Starts a stopping instance by waiting until it has stopped.
#[derive(Default)]
pub(super) struct PatientStart;

#[async_trait]
impl Override for PatientStart {
    async fn start_instance(&self, at: CallContext<'_>, id: &InstanceId) -> Result<InstanceInfo> {
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
impl Override for Drops {
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

/// Sends a launch again by itself when nobody knows what became of it.
#[derive(Default)]
pub(super) struct Repeats;

#[async_trait]
impl Override for Repeats {
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let answer = at.inner.launch_instance(config).await;
        match &answer {
            Err(error) if error.kind() == ErrorKind::Timeout && config.launch_token.is_some() => {
                at.inner.launch_instance(config).await
            }
            _ => answer,
        }
    }
}

/// Holds plain tags only.
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
        let mut words = config.tags.iter().flat_map(|(key, value)| [key, value]);
        if words.any(|word| !word.chars().all(plain)) {
            let instead = "letters, digits and spaces".to_owned();
            let value = InvalidValue::new("tags", Problem::NotOffered { instead });
            return Err(Call::new("memory", Operation::LaunchInstance).invalid(value));
        }
        at.inner.launch_instance(config).await
    }
}

/// Can launch from an image only a while after it was made.
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
        let mut made = lock(&self.0);
        made.entry(image.clone()).or_insert_with(Instant::now);
        Ok(image)
    }
    async fn launch_instance(
        &self,
        at: CallContext<'_>,
        config: &InstanceConfig,
    ) -> Result<InstanceInfo> {
        let made = lock(&self.0).get(&config.image).copied();
        if made.is_some_and(|made| made.elapsed() < Duration::from_secs(40)) {
            let later = RetryAdvice::After(Duration::from_secs(10));
            let call = Call::new("memory", Operation::LaunchInstance);
            return Err(call.conflict("the image is being made", later));
        }
        at.inner.launch_instance(config).await
    }
}

/// Lets who launches with a token that is under way come back later.
#[derive(Default)]
pub(super) struct OneByOne(Mutex<BTreeSet<LaunchToken>>);

/// A launch, for as long as somebody waits for it.
struct UnderWay<'a>(&'a Mutex<BTreeSet<LaunchToken>>, &'a LaunchToken);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}

#[async_trait]
impl Override for OneByOne {
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
            return Err(call.conflict("a launch with the token is under way", later));
        }
        let _until_then = UnderWay(&self.0, token);
        at.inner.launch_instance(config).await
    }
}

/// For how long the state before a change is still taken for the state.
const LATE: Duration = Duration::from_secs(2);

/// Judges optional verbs by a state that may be out of date, as far as its window allows.
#[derive(Default)]
pub(super) struct LateJudge(Mutex<BTreeMap<InstanceId, Watched>>);

struct Watched {
    state: CloudInstanceState,
    before: CloudInstanceState,
    since: Instant,
}

impl LateJudge {
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
        let late = watched.get(id).filter(|one| one.since.elapsed() < LATE);
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
impl Override for LateJudge {
    fn capabilities(&self, sound: &Capabilities) -> Capabilities {
        let mut declared = sound.clone();
        declared.consistency_window = LATE;
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

/// Tells who wants to stop what is not running yet to come back.
#[derive(Default)]
pub(super) struct StopsWhatRuns(Mutex<BTreeSet<InstanceId>>);

#[async_trait]
impl Override for StopsWhatRuns {
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
        let seen = if ran {
            None
        } else {
            self.describe_instance(at, id).await.ok()
        };
        if seen.is_some_and(|status| status.state == CloudInstanceState::Pending) {
            let retry = RetryAdvice::After(Duration::from_millis(200));
            let call = Call::new("memory", Operation::StopInstance);
            return Err(call.conflict("it is not running yet", retry));
        }
        at.inner.stop_instance(id).await
    }
}

/// Lists what is terminated to nobody.
#[derive(Default)]
pub(super) struct Discreet;

#[async_trait]
impl Override for Discreet {
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
            let gone = matches!(item, Ok(ListItem::Instance(info)) if info.state == CloudInstanceState::Terminated);
            futures_util::future::ready(!gone)
        };
        at.inner.stream_instances(filter).filter(alive).boxed()
    }
}
