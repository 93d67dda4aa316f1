//! The handle that clauses call. It records every call, and turns panics and calls that never
//! return into violations.
//!
//! Owns the lines of calls in the transcript. It never changes what a backend returns, except that it
//! retries throttled calls: any call may be throttled at any time, and no clause should have to
//! expect it. It does not retry throttling that the clause injects and announces.
//!
//! A line of the transcript is `handle <number>: <call>(<arguments>) -> <result>`. The message of a
//! violation has these lines up to the violation; what the cleanup does after it is not recorded.
//!
//! A call that does not return within the harness's budget, one that panics, and a stream that does not
//! end fail the clause whatever the clause makes of it: the recorder returns an unexpected error in
//! its place or ends the stream, so that the clause can end, and the runner replaces the clause's
//! outcome. So no loop of a clause over the results of a backend runs for ever.

mod stream;

use std::{
    fmt, future::Future, num::NonZeroU32, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ErrorKind,
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, ProvisionError,
    Reboot, Result, SnapshotRequest, TagChange,
};
use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, timeout};

use fleetwright_clause_engine::panic_message;

use crate::{
    OWNER_TAG, SCOPE_TAG,
    poll_limit::limit_polls,
    shown::{Shown, shown_config},
    transcript::Transcript,
};

/// The most attempts of a throttled call. The result of the last one is returned as it is.
const MAX_ATTEMPTS: u32 = 100;

/// The pauses before the attempts of a throttled call are together at most this part of the budget.
const MAX_WAITING: u32 = 5;

/// A handle whose calls are recorded.
pub(crate) struct Recorder {
    inner: Arc<dyn InstanceProvisioner>,
    transcript: Transcript,
    handle: usize,
    budget: Duration,
}

impl Recorder {
    /// Wraps a handle. `budget` is the timeout of each call.
    pub(crate) fn new(
        inner: Arc<dyn InstanceProvisioner>,
        transcript: Transcript,
        budget: Duration,
    ) -> Self {
        let handle = transcript.next_handle();
        Self {
            inner,
            transcript,
            handle,
            budget,
        }
    }

    /// Makes a call, records it with its result, and catches panics and timeouts. A throttled call is
    /// retried as the backend advises, since any call may be throttled.
    async fn call<T, F: Future<Output = T> + Send>(
        &self,
        operation: Operation,
        arguments: &str,
        make: impl Fn() -> F + Send,
        show: impl Fn(&T) -> (String, Option<Duration>) + Send,
        refuse: impl FnOnce(ProvisionError) -> T + Send,
    ) -> T {
        let name = format!("handle {}: {operation}({arguments})", self.handle);
        let (mut attempts, mut waited) = (0, Duration::ZERO);
        let (start, message) = loop {
            let start = Instant::now();
            let caught = AssertUnwindSafe(make()).catch_unwind();
            let caught = timeout(self.budget, limit_polls(caught)).await;
            let result = match caught {
                Ok(Some(Ok(result))) => result,
                Ok(Some(Err(panic))) => {
                    let message = format!("{name} panicked: {}", panic_message(&*panic));
                    break (start, message);
                }
                Ok(None) => {
                    let message = format!("{name} never returns, and never waits either");
                    self.transcript.record_timeout(start, message.clone());
                    break (start, message);
                }
                Err(_) => {
                    let message = format!("{name} did not return within {:?}", self.budget);
                    self.transcript.record_timeout(start, message.clone());
                    break (start, message);
                }
            };
            let (shown, throttled) = show(&result);
            self.transcript
                .note_since(start, format!("{name} -> {shown}"));
            attempts += 1;
            let Some(delay) = throttled else {
                return result;
            };
            waited += delay;
            let is_last = attempts >= MAX_ATTEMPTS || waited > self.budget / MAX_WAITING;
            if is_last || self.transcript.is_injected(delay) {
                return result;
            }
            sleep(delay).await;
        };
        self.transcript.record_violation(start, message.clone());
        let call = Call::new(self.inner.capabilities().provider.as_str(), operation);
        refuse(call.unexpected(Effect::Unknown, &message))
    }

    /// Makes a call with one result; `show` describes a success.
    async fn one<T: fmt::Debug, F: Future<Output = Result<T>> + Send>(
        &self,
        operation: Operation,
        arguments: &str,
        make: impl Fn() -> F + Send,
        show: impl Fn(&T) -> String + Send,
    ) -> Result<T> {
        let shown = move |result: &Result<T>| match result {
            Ok(value) => (show(value), None),
            Err(error) => (format!("error: {error}"), throttled(error)),
        };
        self.call(operation, arguments, make, shown, Err).await
    }

