//! A provisioner whose results follow timelines on tokio's clock. It records every call.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    BoxStream, Call, Capabilities, CloudInstanceState, InstanceConfig, InstanceFilter, InstanceId,
    InstanceInfo, InstanceProvisioner, InstanceStatus, LaunchRecord, LaunchToken, ListItem,
    Operation, ProvisionError, Result, TagLimits, async_trait,
};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

pub(crate) fn id(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn ids(names: &[&str]) -> Vec<InstanceId> {
    names.iter().map(|name| id(name)).collect()
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Creates errors of this backend.
pub(crate) fn call(operation: Operation) -> Call {
    Call::new("fake", operation)
}

/// Creates errors of a poll.
pub(crate) fn poll() -> Call {
    call(Operation::DescribeInstances)
}

/// The result of a poll of one instance.
#[derive(Clone, Debug)]
pub(crate) enum Observation {
    State(CloudInstanceState),
    Status(InstanceStatus),
    Error(ProvisionError),
    /// The poll never returns.
    Hang,
}

impl From<CloudInstanceState> for Observation {
    fn from(state: CloudInstanceState) -> Self {
        Self::State(state)
    }
}

impl From<InstanceStatus> for Observation {
    fn from(status: InstanceStatus) -> Self {
        Self::Status(status)
    }
}

impl From<ProvisionError> for Observation {
    fn from(error: ProvisionError) -> Self {
        Self::Error(error)
    }
}

/// Values, each with the second from which it applies.
type Timeline<T> = Vec<(u64, T)>;

/// A recorded call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedCall {
    pub(crate) at: Duration,
    pub(crate) operation: Operation,
    /// The ids or the token of the call.
    pub(crate) targets: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) capabilities: Capabilities,
    began: Instant,
    shown: BTreeMap<InstanceId, Timeline<Observation>>,
    found: Timeline<Result<LaunchRecord>>,
    /// The result of a launch and of a start.
    pub(crate) info: Result<InstanceInfo>,
    pub(crate) listed: Result<Vec<InstanceInfo>>,
    refused: BTreeMap<InstanceId, ProvisionError>,
    /// How many results are missing from a batch.
    pub(crate) lost: usize,
    pub(crate) streamed: Vec<Result<ListItem>>,
    /// How many items were read from the stream.
    pub(crate) read: AtomicUsize,
    calls: Mutex<Vec<RecordedCall>>,
}

impl Fake {
    /// Creates a cloud with this consistency window and a poll interval of one second.
    pub(crate) fn new(window: Duration) -> Self {
        let mut capabilities = Capabilities::new("fake", TagLimits::new(9, 99, 99), 99);
        capabilities.consistency_window = window;
        Self {
            capabilities,
            began: Instant::now(),
            shown: BTreeMap::new(),
            found: Vec::new(),
            info: Ok(InstanceInfo::new(id("i-1"), CloudInstanceState::Pending)),
            listed: Ok(Vec::new()),
            refused: BTreeMap::new(),
            lost: 0,
            streamed: Vec::new(),
            read: AtomicUsize::new(0),
            calls: Mutex::default(),
        }
    }

    /// Sets the poll results of `name`. An instance without a timeline is not found.
    pub(crate) fn with_timeline<const N: usize>(
        mut self,
        name: &str,
        timeline: [(u64, Observation); N],
    ) -> Self {
        self.shown.insert(id(name), timeline.into());
        self
    }

    /// Sets the results of `find_launch` for every token.
    pub(crate) fn with_launch_records<const N: usize>(
        mut self,
        timeline: [(u64, Result<LaunchRecord>); N],
    ) -> Self {
        self.found = timeline.into();
        self
    }

    /// Refuses every change of `name` with `error`.
    pub(crate) fn with_refusal(mut self, name: &str, error: ProvisionError) -> Self {
        self.refused.insert(id(name), error);
        self
    }

    /// Returns the time since the creation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the calls of `operation` in order.
    pub(crate) fn calls(&self, operation: Operation) -> Vec<RecordedCall> {
        let mut calls = self.calls.lock().unwrap().clone();
        calls.retain(|call| call.operation == operation);
        calls
    }

    /// Returns the times of all polls.
    pub(crate) fn polls(&self) -> Vec<Duration> {
        let calls = self.calls(Operation::DescribeInstances);
        calls.into_iter().map(|call| call.at).collect()
    }

    fn record(&self, operation: Operation, targets: Vec<String>) {
        let at = self.elapsed();
        let mut calls = self.calls.lock().unwrap();
        assert!(calls.len() < 10_000, "endless loop of calls");
        calls.push(RecordedCall {
            at,
            operation,
            targets,
        });
    }

    /// Returns the current value of `timeline`.
    fn now<'a, T>(&self, timeline: &'a Timeline<T>) -> Option<&'a T> {
        let passed = timeline.iter().rev();
        let mut passed = passed.skip_while(|(from, _)| secs(*from) > self.elapsed());
        passed.next().map(|(_, value)| value)
    }

    async fn observe(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let shown = self.shown.get(id).and_then(|timeline| self.now(timeline));
        match shown {
            Some(Observation::State(state)) => Ok(InstanceStatus::new(id.clone(), *state)),
            Some(Observation::Status(status)) => Ok(status.clone()),
            Some(Observation::Error(error)) => Err(error.clone()),
            Some(Observation::Hang) => std::future::pending().await,
            None => Err(poll().not_found(id)),
        }
    }

    fn change(&self, operation: Operation, id: &InstanceId) -> Result<()> {
        self.record(operation, vec![id.to_string()]);
        self.refused.get(id).cloned().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl InstanceProvisioner for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let token = config.launch_token.iter().map(ToString::to_string);
        self.record(Operation::LaunchInstance, token.collect());
        self.info.clone()
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(Operation::TerminateInstance, id)
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.change(Operation::StopInstance, id)
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.change(Operation::StartInstance, id)?;
        self.info.clone()
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.record(Operation::DescribeInstance, vec![id.to_string()]);
        self.observe(id).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let targets = ids.iter().map(ToString::to_string).collect();
        self.record(Operation::DescribeInstances, targets);
        let mut results = Vec::new();
        for id in &ids[self.lost..] {
            results.push(self.observe(id).await);
        }
        results
    }

    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.record(Operation::ListInstances, Vec::new());
        self.listed.clone()
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.record(Operation::FindLaunch, vec![token.to_string()]);
        let found = self.now(&self.found).cloned();
        found.unwrap_or(Ok(LaunchRecord::NotFound))
    }

    fn stream_instances<'a>(&'a self, _: &'a InstanceFilter) -> BoxStream<'a, Result<ListItem>> {
        let read = |_: &_| {
            self.read.fetch_add(1, Ordering::Relaxed);
        };
        stream::iter(self.streamed.clone()).inspect(read).boxed()
    }
}
