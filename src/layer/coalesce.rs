//! Combines single calls into batch calls.
//!
//! Owns which describes, stops, starts and terminates of single instances share a batch call. A
//! caller never waits when no other call is in flight, never gets data that was read before its call
//! was made, and is never affected when another caller is dropped or fails.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{
    Layered, Request, Retry, RetryPolicy,
    batch_queue::BatchQueue,
    retry_state::{FailureHistory, RetryState},
    telemetry,
};
use crate::{
    BoxStream, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// How single calls are combined.
///
/// ```
/// use std::{num::NonZeroUsize, time::Duration};
/// use fleetwright::layer::CoalescePolicy;
///
/// let policy = CoalescePolicy::default()
///     .window(Duration::from_millis(50))
///     .max_size(NonZeroUsize::new(100).unwrap());
/// assert_eq!(policy.window, Duration::from_millis(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoalescePolicy {
    /// How long a batch waits for more callers while one other call of the same operation is in
    /// flight. Each further call in flight doubles it, so that calls do not pile up in front of a
    /// rate limit. Default: 100 ms.
    pub window: Duration,
    /// The most instances in one batch. A batch never has more than the backend's
    /// [batch size](Capabilities::batch_size). Default: no limit but that.
    pub max_size: NonZeroUsize,
}

impl Default for CoalescePolicy {
    /// A window of 100 ms, and as many instances as the backend allows.
    fn default() -> Self {
        Self {
            window: Duration::from_millis(100),
            max_size: NonZeroUsize::MAX,
        }
    }
}

impl CoalescePolicy {
    /// Sets how long a batch waits for more callers. Zero sends every batch at once.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets the most instances in one batch.
    #[must_use]
    pub const fn max_size(mut self, instances: NonZeroUsize) -> Self {
        self.max_size = instances;
        self
    }
}

/// Combines many single calls into few batch calls.
///
/// The first call of an operation is sent at once. Calls that arrive while it is in flight wait, and
/// are sent together as soon as no call is in flight, the batch is full, or the window of its first
/// caller is over. Callers of the same instance share one result. A caller that is dropped while it
/// waits is not sent; one that is dropped later does not affect the others.
///
/// Only [`describe_instance`], [`stop_instance`], [`start_instance`] and [`terminate_instance`] are
/// combined. All other calls are passed on unchanged.
///
/// No task is spawned: whichever caller of a batch is polled drives it, and the batch is dropped
/// only when its last caller is.
///
/// ```
/// use fleetwright::{layer::{Coalesce, CoalescePolicy, RetryPolicy}, prelude::*};
/// use fleetwright_memory::MemoryCloud;
/// use futures_util::future::join_all;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cloud = MemoryCloud::new();
/// let config = InstanceConfig::builder("image-1", "small").build()?;
/// let hundred = std::num::NonZeroU32::new(100).unwrap();
/// let instances = cloud.provisioner().launch_instances(&config, hundred).await?;
///
/// let combined = Coalesce::with_retry(
///     cloud.provisioner(), CoalescePolicy::default(), RetryPolicy::default());
/// // While one call is in flight, all others gather for the next batch.
/// let calls = instances.iter().map(|info| combined.describe_instance(&info.id));
/// let statuses = join_all(calls).await;
/// assert!(statuses.iter().all(Result::is_ok));
/// # Ok(())
/// # }
/// ```
///
/// [`describe_instance`]: InstanceProvisioner::describe_instance
/// [`stop_instance`]: InstanceProvisioner::stop_instance
/// [`start_instance`]: InstanceProvisioner::start_instance
/// [`terminate_instance`]: InstanceProvisioner::terminate_instance
#[derive(Debug)]
pub struct Coalesce<P> {
    inner: Arc<P>,
    /// Sends calls that are not combined. Retries them if there is a retry policy.
    single: Arc<dyn InstanceProvisioner>,
    /// Sends batches. Retries them while every item fails, if there is a retry policy.
    batched: Arc<dyn InstanceProvisioner>,
    /// How a caller retries its own item after others of its batch succeeded.
    retry: Option<RetryPolicy>,
    describes: Queue<InstanceStatus>,
    stops: Queue<()>,
    starts: Queue<InstanceInfo>,
    terminates: Queue<()>,
}

