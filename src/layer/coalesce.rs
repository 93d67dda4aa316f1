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

use super::{
    Layered, Request, Retry, RetryPolicy,
    course::{Course, Past},
    lane::Lane,
    signal,
};
use crate::{
    BoxStream, Capabilities, ConsoleOutput, ConsoleSession, Effect, ImageId, InstanceConfig,
    InstanceFilter, InstanceId, InstanceInfo, InstanceProvisioner, InstanceStatus, InstanceType,
    LaunchRecord, LaunchToken, ListItem, Operation, Reboot, Result, SnapshotRequest, TagChange,
};

/// How calls are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoalescePolicy {
    /// How long a caller waits at most for those who come after it, while another call of the same
    /// operation is under way; twice as long for each further one, so that calls which wait for their
    /// turn below do not pile up there.
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
    pub const fn max_size(mut self, instances: NonZeroUsize) -> Self {
        self.max_size = instances;
        self
    }
}

/// How a call is made of what it is about.
type Way<About, Answer> = fn(Arc<dyn InstanceProvisioner>, About) -> BoxFuture<'static, Answer>;

/// Makes few batch calls of many single ones.
///
/// The first caller's call is sent at once. Those who come while it is under way gather; they are
/// sent together when nothing is under way any more, when there are as many as a batch takes, or when
/// the window of their first is over. Callers of the same instance share its answer. Who is dropped while gathering is
/// not sent; who is dropped later changes nothing for the others.
///
/// Nothing is spawned: a shared call is carried on by whichever of its callers is polled, and is
/// dropped only when the last one is.
#[derive(Debug)]
pub struct Coalesce<P> {
    inner: Arc<P>,
    /// Where calls go that are not shared, and where those go that are.
    alone: Arc<dyn InstanceProvisioner>,
    shared: Arc<dyn InstanceProvisioner>,
    /// How what failed in a shared call is repeated for its own callers.
    retry: Option<RetryPolicy>,
    describes: Lane<(Result<InstanceStatus>, Fate)>,
    stops: Lane<(Result<()>, Fate)>,
    starts: Lane<(Result<InstanceInfo>, Fate)>,
    terminates: Lane<(Result<()>, Fate)>,
}

/// With whom an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing came through: it was repeated below as far as it may be.
    Common,
    /// Others came through, or nobody else was there.
    Own,
}

