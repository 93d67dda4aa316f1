//! A provisioner that returns scripted responses in the order of calls, and records the calls. It
//! implements every method itself, so no provided method hides a call.

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
    AccountId, BoxStream, Capabilities, CloudInstanceState, ConsoleOutput, ConsoleSession, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Market, NativeCost, Operation,
    ProvisionError, Reboot, Result, SnapshotRequest, TagChange, TagLimits, Zone, async_trait,
};
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

use crate::fake::{RecordedCall, id};

/// The scripted response of one call.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Success,
    /// Fails the call, and every item of a batch.
    Failure(ProvisionError),
    /// Fails these items of a batch; the others succeed.
    ItemFailures(BTreeMap<String, ProvisionError>),
    /// Returns one result too few.
    MissingItem,
    Hang,
    Found(LaunchRecord),
    /// The items of a stream.
    Stream(Vec<Result<ListItem>>),
}

impl From<ProvisionError> for Response {
    fn from(error: ProvisionError) -> Self {
        Self::Failure(error)
    }
}

impl Response {
    /// Returns the error of the whole call.
    fn error(&self) -> Option<ProvisionError> {
        if let Self::Failure(error) = self {
            return Some(error.clone());
        }
        None
    }

    /// Returns the error of one item.
    fn error_of(&self, id: &str) -> Option<ProvisionError> {
        if let Self::ItemFailures(failed) = self {
            return failed.get(id).cloned();
        }
        self.error()
    }
}

/// Returns a response in which only these items of a batch fail.
pub(crate) fn items<const N: usize>(failed: [(&str, ProvisionError); N]) -> Response {
    Response::ItemFailures(failed.map(|(id, error)| (id.to_owned(), error)).into())
}

#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) capabilities: Capabilities,
    /// How long each call takes.
    pub(crate) latency: Duration,
    began: Instant,
    next: Mutex<VecDeque<Response>>,
    default: Response,
    calls: Mutex<Vec<RecordedCall>>,
    in_flight: AtomicUsize,
    /// The largest number of concurrent calls.
    pub(crate) max_in_flight: AtomicUsize,
}

impl Scripted {
    /// Returns these responses in order, then success.
    pub(crate) fn new(results: impl IntoIterator<Item = Response>) -> Self {
        let mut capabilities = Capabilities::new("scripted", TagLimits::new(9, 99, 99), 99);
        capabilities.batch_size = NonZeroUsize::new(1_000).unwrap();
        Self {
            capabilities,
            latency: Duration::ZERO,
            began: Instant::now(),
            next: Mutex::new(results.into_iter().collect()),
            default: Response::Success,
            calls: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            max_in_flight: AtomicUsize::new(0),
        }
    }

    /// Returns the same response for every call.
    pub(crate) fn always(result: impl Into<Response>) -> Self {
        Self {
            default: result.into(),
            ..Self::new([])
        }
    }

    /// Returns these responses first.
    pub(crate) fn first(self, results: impl IntoIterator<Item = Response>) -> Self {
        self.next.lock().unwrap().extend(results);
        self
    }

    /// Sets the latency of each call.
    pub(crate) fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Sets the number of ids in one native call.
    pub(crate) fn with_native_cost(mut self, operation: Operation, cost: NativeCost) -> Self {
        self.capabilities.native_costs.insert(operation, cost);
        self
    }

    pub(crate) fn with_batch_size(mut self, size: usize) -> Self {
        self.capabilities.batch_size = NonZeroUsize::new(size).unwrap();
        self
    }

    /// Returns the time since the creation.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns every call in order.
    pub(crate) fn calls(&self) -> Vec<RecordedCall> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns the time of each call.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.calls().into_iter().map(|call| call.at).collect()
    }

    /// Returns the ids, the token or the config of each call.
    pub(crate) fn targets(&self) -> Vec<Vec<String>> {
        self.calls().into_iter().map(|call| call.targets).collect()
    }

    async fn next(&self, operation: Operation, targets: Vec<String>) -> Response {
        let result = {
            let mut calls = self.calls.lock().unwrap();
            assert!(calls.len() < 10_000, "endless loop of calls");
            let at = self.elapsed();
            calls.push(RecordedCall {
                at,
                operation,
                targets,
            });
            self.next.lock().unwrap().pop_front()
        };
        let _guard = InFlight::begin(self);
        if !self.latency.is_zero() {
            sleep(self.latency).await;
        }
        match result.unwrap_or_else(|| self.default.clone()) {
            Response::Failure(error) => Response::Failure(error.with_operation(operation)),
            Response::Hang => pending().await,
            result @ (Response::Success
            | Response::ItemFailures(_)
            | Response::MissingItem
            | Response::Found(_)
            | Response::Stream(_)) => result,
        }
    }

    async fn one<T>(&self, operation: Operation, targets: &[&str], good: T) -> Result<T> {
        let targets = targets.iter().map(|text| (*text).to_owned()).collect();
        let result = self.next(operation, targets).await;
        result.error().map_or(Ok(good), Err)
    }

    async fn each<T>(
        &self,
        operation: Operation,
        ids: &[InstanceId],
        good: impl Fn(&InstanceId) -> T + Send,
    ) -> Vec<Result<T>> {
        let targets = ids.iter().map(ToString::to_string).collect();
        let result = self.next(operation, targets).await;
        let returned = ids
            .iter()
            .skip(usize::from(matches!(result, Response::MissingItem)));
        let results = returned.map(|id| {
            let failed = result.error_of(id.as_str());
            failed.map_or_else(
                || Ok(good(id)),
                |error| Err(error.with_operation(operation)),
            )
        });
        results.collect()
    }
}

/// Counts a concurrent call until it is dropped.
struct InFlight<'a>(&'a Scripted);

impl<'a> InFlight<'a> {
    fn begin(backend: &'a Scripted) -> Self {
        let now = backend.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        backend.max_in_flight.fetch_max(now, Ordering::SeqCst);
        Self(backend)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn info(id: &InstanceId) -> InstanceInfo {
    InstanceInfo::new(id.clone(), CloudInstanceState::Running)
}

fn status(id: &InstanceId) -> InstanceStatus {
    info(id).into()
}

/// Returns token, type, zone and market of a config.
fn describe_config(config: &InstanceConfig) -> [&str; 4] {
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
impl InstanceProvisioner for Scripted {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        let good = info(&id("i-1"));
        self.one(Operation::LaunchInstance, &describe_config(config), good)
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
        let result = self
            .next(Operation::FindLaunch, vec![token.to_string()])
            .await;
        if let Response::Found(record) = result {
            return Ok(record);
        }
        result.error().map_or(Ok(LaunchRecord::NotFound), Err)
    }
    async fn account_id(&self) -> Result<Option<AccountId>> {
        let good = AccountId::new("scripted/1").unwrap();
        self.one(Operation::AccountId, &[], Some(good)).await
    }
    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        let good = (0..count.get())
            .map(|n| info(&id(&format!("i-{n}"))))
            .collect();
        self.one(Operation::LaunchInstances, &describe_config(config), good)
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
            let result = self.next(Operation::StreamInstances, Vec::new()).await;
            if let Response::Stream(items) = result {
                return stream::iter(items);
            }
            stream::iter(result.error().map(Err).into_iter().collect::<Vec<_>>())
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
    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.one(Operation::DeleteImage, &[image.as_str()], ())
            .await
    }
}
