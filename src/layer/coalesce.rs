//! Combines single calls and small batches into larger batches.
//!
//! Owns which describes, stops, starts and terminates share a batch call. A lone caller never waits,
//! and no caller gets data that was read before its call was made, or is affected when another
//! caller is dropped or fails.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{
    Layered, Request, Retry, RetryPolicy,
    batch_queue::{BatchQueue, Entered, Joined},
    coalesce_policy::CoalescePolicy,
    coalesce_send::{DESCRIBE, RetryOwner, START, STOP, Senders, TERMINATE, send_batch},
    retry_batch::{BatchItem, Round},
    retry_state::RetryState,
    telemetry,
};
use crate::{
    AccountId, BoxStream, Call, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId,
    InstanceConfig, InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus,
    InstanceType, LaunchRecord, LaunchToken, ListItem, Operation, ProvisionError, Reboot, Result,
    SnapshotRequest, TagChange,
};

/// Combines many calls into few batch calls.
///
/// A lone call is sent at once. Calls that are made at the same time are sent together: when a call
/// arrives and no other is in flight, all tasks that are ready run first, and if a second caller has
/// joined, the batch waits for a millisecond, or longer, up to half the window, if the batch just before
/// it was large or callers are still arriving. Calls
/// that arrive while another one is in flight wait, and are sent together as soon as no call is in
/// flight, the batch is full, or the window of its first caller is over. Callers of the same instance
/// share one result. A caller that is dropped while it waits is not sent; one that is dropped later
/// does not affect the others.
///
/// [`describe_instance`], [`stop_instance`], [`start_instance`], [`terminate_instance`] and their
/// batches are combined. A batch joins the others if it is smaller than the largest batch; thus ten
/// thousand [waits](crate::wait) for one instance each poll with few calls. All other calls are
/// passed on unchanged.
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
    /// The backend's name, which every request shares.
    provider: Arc<str>,
    /// How a caller retries its own item after others of its batch succeeded.
    retry: Option<RetryPolicy>,
    describes: Queue<InstanceStatus>,
    stops: Queue<()>,
    starts: Queue<InstanceInfo>,
    terminates: Queue<()>,
}