    /// Makes a batch call. The transcript has the number of successes and errors; the throttled items are
    /// retried together, after the longest of their delays.
    async fn many<T: Send, F: Future<Output = Vec<Result<T>>> + Send>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
        make: impl Fn(Vec<InstanceId>) -> F + Send + Sync,
    ) -> Vec<Result<T>> {
        let mut results = self.batch(operation, ids, &make).await;
        let (mut attempts, mut waited) = (1, Duration::ZERO);
        loop {
            let delays = results
                .iter()
                .map(|result| throttled(result.as_ref().err()?));
            let (items, delays): (Vec<_>, Vec<_>) = delays
                .enumerate()
                .filter_map(|(item, delay)| Some((item, delay?)))
                .unzip();
            let Some(delay) = delays.into_iter().max() else {
                return results;
            };
            attempts += 1;
            waited += delay;
            // A backend that returns another number of results breaks a promise; its clause says so.
            let complete = results.len() == ids.len();
            let is_last = attempts > MAX_ATTEMPTS || waited > self.budget / MAX_WAITING;
            if is_last || !complete || self.transcript.is_injected(delay) {
                return results;
            }
            sleep(delay).await;
            let again: Vec<_> = items.iter().map(|item| ids[*item].clone()).collect();
            for (item, result) in items
                .into_iter()
                .zip(self.batch(operation, &again, &make).await)
            {
                results[item] = result;
            }
        }
    }

    /// Makes a batch call once.
    async fn batch<T: Send, F: Future<Output = Vec<Result<T>>> + Send>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
        make: &(impl Fn(Vec<InstanceId>) -> F + Send + Sync),
    ) -> Vec<Result<T>> {
        let shown = |results: &Vec<Result<T>>| {
            let errors: Vec<_> = results
                .iter()
                .filter_map(|result| result.as_ref().err())
                .collect();
            let first = errors
                .first()
                .map(|error| format!("; first {}", error.shown()));
            let (ok, failed) = (results.len() - errors.len(), errors.len());
            let first = first.unwrap_or_default();
            (format!("{ok} ok, {failed} errors{first}"), None)
        };
        let refuse = |error: ProvisionError| ids.iter().map(|_| Err(error.clone())).collect();
        let make = || make(ids.to_vec());
        self.call(operation, &ids.shown(), make, shown, refuse)
            .await
    }
}

/// Returns how long a throttled call has to wait, or `None` for any other error.
fn throttled(error: &ProvisionError) -> Option<Duration> {
    let is_throttled = error.kind() == ErrorKind::Throttled && error.effect() == Effect::None;
    error.retry().delay().filter(|_| is_throttled)
}

/// Describes a filter for a line. The tags of the clause's scope are long and say nothing.
fn shown_filter(filter: &InstanceFilter) -> String {
    let is_scope = |key: &str| key == OWNER_TAG || key == SCOPE_TAG;
    let mut parts = Vec::new();
    if filter.tags.get(SCOPE_TAG).is_some() {
        parts.push("of this clause".to_owned());
    }
    let others = filter.tags.iter().filter(|(key, _)| !is_scope(key));
    parts.extend(others.map(|(key, value)| format!("{key}={value}")));
    parts.extend(filter.states.iter().map(ToString::to_string));
    if parts.is_empty() {
        parts.push("all".to_owned());
    }
    parts.join(", ")
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({:?})", self.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Recorder {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let call = || self.inner.launch_instance(config);
        self.one(
            Operation::LaunchInstance,
            &shown_config(config),
            call,
            Shown::shown,
        )
        .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let call = || self.inner.terminate_instance(id);
        self.one(Operation::TerminateInstance, id.as_str(), call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let call = || self.inner.stop_instance(id);
        self.one(Operation::StopInstance, id.as_str(), call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let call = || self.inner.start_instance(id);
        self.one(Operation::StartInstance, id.as_str(), call, Shown::shown)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let call = || self.inner.describe_instance(id);
        self.one(Operation::DescribeInstance, id.as_str(), call, Shown::shown)
            .await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let call = || self.inner.list_instances(filter);
        let show = |list: &Vec<InstanceInfo>| format!("{} instances", list.len());
        self.one(Operation::ListInstances, &shown_filter(filter), call, show)
            .await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let call = || self.inner.find_launch(token);
        self.one(Operation::FindLaunch, token.as_str(), call, Shown::shown)
            .await
    }

    async fn account_id(&self) -> Result<Option<AccountId>> {
        let call = || self.inner.account_id();
        let show = |account: &Option<AccountId>| {
            account
                .as_ref()
                .map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        self.one(Operation::AccountId, "", call, show).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let call = || self.inner.launch_instances(config, count);
        let show = |list: &Vec<InstanceInfo>| format!("{} instances", list.len());
        let arguments = format!("{}, count {count}", shown_config(config));
        self.one(Operation::LaunchInstances, &arguments, call, show)
            .await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let call = |ids: Vec<_>| async move { self.inner.terminate_instances(&ids).await };
        self.many(Operation::TerminateInstances, ids, call).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let call = |ids: Vec<_>| async move { self.inner.stop_instances(&ids).await };
        self.many(Operation::StopInstances, ids, call).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let call = |ids: Vec<_>| async move { self.inner.start_instances(&ids).await };
        self.many(Operation::StartInstances, ids, call).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let call = |ids: Vec<_>| async move { self.inner.describe_instances(&ids).await };
        self.many(Operation::DescribeInstances, ids, call).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        stream::guarded(self, filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        let call = || self.inner.update_tags(id, change);
        self.one(Operation::UpdateTags, id.as_str(), call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        let call = || self.inner.reboot_instance(id, how);
        self.one(Operation::RebootInstance, id.as_str(), call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        let call = || self.inner.resize_instance(id, to);
        let arguments = format!("{id} to {to}");
        self.one(Operation::ResizeInstance, &arguments, call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        let call = || self.inner.reimage_instance(id, image);
        let arguments = format!("{id} from {image}");
        self.one(Operation::ReimageInstance, &arguments, call, |()| {
            "ok".to_owned()
        })
        .await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let call = || self.inner.console_output(id);
        let show = |output: &ConsoleOutput| format!("{} bytes", output.text.len());
        self.one(Operation::ConsoleOutput, id.as_str(), call, show)
            .await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let call = || self.inner.console_session(id);
        self.one(Operation::ConsoleSession, id.as_str(), call, |_| {
            "a session".to_owned()
        })
        .await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        let call = || self.inner.snapshot_image(id, request);
        let arguments = format!("{id} as {}", request.name);
        self.one(
            Operation::SnapshotImage,
            &arguments,
            call,
            ToString::to_string,
        )
        .await
    }

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        let call = || self.inner.delete_image(image);
        self.one(Operation::DeleteImage, image.as_str(), call, |()| {
            "ok".to_owned()
        })
        .await
    }
}
