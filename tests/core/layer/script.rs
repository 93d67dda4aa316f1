//! A provisioner that answers each call by its number, not by the time, and writes down what it is
//! sent. It has every call of its own, so that nothing comes back in disguise.

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    num::{NonZeroU32, NonZeroUsize},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fleetwright::{
    BoxStream, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Market, Operation, ProvisionError, Reboot,
    Result, SnapshotRequest, TagChange, TagLimits, Zone, async_trait,
};
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

use crate::fake::{Called, id};

/// What comes back for one call.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Good,
    /// Of a batch, every item.
    Bad(ProvisionError),
    /// Of a batch, these items; the others are good.
    Items(BTreeMap<String, ProvisionError>),
    /// One answer too few.
    Short,
    Hang,
    Found(LaunchRecord),
    /// The items of a stream.
    ListItem(Vec<Result<ListItem>>),
}

impl From<ProvisionError> for Answer {
    fn from(error: ProvisionError) -> Self {
        Self::Bad(error)
    }
}

impl Answer {
    /// Why all of it failed.
    fn error(&self) -> Option<ProvisionError> {
        if let Self::Bad(error) = self {
            return Some(error.clone());
        }
        None
    }

    /// Why one item failed.
    fn error_of(&self, id: &str) -> Option<ProvisionError> {
        if let Self::Items(failed) = self {
            return failed.get(id).cloned();
        }
        self.error()
    }
}

/// Only these items of a batch fail.
pub(crate) fn items<const N: usize>(failed: [(&str, ProvisionError); N]) -> Answer {
    Answer::Items(failed.map(|(id, error)| (id.to_owned(), error)).into())
}

#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) capabilities: Capabilities,
    /// How long each call takes.
    pub(crate) takes: Duration,
    began: Instant,
    next: Mutex<VecDeque<Answer>>,
    then: Answer,
    calls: Mutex<Vec<Called>>,
    under_way: AtomicUsize,
    /// The most calls that were under way at once.
    pub(crate) most: AtomicUsize,
}

impl Script {
    /// Answers these one after the other, and then that everything is good.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut capabilities = Capabilities::new("script", TagLimits::new(9, 99, 99), 99);
        capabilities.batch_size = NonZeroUsize::new(1_000).unwrap();
        Self {
            capabilities,
            takes: Duration::ZERO,
            began: Instant::now(),
            next: Mutex::new(answers.into_iter().collect()),
            then: Answer::Good,
            calls: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    /// Answers every call like this.
    pub(crate) fn always(answer: impl Into<Answer>) -> Self {
        Self {
            then: answer.into(),
            ..Self::new([])
        }
    }

    /// Answers these first.
    pub(crate) fn first(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.next.lock().unwrap().extend(answers);
        self
    }

    /// Takes so long for each call.
    pub(crate) fn taking(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    /// So many ids in one native call.
    pub(crate) fn batches_of(mut self, size: usize) -> Self {
        self.capabilities.batch_size = NonZeroUsize::new(size).unwrap();
        self
    }

    /// How long it has been there.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Every call, in the order they came.
    pub(crate) fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap().clone()
    }

    /// When each call came.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.calls().into_iter().map(|call| call.at).collect()
    }

    /// What each call was about.
    pub(crate) fn about(&self) -> Vec<Vec<String>> {
        self.calls().into_iter().map(|call| call.about).collect()
    }

    async fn next(&self, operation: Operation, about: Vec<String>) -> Answer {
        let answer = {
            let mut calls = self.calls.lock().unwrap();
            assert!(calls.len() < 10_000, "this goes on for ever");
            let at = self.age();
            calls.push(Called {
                at,
                operation,
                about,
            });
            self.next.lock().unwrap().pop_front()
        };
        let _here = Here::begin(self);
        if !self.takes.is_zero() {
            sleep(self.takes).await;
        }
        match answer.unwrap_or_else(|| self.then.clone()) {
            Answer::Bad(error) => Answer::Bad(error.with_operation(operation)),
            Answer::Hang => pending().await,
            answer @ (Answer::Good
            | Answer::Items(_)
            | Answer::Short
            | Answer::Found(_)
            | Answer::ListItem(_)) => answer,
        }
    }

    async fn one<T>(&self, operation: Operation, about: &[&str], good: T) -> Result<T> {
        let about = about.iter().map(|text| (*text).to_owned()).collect();
        let answer = self.next(operation, about).await;
        answer.error().map_or(Ok(good), Err)
    }