/// The batches of one operation.
type Queue<T> = BatchQueue<(Result<T>, RetryOwner)>;

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
        let provider = inner.capabilities().provider.as_str().into();
        Self {
            inner,
            provider,
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

    fn request<'a>(&'a self, operation: Operation, ids: &'a [InstanceId]) -> Request<'a> {
        let call = Call::new(Arc::clone(&self.provider), operation);
        Request::new(&*self.inner, call).about(ids)
    }

    /// Sends a call for one instance: at once if no other caller is there, else through the queue.
    async fn call<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        id: &InstanceId,
    ) -> Result<T> {
        let request = self.request(senders.single, std::slice::from_ref(id));
        let joined = match queue.enter(id).await {
            Entered::Alone(_in_flight) => {
                telemetry::batch_sent(&request, 1);
                return (senders.one)(&*self.single, id).await;
            }
            Entered::Joined(joined) => Some(joined),
            Entered::Busy => None,
        };
        let mut results = self.send_all(queue, senders, &request, joined).await;
        results
            .pop()
            .unwrap_or_else(|| Err(missing_result(&request)))
    }

    /// Sends a batch: through the queue if it leaves room for other callers, else on its own.
    async fn call_batch<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        ids: &[InstanceId],
    ) -> Vec<Result<T>> {
        if ids.is_empty() || ids.len() >= queue.max_size().get() {
            return (senders.many)(&*self.single, ids).await;
        }
        let request = self.request(senders.batch, ids);
        self.send_all(queue, senders, &request, None).await
    }

    /// Sends the instances of a request through the queue, unless they have `joined` a batch already, and retries
    /// those that it is the caller's turn to retry. Returns one result for each, in order.
    async fn send_all<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        request: &Request<'_>,
        mut joined: Option<Joined<(Result<T>, RetryOwner)>>,
    ) -> Vec<Result<T>> {
        let mut state = self.retry.as_ref().map(RetryState::new);
        let mut items: Vec<BatchItem<T>> =
            request.ids.iter().map(|_| BatchItem::default()).collect();
        // The indexes of the items that the next attempt sends.
        let mut open: Vec<usize> = (0..items.len()).collect();
        while !open.is_empty() {
            let ids: Vec<_> = open.iter().map(|at| request.ids[*at].clone()).collect();
            let attempt = state.as_ref().map_or(1, |state| state.attempt);
            let results = match joined.take() {
                Some(joined) => joined.results().await,
                None => self.submit(queue, senders, request, &ids, attempt).await,
            };
            let results = results
                .into_iter()
                .map(|result| own_result(request, result));
            let mut round = Round::default();
            for (at, (result, owner)) in open.into_iter().zip(results) {
                let error = items[at].set(result);
                if let (RetryOwner::Caller, Some(state)) = (owner, &state) {
                    round.add(at, error, request, state);
                }
            }
            let delay = state.as_mut().and_then(|state| {
                Some((state.next_delay(request, round.min_delay)?, state.attempt))
            });
            let (Some((delay, next_attempt)), Some(error)) = (delay, round.last_error) else {
                break;
            };
            telemetry::retrying(request, &error, next_attempt, delay.duration);
            delay.sleep().await;
            open = round.retry;
        }
        // The first attempt sent every item, so every item has a result.
        items.into_iter().filter_map(|item| item.result).collect()
    }

    /// Submits attempt `attempt` of a call to the queue. Returns the result of each id and who must
    /// retry it, or `None` for an id without a result.
    async fn submit<T: Clone + Send + Sync + 'static>(
        &self,
        queue: &Queue<T>,
        senders: Senders<T>,
        request: &Request<'_>,
        ids: &[InstanceId],
        attempt: u32,
    ) -> Vec<Option<(Result<T>, RetryOwner)>> {
        let batched = Arc::clone(&self.batched);
        // From the second attempt on, the caller retries: the layer below must not do so as well.
        let (single, owner): (Arc<dyn InstanceProvisioner>, _) = if attempt > 1 {
            (Arc::clone(&self.inner) as _, RetryOwner::Caller)
        } else {
            (Arc::clone(&self.single), RetryOwner::Below)
        };
        let call = request.call.with_operation(senders.single);
        let send = move |ids: Vec<InstanceId>| -> BoxFuture<'static, _> {
            let (single, batched) = (Arc::clone(&single), Arc::clone(&batched));
            let call = call.clone();
            Box::pin(async move {
                let request = Request::new(&*single, call).about(&ids);
                telemetry::batch_sent(&request, ids.len());
                let (results, owner) = match &*ids {
                    [id] => {
                        let sent = (senders.one)(&*single, id);
                        let result = if attempt > 1 {
                            telemetry::attempt(&request, attempt, sent).await
                        } else {
                            sent.await
                        };
                        (vec![result], owner)
                    }
                    _ => send_batch(&request, senders, &*batched).await,
                };
                let results = results.into_iter().map(|result| (result, owner));
                ids.iter().cloned().zip(results).collect::<BTreeMap<_, _>>()
            })
        };
        queue.submit(ids, send).await
    }
}

/// Returns the result of a batch for one of its callers. An error names the call that was sent; its caller may have
/// made the other one.
fn own_result<T>(
    request: &Request<'_>,
    result: Option<(Result<T>, RetryOwner)>,
) -> (Result<T>, RetryOwner) {
    match result {
        Some((result, owner)) => {
            let operation = request.operation();
            let result = result.map_err(|error| error.with_operation(operation));
            (result, owner)
        }
        None => (Err(missing_result(request)), RetryOwner::Below),
    }
}

/// Returns the error for an instance for which a batch has no result.
fn missing_result(request: &Request<'_>) -> ProvisionError {
    let message = "the backend returned no result for this instance of a batch";
    request.call.unexpected(Effect::Unknown, message)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<P: InstanceProvisioner + 'static> InstanceProvisioner for Coalesce<P> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn describe_instance(&self, id: &InstanceId) -> Result<InstanceStatus> {
        self.call(&self.describes, DESCRIBE, id).await
    }

    async fn stop_instance(&self, id: &InstanceId) -> Result<()> {
        self.call(&self.stops, STOP, id).await
    }

    async fn start_instance(&self, id: &InstanceId) -> Result<InstanceInfo> {
        self.call(&self.starts, START, id).await
    }

    async fn terminate_instance(&self, id: &InstanceId) -> Result<()> {
        self.call(&self.terminates, TERMINATE, id).await
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

    async fn account_id(&self) -> Result<Option<AccountId>> {
        self.single.account_id().await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.single.launch_instances(config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.call_batch(&self.terminates, TERMINATE, ids).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.call_batch(&self.stops, STOP, ids).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.call_batch(&self.starts, START, ids).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.call_batch(&self.describes, DESCRIBE, ids).await
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

    async fn delete_image(&self, image: &ImageId) -> Result<()> {
        self.single.delete_image(image).await
    }
}
