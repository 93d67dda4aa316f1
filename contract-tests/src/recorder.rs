//! The handle that clauses call. It records every call, and turns panics and calls that never
//! return into violations.
//!
//! Owns the transcript. It never changes what a backend returns, except that it retries throttled
//! calls: any call may be throttled at any time, and no clause should have to expect it.
//!
//! A line of the transcript is `handle <number>: <call>(<arguments>) -> <result>`, where handles
//! are numbered in the order in which the clause opened them. Equal lines that follow each other
//! are counted. The message of a violation has these lines up to the violation; what the cleanup
//! does after it is not recorded.
//!
//! A call that does not return within the harness's budget, and one that panics, fails the clause
//! whatever the clause makes of it: the recorder returns an unexpected error in its place, so that
//! the clause can end, and the runner replaces the clause's outcome.

use std::{
    fmt,
    future::Future,
    num::NonZeroU32,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use fleetwright::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ErrorKind,
    ImageId, InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner,
    InstanceStatus, InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, ProvisionError,
    Reboot, Result, SnapshotRequest, TagChange,
};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use fleetwright_clause_engine::panic_message;

use crate::DetectedBy;

/// The calls of all handles of one clause, in order.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Arc<Mutex<Log>>);

/// What the transcript has recorded so far.
#[derive(Default)]
struct Log {
    /// Each line with how often it was recorded in a row.
    lines: Vec<(String, u32)>,
    /// Whether later calls are ignored.
    closed: bool,
    /// How many handles were opened.
    handles: usize,
    /// The first call that panicked or never returned.
    broken: Option<String>,
    detected_by: DetectedBy,
}

/// The most lines that are kept. Later ones are dropped: the first calls explain a violation best.
const MAX_LINES: usize = 400;

/// The most attempts of a throttled call. The result of the last one is returned as it is.
const MAX_ATTEMPTS: u32 = 8;

impl Transcript {
    fn with<T>(&self, use_log: impl FnOnce(&mut Log) -> T) -> T {
        use_log(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the lines, with the number of repetitions.
    pub(crate) fn lines(&self) -> Vec<String> {
        let format = |(line, times): &(String, u32)| match times {
            1 => line.clone(),
            _ => format!("{line} ({times} times)"),
        };
        self.with(|log| log.lines.iter().map(format).collect())
    }

    /// Returns the first call that panicked or never returned. It breaks the contract, whatever the
    /// clause is about.
    pub(crate) fn broken(&self) -> Option<String> {
        self.with(|log| log.broken.clone())
    }

    /// Adds a line, or counts it if it equals the previous one.
    pub(crate) fn note(&self, line: impl Into<String>) {
        let line = line.into();
        self.with(|log| {
            if log.closed {
                return;
            }
            if let Some((last, times)) = log.lines.last_mut() {
                if *last == line {
                    *times += 1;
                    return;
                }
            }
            if log.lines.len() < MAX_LINES {
                log.lines.push((line, 1));
            }
        });
    }

    /// Ignores all later calls: calls after a violation do not explain it.
    pub(crate) fn close(&self) {
        self.with(|log| log.closed = true);
    }

    /// Returns what detected the violation.
    pub(crate) fn detected_by(&self) -> DetectedBy {
        self.with(|log| log.detected_by)
    }

    /// Records that the check for leftovers detected the violation.
    pub(crate) fn detected_by_probe(&self) {
        self.with(|log| log.detected_by = DetectedBy::LeakProbe);
    }

    /// Records a call that did not return within the budget.
    fn record_timeout(&self, what: String) {
        self.with(|log| log.detected_by = DetectedBy::Timeout);
        self.record_violation(what);
    }

    /// Records a call that breaks the contract in any clause, and ends the transcript.
    fn record_violation(&self, what: String) {
        self.note(what.clone());
        self.with(|log| log.broken = log.broken.take().or(Some(what)));
        self.close();
    }

    /// Returns the number of a new handle, from 1.
    fn next_handle(&self) -> usize {
        self.with(|log| {
            log.handles += 1;
            log.handles
        })
    }
}

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
        let mut attempts = 0;
        let message = loop {
            let caught = timeout(self.budget, AssertUnwindSafe(make()).catch_unwind()).await;
            let result = match caught {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => break format!("{name} panicked: {}", panic_message(&*panic)),
                Err(_) => {
                    let message = format!("{name} did not return within {:?}", self.budget);
                    self.transcript.record_timeout(message.clone());
                    break message;
                }
            };
            let (shown, throttled) = show(&result);
            self.transcript.note(format!("{name} -> {shown}"));
            attempts += 1;
            match throttled {
                Some(delay) if attempts < MAX_ATTEMPTS => sleep(delay).await,
                Some(_) | None => return result,
            }
        };
        self.transcript.record_violation(message.clone());
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

    /// Makes a batch call. The transcript has the number of successes and errors; the batch is retried if
    /// any item was throttled, after the longest delay.
    async fn many<T, F: Future<Output = Vec<Result<T>>> + Send>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
        make: impl Fn() -> F + Send,
    ) -> Vec<Result<T>> {
        let shown = |results: &Vec<Result<T>>| {
            let errors: Vec<_> = results
                .iter()
                .filter_map(|result| result.as_ref().err())
                .collect();
            let delay = errors.iter().filter_map(|error| throttled(error)).max();
            (
                format!(
                    "{} ok, {} errors",
                    results.len() - errors.len(),
                    errors.len()
                ),
                delay,
            )
        };
        let refuse = |error: ProvisionError| ids.iter().map(|_| Err(error.clone())).collect();
        self.call(
            operation,
            &format!("{} ids", ids.len()),
            make,
            shown,
            refuse,
        )
        .await
    }
}