impl<P: InstanceProvisioner + 'static> Coalesce<P> {
    /// Gathers the calls on `inner` as `policy` says.
    ///
    /// Where `inner` repeats calls, those who share one wait until all of it was repeated:
    /// [`with_retry`](Self::with_retry) keeps them apart.
    pub fn new(inner: P, policy: CoalescePolicy) -> Self {
        let inner = Arc::new(inner);
        let all: Arc<dyn InstanceProvisioner> = Arc::clone(&inner) as _;
        Self::build(inner, Arc::clone(&all), all, policy, None)
    }

    /// Gathers the calls on `inner` as `policy` says, and repeats all calls on it as `retry` says.
    ///
    /// A shared call of which nothing came through is repeated as one call. Once something has, each
    /// is answered: what failed is then repeated for its own callers, and nobody else waits for it.
    pub fn with_retry(inner: P, policy: CoalescePolicy, retry: RetryPolicy) -> Self {
        let inner = Arc::new(inner);
        let alone = Layered::new(Arc::clone(&inner), Retry::new(retry.clone()));
        let shared = Layered::new(Arc::clone(&inner), Retry::answering_parts(retry.clone()));
        Self::build(
            inner,
            Arc::new(alone),
            Arc::new(shared),
            policy,
            Some(retry),
        )
    }

    fn build(
        inner: Arc<P>,
        alone: Arc<dyn InstanceProvisioner>,
        shared: Arc<dyn InstanceProvisioner>,
        policy: CoalescePolicy,
        retry: Option<RetryPolicy>,
    ) -> Self {
        let (window, size) = (
            policy.window,
            policy.max_size.min(inner.capabilities().batch_size),
        );
        Self {
            inner,
            alone,
            shared,
            retry,
            describes: Lane::new(window, size),
            stops: Lane::new(window, size),
            starts: Lane::new(window, size),
            terminates: Lane::new(window, size),
        }
    }

    /// What is below the layer.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// Answers `id`, and repeats it if it failed while others came through.
    async fn share<T: Clone + Send + Sync + 'static>(
        &self,
        lane: &Lane<(Result<T>, Fate)>,
        operation: Operation,
        id: &InstanceId,
        one: Way<InstanceId, Result<T>>,
        many: Way<Vec<InstanceId>, Vec<Result<T>>>,
    ) -> Result<T> {
        let request = Request::new(&*self.inner, operation).about(std::slice::from_ref(id));
        let mut course = self.retry.as_ref().map(Course::new);
        let mut past = Past::default();
        loop {
            let attempt = course.as_ref().map_or(1, |course| course.attempt);
            let (answer, fate) = self.ask(lane, &request, attempt, one, many).await;
            let error = match answer {
                Ok(value) => return Ok(value),
                Err(error) => past.with(error),
            };
            let course = course.as_mut().filter(|_| fate == Fate::Own);
            let pause = course.and_then(|course| {
                let pause = course.pause(&request, error.retry().delay())?;
                signal::repeats(&request, &error, course.attempt, pause.delay);
                Some(pause)
            });
            match pause {
                Some(pause) => pause.pass().await,
                None => return Err(error),
            }
        }
    }

    /// Answers what `request` is about out of a call that it shares with others, or of `one` if it is
    /// alone.
    async fn ask<T: Clone + Send + Sync + 'static>(
        &self,
        lane: &Lane<(Result<T>, Fate)>,
        request: &Request<'_>,
        attempt: u32,
        one: Way<InstanceId, Result<T>>,
        many: Way<Vec<InstanceId>, Vec<Result<T>>>,
    ) -> (Result<T>, Fate) {
        let operation = request.operation();
        let shared = Arc::clone(&self.shared);
        // What is repeated here already is not repeated below as well.
        let (alone, alone_fate): (Arc<dyn InstanceProvisioner>, _) = if attempt > 1 {
            (Arc::clone(&self.inner) as _, Fate::Own)
        } else {
            (Arc::clone(&self.alone), Fate::Common)
        };
        let send = move |ids: Vec<InstanceId>| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let provisioner = Arc::clone(&alone);
                let request = Request::new(&*provisioner, operation).about(&ids);
                signal::coalesced(&request, ids.len());
                let (answers, fate) = match &*ids {
                    [id] if attempt > 1 => {
                        let sent = signal::attempt(&request, attempt, one(alone, id.clone()));
                        (vec![sent.await], alone_fate)
                    }
                    [id] => (vec![one(alone, id.clone()).await], alone_fate),
                    _ => {
                        let answers = many(shared, ids.clone()).await;
                        let answers = request.fitted(ids.len(), answers);
                        let fate = if answers.iter().any(Result::is_ok) {
                            Fate::Own
                        } else {
                            Fate::Common
                        };
                        (answers, fate)
                    }
                };
                // Each caller has asked for one, so its error is of that.
                let named = answers
                    .into_iter()
                    .map(|answer| (answer.map_err(|e| e.with_operation(operation)), fate));
                ids.iter().cloned().zip(named).collect::<BTreeMap<_, _>>()
            })
        };
        let answer = match request.ids {
            [id] => lane.ask(id, send).await,
            _ => None,
        };
        let lost = || {
            let message = "the batch has no answer for it";
            let error = request.call.unexpected(Effect::Unknown, message);
            (Err(error), Fate::Common)
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
        self.alone.launch_instance(config).await
    }

    async fn list_instances(&self, filter: &InstanceFilter) -> Result<Vec<InstanceInfo>> {
        self.alone.list_instances(filter).await
    }

    async fn find_launch(&self, token: &LaunchToken) -> Result<LaunchRecord> {
        self.alone.find_launch(token).await
    }

    async fn launch_instances(
        &self,
        config: &InstanceConfig,
        count: NonZeroU32,
    ) -> Result<Vec<InstanceInfo>> {
        self.alone.launch_instances(config, count).await
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.alone.terminate_instances(ids).await
    }

    async fn stop_instances(&self, ids: &[InstanceId]) -> Vec<Result<()>> {
        self.alone.stop_instances(ids).await
    }

    async fn start_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceInfo>> {
        self.alone.start_instances(ids).await
    }

    async fn describe_instances(&self, ids: &[InstanceId]) -> Vec<Result<InstanceStatus>> {
        self.alone.describe_instances(ids).await
    }

    fn stream_instances<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> BoxStream<'a, Result<ListItem>> {
        self.alone.stream_instances(filter)
    }

    async fn update_tags(&self, id: &InstanceId, change: &TagChange) -> Result<()> {
        self.alone.update_tags(id, change).await
    }

    async fn reboot_instance(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.alone.reboot_instance(id, how).await
    }

    async fn resize_instance(&self, id: &InstanceId, to: &InstanceType) -> Result<()> {
        self.alone.resize_instance(id, to).await
    }

    async fn reimage_instance(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.alone.reimage_instance(id, image).await
    }

    async fn console_output(&self, id: &InstanceId) -> Result<ConsoleOutput> {
        self.alone.console_output(id).await
    }

    async fn console_session(&self, id: &InstanceId) -> Result<ConsoleSession> {
        self.alone.console_session(id).await
    }

    async fn snapshot_image(&self, id: &InstanceId, request: &SnapshotRequest) -> Result<ImageId> {
        self.alone.snapshot_image(id, request).await
    }
}