/// The batches of one operation.
type Queue<T> = BatchQueue<(Result<T>, RetryOwner)>;

/// A function that sends a call: for one instance or for many.
type SendFn<Target, Output> =
    fn(Arc<dyn InstanceProvisioner>, Target) -> BoxFuture<'static, Output>;

/// How one operation is sent, alone and as a batch.
struct Senders<T> {
    operation: Operation,
    one: SendFn<InstanceId, Result<T>>,
    many: SendFn<Vec<InstanceId>, Vec<Result<T>>>,
}

impl<T> Clone for Senders<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Senders<T> {}

/// Who must retry a failed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryOwner {
    /// Nobody: the layer below has already retried it as often as it may.
    Below,
    /// Its own caller, because other items of the batch succeeded or it was sent without retries.
    Caller,
}

impl<P: InstanceProvisioner + 'static> Coalesce<P> {
    /// Combines the calls on `inner`, without retries.
    ///
    /// If `inner` retries calls itself, all callers of a batch wait until its last item was retried;
    /// use [`with_retry`](Self::with_retry) instead.
    pub fn new(inner: P, policy: CoalescePolicy) -> Self {
        let inner = Arc::new(inner);
        let same: Arc<dyn InstanceProvisioner> = Arc::clone(&inner) as _;
        Self::build(inner, Arc::clone(&same), same, policy, None)
    }

    /// Combines the calls on `inner`, and retries all calls as `retry` says.
    ///
    /// A batch in which every item failed is retried as one call. As soon as one item succeeds, the
    /// batch ends: each caller gets its result, and callers whose item failed retry it themselves, so
    /// that no caller waits for the failure of another.
    pub fn with_retry(inner: P, policy: CoalescePolicy, retry: RetryPolicy) -> Self {
        let inner = Arc::new(inner);
        let single = Layered::new(Arc::clone(&inner), Retry::new(retry.clone()));
        let until_partial = Retry::until_partial_success(retry.clone());
        let batched = Layered::new(Arc::clone(&inner), until_partial);
        Self::build(
            inner,
            Arc::new(single),
            Arc::new(batched),
            policy,
            Some(retry),
        )
    }

    fn build(
        inner: Arc<P>,
        single: Arc<dyn InstanceProvisioner>,
        batched: Arc<dyn InstanceProvisioner>,
        policy: CoalescePolicy,
        retry: Option<RetryPolicy>,
    ) -> Self {
        let max_size = policy.max_size.min(inner.capabilities().batch_size);
        Self {
            inner,
            single,
            batched,
            retry,
            describes: BatchQueue::new(policy.window, max_size),
            stops: BatchQueue::new(policy.window, max_size),
            starts: BatchQueue::new(policy.window, max_size),
            terminates: BatchQueue::new(policy.window, max_size),
        }
    }

    /// Returns the provisioner below the layer.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Sends one call through the queue, and retries it while it is its caller's turn to do so.
    async fn call<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        id: &InstanceId,
    ) -> Result<T> {
        let request = Request::new(&*self.inner, senders.operation).about(std::slice::from_ref(id));
        let mut state = self.retry.as_ref().map(RetryState::new);
        let mut history = FailureHistory::default();
        loop {
            let attempt = state.as_ref().map_or(1, |state| state.attempt);
            let (result, owner) = self.submit(queue, senders, &request, id, attempt).await;
            let error = match result {
                Ok(value) => return Ok(value),
                Err(error) => history.merge(error),
            };
            let delay = match (owner, &mut state) {
                (RetryOwner::Caller, Some(state)) => {
                    let delay = state.next_delay(&request, error.retry().delay());
                    delay.map(|delay| (delay, state.attempt))
                }
                (RetryOwner::Caller | RetryOwner::Below, _) => None,
            };
            let Some((delay, next_attempt)) = delay else {
                return Err(error);
            };
            telemetry::retrying(&request, &error, next_attempt, delay.duration);
            delay.sleep().await;
        }
    }

    /// Submits attempt `attempt` of a call to the queue, and returns its result and who must retry it.
    async fn submit<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        request: &Request<'_>,
        id: &InstanceId,
        attempt: u32,
    ) -> (Result<T>, RetryOwner) {
        let batched = Arc::clone(&self.batched);
        // From the second attempt on, the caller retries: the layer below must not do so as well.
        let (single, owner): (Arc<dyn InstanceProvisioner>, _) = if attempt > 1 {
            (Arc::clone(&self.inner) as _, RetryOwner::Caller)
        } else {
            (Arc::clone(&self.single), RetryOwner::Below)
        };
        let send = move |ids: Vec<InstanceId>| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let provisioner = Arc::clone(&single);
                let request = Request::new(&*provisioner, senders.operation).about(&ids);
                telemetry::batch_sent(&request, ids.len());
                let (results, owner) = match &*ids {
                    [id] => {
                        let sent = (senders.one)(single, id.clone());
                        let result = if attempt > 1 {
                            telemetry::attempt(&request, attempt, sent).await
                        } else {
                            sent.await
                        };
                        (vec![result], owner)
                    }
                    _ => send_batch(&request, senders, batched).await,
                };
                // The error of a batch names the batch call; each caller made a single call.
                let results = results.into_iter().map(|result| {
                    let result = result.map_err(|error| error.with_operation(senders.operation));
                    (result, owner)
                });
                ids.iter().cloned().zip(results).collect::<BTreeMap<_, _>>()
            })
        };
        queue.submit(id, send).await.unwrap_or_else(|| {
            let message = "the backend returned no result for this instance of a batch";
            let error = request.call.unexpected(Effect::Unknown, message);
            (Err(error), RetryOwner::Below)
        })
    }
}

