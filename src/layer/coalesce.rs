//! Few calls for many callers.
//!
//! Owns that describes, stops, starts and terminates of single instances that come at the same time
//! share the batch calls of the trait. It never makes a caller wait when nobody else does, never
//! answers with what was read before it was asked, and never lets one caller's end or failure touch
//! another.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{Request, lane::Lane, signal};
use crate::{
    BoxStream, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, Operation, Reboot, Result, Seen, SnapshotRequest, TagChange,
};

/// How calls are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoalescePolicy {
    /// How long a caller waits at most for those who come after it, and only while another call of
    /// the same operation is under way.
    pub window: Duration,
    /// The most instances in one call; never more than the backend's
    /// [batch size](Capabilities::batch_size) is used.
    pub max_size: NonZeroUsize,
}

impl Default for CoalescePolicy {
    /// A tenth of a second, and as many as the backend takes.
    fn default() -> Self {
        Self {
            window: Duration::from_millis(100),
            max_size: NonZeroUsize::MAX,
        }
    }
}

impl CoalescePolicy {
    /// Waits so long at most.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Puts so many instances into one call at most.
    #[must_use]
    pub const fn at_most(mut self, instances: NonZeroUsize) -> Self {
        self.max_size = instances;
        self
    }
}

/// How a call is made of what it is about.
type Way<P, About, Answer> = fn(Arc<P>, About) -> BoxFuture<'static, Answer>;

/// Makes few batch calls of many single ones.
///
/// The first caller's call is sent at once. Those who come while it is under way gather; they are
/// sent together when it ends, when there are as many as a batch takes, or when the window of their
/// first is over. Callers of the same instance share its answer. Who is dropped while gathering is
/// not sent; who is dropped later changes nothing for the others.
///
/// Nothing is spawned: a shared call is carried on by whichever of its callers is polled, and is
/// dropped only when the last one is.
#[derive(Debug)]
pub struct Coalesce<P> {
    inner: Arc<P>,
    describes: Lane<InstanceStatus>,
    stops: Lane<()>,
    starts: Lane<InstanceInfo>,
    terminates: Lane<()>,
}

impl<P: InstanceProvisioner + 'static> Coalesce<P> {
    /// Gathers the calls on `inner` as `policy` says.
    pub fn new(inner: P, policy: CoalescePolicy) -> Self {
        let size = policy.max_size.min(inner.capabilities().batch_size);
        Self {
            inner: Arc::new(inner),
            describes: Lane::new(policy.window, size),
            stops: Lane::new(policy.window, size),
            starts: Lane::new(policy.window, size),
            terminates: Lane::new(policy.window, size),
        }
    }

    /// What is below the layer.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Answers `id` out of a call that it shares with others, or of `one` if it is alone.
    async fn share<T: Clone + Send + Sync + 'static>(
        &self,
        lane: &Lane<T>,
        operation: Operation,
        id: &InstanceId,
        one: Way<P, InstanceId, Result<T>>,
        many: Way<P, Vec<InstanceId>, Vec<Result<T>>>,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        let send = move |ids: Vec<InstanceId>| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let provisioner = Arc::clone(&inner);
                let request = Request::new(&*provisioner, operation);
                signal::coalesced(&request, ids.len());
                let answers = match &*ids {
                    [id] => vec![one(inner, id.clone()).await],
                    _ => request.fitted(ids.len(), many(inner, ids.clone()).await),
                };
                // Each caller has asked for one, so its error is of that.
                let named = answers
                    .into_iter()
                    .map(|answer| answer.map_err(|e| e.with_operation(operation)));
                ids.into_iter().zip(named).collect::<BTreeMap<_, _>>()
            })
        };
        let answer = lane.ask(id, send).await;
        let lost = || {
            let call = Request::new(&*self.inner, operation).call;
            Err(call.unexpected(Effect::Unknown, "the batch has no answer for it"))
        };
        answer.unwrap_or_else(lost)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner + 'static> InstanceProvisioner for Coalesce<P> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.share(
            &self.describes,
            Operation::DescribeInstance,
            id,
            |inner, id| Box::pin(async move { inner.describe_instance(&id).await }),
            |inner, ids| Box::pin(async move { inner.describe_instances(&ids).await }),
        )
        .await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.share(
            &self.stops,
            Operation::StopInstance,
            id,
            |inner, id| Box::pin(async move { inner.stop_instance(&id).await }),
            |inner, ids| Box::pin(async move { inner.stop_instances(&ids).await }),
        )
        .await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.share(
            &self.starts,
            Operation::StartInstance,
            id,
            |inner, id| Box::pin(async move { inner.start_instance(&id).await }),
            |inner, ids| Box::pin(async move { inner.start_instances(&ids).await }),
        )
        .await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.share(
            &self.terminates,
            Operation::TerminateInstance,
            id,
            |inner, id| Box::pin(async move { inner.terminate_instance(&id).await }),
            |inner, ids| Box::pin(async move { inner.terminate_instances(&ids).await }),
        )
        .await
    }

    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.inner.launch_instance(config).await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.inner.list_instances(filter).await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.inner.find_launch(token).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.inner.launch_instances(config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.terminate_instances(ids).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.inner.stop_instances(ids).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.inner.start_instances(ids).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.inner.describe_instances(ids).await
    }

    fn stream_instances<'a>(&'a self, filter: &'a InstanceFilter) -> BoxStream<'a, Result<Seen>> {
        self.inner.stream_instances(filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.inner.update_tags(id, change).await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.inner.reboot_instance(id, how).await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.inner.resize_instance(id, to).await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.inner.reimage_instance(id, image).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.inner.console_output(id).await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.inner.console_session(id).await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.inner.snapshot_image(id, request).await
    }
}