/// Returns how long a throttled call has to wait, or `None` for any other error.
fn throttled(error: &ProvisionError) -> Option<Duration> {
    let is_throttled = error.kind() == ErrorKind::Throttled && error.effect() == Effect::None;
    error.retry().delay().filter(|_| is_throttled)
}

/// Describes an instance for a line.
fn describe(info: &InstanceInfo) -> String {
    format!("{} {}", info.id, info.state)
}

/// Describes a config for a line. Tags and user data are left out.
fn describe_config(config: &InstanceConfig) -> String {
    let token = config
        .launch_token
        .as_ref()
        .map_or("none", LaunchToken::as_str);
    format!("type {}, token {token}", config.instance_type)
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
            &describe_config(config),
            call,
            describe,
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
        self.one(Operation::StartInstance, id.as_str(), call, describe)
            .await
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let call = || self.inner.describe_instance(id);
        let show = |status: &InstanceStatus| format!("{} {}", status.id, status.state);
        self.one(Operation::DescribeInstance, id.as_str(), call, show)
            .await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        let call = || self.inner.list_instances(filter);
        let tags: Vec<_> = filter
            .tags
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let show = |list: &Vec<InstanceInfo>| format!("{} instances", list.len());
        self.one(Operation::ListInstances, &tags.join(" "), call, show)
            .await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let call = || self.inner.find_launch(token);
        let show = |record: &LaunchRecord| match record {
            LaunchRecord::Found(found) => format!("found {}", found.len()),
            LaunchRecord::Terminated(instances) => format!("terminated {}", instances.len()),
            LaunchRecord::NotFound => "not found".to_owned(),
        };
        self.one(Operation::FindLaunch, token.as_str(), call, show)
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
        let arguments = format!("{}, count {count}", describe_config(config));
        self.one(Operation::LaunchInstances, &arguments, call, show)
            .await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let call = || self.inner.terminate_instances(ids);
        self.many(Operation::TerminateInstances, ids, call).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        let call = || self.inner.stop_instances(ids);
        self.many(Operation::StopInstances, ids, call).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        let call = || self.inner.start_instances(ids);
        self.many(Operation::StartInstances, ids, call).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let call = || self.inner.describe_instances(ids);
        self.many(Operation::DescribeInstances, ids, call).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.transcript
            .note(format!("handle {}: stream_instances", self.handle));
        let budget = self.budget;
        let items = self.inner.stream_instances(filter);
        let guarded = futures_util::stream::unfold(Some(items), move |items| async move {
            let mut items = items?;
            match timeout(budget, AssertUnwindSafe(items.next()).catch_unwind()).await {
                Ok(Ok(Some(item))) => Some((item, Some(items))),
                Ok(Ok(None)) => None,
                Ok(Err(panic)) => {
                    let message = format!("stream_instances panicked: {}", panic_message(&*panic));
                    self.transcript.record_violation(message);
                    None
                }
                Err(_) => {
                    self.transcript.record_timeout(format!(
                        "stream_instances did not return within {budget:?}"
                    ));
                    None
                }
            }
        });
        guarded.boxed()
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