/// Sends a batch of at least two instances, and returns its results and who must retry those that
/// failed.
async fn send_batch<T>(
    request: &Request<'_>,
    senders: Senders<T>,
    provisioner: Arc<dyn InstanceProvisioner>,
) -> (Vec<Result<T>>, RetryOwner) {
    let results = (senders.many)(provisioner, request.ids.to_vec()).await;
    let results = request.one_result_per_id(request.ids.len(), results);
    let owner = if results.iter().any(Result::is_ok) {
        RetryOwner::Caller
    } else {
        RetryOwner::Below
    };
    (results, owner)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner + 'static> InstanceProvisioner for Coalesce<P> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        let senders = Senders {
            operation: Operation::DescribeInstance,
            one: |inner, id| Box::pin(async move { inner.describe_instance(&id).await }),
            many: |inner, ids| Box::pin(async move { inner.describe_instances(&ids).await }),
        };
        self.call(&self.describes, senders, id).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        let senders = Senders {
            operation: Operation::StopInstance,
            one: |inner, id| Box::pin(async move { inner.stop_instance(&id).await }),
            many: |inner, ids| Box::pin(async move { inner.stop_instances(&ids).await }),
        };
        self.call(&self.stops, senders, id).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        let senders = Senders {
            operation: Operation::StartInstance,
            one: |inner, id| Box::pin(async move { inner.start_instance(&id).await }),
            many: |inner, ids| Box::pin(async move { inner.start_instances(&ids).await }),
        };
        self.call(&self.starts, senders, id).await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        let senders = Senders {
            operation: Operation::TerminateInstance,
            one: |inner, id| Box::pin(async move { inner.terminate_instance(&id).await }),
            many: |inner, ids| Box::pin(async move { inner.terminate_instances(&ids).await }),
        };
        self.call(&self.terminates, senders, id).await
    }
    async fn launch_instance(&self, config: &InstanceConfig) -> Result<InstanceInfo> {
        self.single.launch_instance(config).await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.single.list_instances(filter).await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.single.find_launch(token).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.single.launch_instances(config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.single.terminate_instances(ids).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.single.stop_instances(ids).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.single.start_instances(ids).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.single.describe_instances(ids).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.single.stream_instances(filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.single.update_tags(id, change).await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.single.reboot_instance(id, how).await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.single.resize_instance(id, to).await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.single.reimage_instance(id, image).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.single.console_output(id).await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.single.console_session(id).await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.single.snapshot_image(id, request).await
    }
}
