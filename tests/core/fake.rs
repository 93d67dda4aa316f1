//! A provisioner that shows what its script says, by tokio's clock, and writes down what it is
//! asked.

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

/// The maker of this backend's errors.
pub(crate) fn call(operation: Operation) -> Call {
    Call::new("fake", operation)
}

/// The maker of the errors of a poll.
pub(crate) fn poll() -> Call {
    call(Operation::DescribeInstances)
}

/// What a poll shows of an instance.
#[derive(Clone, Debug)]
pub(crate) enum Show {
    State(CloudInstanceState),
    Status(InstanceStatus),
    Error(ProvisionError),
    /// No answer ever comes.
    Nothing,
}

impl From<CloudInstanceState> for Show {
    fn from(state: CloudInstanceState) -> Self {
        Self::State(state)
    }
}

impl From<InstanceStatus> for Show {
    fn from(status: InstanceStatus) -> Self {
        Self::Status(status)
    }
}

impl From<ProvisionError> for Show {
    fn from(error: ProvisionError) -> Self {
        Self::Error(error)
    }
}

/// What holds from which second on.
type Timeline<T> = Vec<(u64, T)>;

/// A call as it was made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Called {
    pub(crate) at: Duration,
    pub(crate) operation: Operation,
    /// The ids or the token that it was about.
    pub(crate) about: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) capabilities: Capabilities,
    began: Instant,
    shown: BTreeMap<InstanceId, Timeline<Show>>,
    found: Timeline<Result<LaunchRecord>>,
    /// What a launch and a start answer.
    pub(crate) info: Result<InstanceInfo>,
    pub(crate) listed: Result<Vec<InstanceInfo>>,
    refused: BTreeMap<InstanceId, ProvisionError>,
    /// How many results of a batch are lost.
    pub(crate) lost: usize,
    pub(crate) streamed: Vec<Result<ListItem>>,
    /// How many items were read of the stream.
    pub(crate) read: AtomicUsize,
    calls: Mutex<Vec<Called>>,
}

impl Fake {
    /// A cloud with this consistency window, to be polled every second.
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

    /// Shows this of `name`, each from its second on. Nobody knows an instance without a script.
    pub(crate) fn shows<const N: usize>(mut self, name: &str, what: [(u64, Show); N]) -> Self {
        self.shown.insert(id(name), what.into());
        self
    }

    /// Answers this to a look-up of any token, each from its second on.
    pub(crate) fn finds<const N: usize>(mut self, what: [(u64, Result<LaunchRecord>); N]) -> Self {
        self.found = what.into();
        self
    }

    /// Refuses every change of `name`.
    pub(crate) fn refuses(mut self, name: &str, error: ProvisionError) -> Self {
        self.refused.insert(id(name), error);
        self
    }

    /// How long it has been there.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// The calls of `operation`, in the order they were made.
    pub(crate) fn calls(&self, operation: Operation) -> Vec<Called> {
        let mut calls = self.calls.lock().unwrap().clone();
        calls.retain(|call| call.operation == operation);
        calls
    }

    /// When it was polled.
    pub(crate) fn polls(&self) -> Vec<Duration> {
        let calls = self.calls(Operation::DescribeInstances);
        calls.into_iter().map(|call| call.at).collect()
    }

    fn note(&self, operation: Operation, about: Vec<String>) {
        let at = self.age();
        let mut calls = self.calls.lock().unwrap();
        assert!(calls.len() < 10_000, "this goes on for ever");
        calls.push(Called {
            at,
            operation,
            about,
        });
    }

    /// What `timeline` holds now.
    fn now<'a, T>(&self, timeline: &'a Timeline<T>) -> Option<&'a T> {
        let passed = timeline.iter().rev();
        let mut passed = passed.skip_while(|(from, _)| secs(*from) > self.age());
        passed.next().map(|(_, what)| what)
    }

    async fn look(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let shown = self.shown.get(id).and_then(|timeline| self.now(timeline));
        match shown {
            Some(Show::State(state)) => Ok(InstanceStatus::new(id.clone(), *state)),
            Some(Show::Status(status)) => Ok(status.clone()),
            Some(Show::Error(error)) => Err(error.clone()),
            Some(Show::Nothing) => std::future::pending().await,
            None => Err(poll().not_found(id)),
        }
    }

    fn change(&self, operation: Operation, id: &InstanceId) -> Result<()> {
        self.note(operation, vec![id.to_string()]);
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
        self.note(Operation::LaunchInstance, token.collect());
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
        self.note(Operation::DescribeInstance, vec![id.to_string()]);
        self.look(id).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        let about = ids.iter().map(ToString::to_string).collect();
        self.note(Operation::DescribeInstances, about);
        let mut answers = Vec::new();
        for id in &ids[self.lost..] {
            answers.push(self.look(id).await);
        }
        answers
    }

    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.note(Operation::ListInstances, Vec::new());
        self.listed.clone()
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.note(Operation::FindLaunch, vec![token.to_string()]);
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