    async fn each<T>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
        good: impl Fn(&InstanceId) -> T + Send,
    ) -> Vec<Result<T>> {
        let about = ids.iter().map(ToString::to_string).collect();
        let answer = self.next(operation, about).await;
        let asked = ids
            .iter()
            .skip(usize::from(matches!(answer, Answer::Short)));
        let answers = asked.map(|id| {
            let failed = answer.error_of(id.as_str());
            failed.map_or_else(
                || Ok(good(id)),
                |error| Err(error.with_operation(operation)),
            )
        });
        answers.collect()
    }
}

/// A call that is under way.
struct Here<'a>(&'a Script);

impl<'a> Here<'a> {
    fn begin(script: &'a Script) -> Self {
        let now = script.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        script.most.fetch_max(now, Ordering::SeqCst);
        Self(script)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn info(id: &InstanceId) -> InstanceInfo {
    InstanceInfo::new(id.clone(), CloudInstanceState::Running)
}

fn status(id: &InstanceId) -> InstanceStatus {
    info(id).into()
}

/// The token and what is asked for.
fn asked(config: &InstanceConfig) -> [&str; 4] {
    let placement = &config.placement;
    [
        config
            .launch_token
            .as_ref()
            .map_or("-", LaunchToken::as_str),
        config.instance_type.as_str(),
        placement.zone.as_ref().map_or("-", Zone::as_str),
        match placement.market {
            None => "-",
            Some(Market::OnDemand) => "demand",
            Some(Market::Spot) => "spot",
        },
    ]
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl InstanceProvisioner for Script {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let good = info(&id("i-1"));
        self.one(Operation::LaunchInstance, &asked(config), good)
            .await
    }
    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.one(Operation::TerminateInstance, &[id.as_str()], ())
            .await
    }
    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.one(Operation::StopInstance, &[id.as_str()], ()).await
    }
    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.one(Operation::StartInstance, &[id.as_str()], info(id))
            .await
    }
    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.one(Operation::DescribeInstance, &[id.as_str()], status(id))
            .await
    }
    async fn list_instances(&self, _: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.one(Operation::ListInstances, &[], Vec::new()).await
    }
    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        let answer = self
            .next(Operation::FindLaunch, vec![token.to_string()])
            .await;
        if let Answer::Found(record) = answer {
            return Ok(record);
        }
        answer.error().map_or(Ok(LaunchRecord::NotFound), Err)
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let good = (0..count.get())
            .map(|n| info(&id(&format!("i-{n}"))))
            .collect();
        self.one(Operation::LaunchInstances, &asked(config), good)
            .await
    }
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.each(Operation::TerminateInstances, ids, |_| ()).await
    }
    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.each(Operation::StopInstances, ids, |_| ()).await
    }
    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.each(Operation::StartInstances, ids, info).await
    }
    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.each(Operation::DescribeInstances, ids, status).await
    }
    fn stream_instances<'a>(&'a self, _: &'a InstanceFilter) -> BoxStream<'a, Result<ListItem>> {
        let opened = async {
            let answer = self.next(Operation::StreamInstances, Vec::new()).await;
            if let Answer::ListItem(items) = answer {
                return stream::iter(items);
            }
            stream::iter(answer.error().map(Err).into_iter().collect::<Vec<_>>())
        };
        stream::once(opened).flatten().boxed()
    }
    async fn update_tags(&self, id: &InstanceId, _: &TagChange) -> Result<()> {
        self.one(Operation::UpdateTags, &[id.as_str()], ()).await
    }
    async fn reboot_instance(&self, id: &InstanceId, _: Reboot) -> Result<()> {
        self.one(Operation::RebootInstance, &[id.as_str()], ())
            .await
    }
    async fn resize_instance(&self, id: &InstanceId, _: &InstanceType) -> Result<()> {
        self.one(Operation::ResizeInstance, &[id.as_str()], ())
            .await
    }
    async fn reimage_instance(&self, id: &InstanceId, _: &ImageId) -> Result<()> {
        self.one(Operation::ReimageInstance, &[id.as_str()], ())
            .await
    }
    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        let good = ConsoleOutput::new("boot");
        self.one(Operation::ConsoleOutput, &[id.as_str()], good)
            .await
    }
    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        let good = ConsoleSession::new("url");
        self.one(Operation::ConsoleSession, &[id.as_str()], good)
            .await
    }
    async fn snapshot_image(&self, id: &InstanceId, _: &SnapshotRequest) -> Result<ImageId> {
        let good = ImageId::new("image-9").unwrap();
        self.one(Operation::SnapshotImage, &[id.as_str()], good)
            .await
    }
}
