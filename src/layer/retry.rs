//! Sends calls again, as their errors advise.
//!
//! Owns when a call is retried, and which error its caller gets for all attempts together. It reads
//! nothing of an error but its advice and its effect, and it never sends a launch again whose outcome
//! is unknown, except with the same token.

use std::{borrow::Cow, num::NonZeroU32, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::time::Instant;

use super::{
    LaunchOutput, Layer, Request, RetryBudget,
    retry_batch::{BatchItem, Round, min_delay},
    retry_state::{FailureHistory, RetryState},
    telemetry,
};
use crate::{
    BoxStream, Effect, InstanceConfig, InstanceId, InstanceInfo, InstanceProvisionerExt as _,
    LaunchRecord, LaunchToken, ListItem, Operation, Result,
};

/// How often, how long and at which intervals to retry.
///
/// The delay doubles from [`first_delay`](Self::first_delay) to [`max_delay`](Self::max_delay), and
/// a random part of itself is added. A longer delay that the cloud requests is respected; if it ends
/// after the deadline, the call fails at once with the cloud's error.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use fleetwright::layer::RetryPolicy;
///
/// let policy = RetryPolicy::default()
///     .max_attempts(NonZeroU32::new(8).unwrap())
///     .timeout(Duration::from_secs(120))
///     .delays(Duration::from_millis(500), Duration::from_secs(10));
/// assert_eq!(policy.timeout, Duration::from_secs(120));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The most attempts of one call, including the first. Default: 5.
    pub max_attempts: NonZeroU32,
    /// How long after the start of the first attempt another one may start. The look-up of a launch
    /// whose outcome is unknown is made once even after that. Default: 5 minutes.
    pub timeout: Duration,
    /// The delay after the first attempt. Default: 200 ms.
    pub first_delay: Duration,
    /// The longest delay, before the random part is added. Default: 20 s.
    pub max_delay: Duration,
    /// The retries that all calls share. Default: [`RetryBudget::default`].
    pub budget: RetryBudget,
    /// A seed that makes the random part reproducible. Default: `None`.
    pub jitter_seed: Option<u64>,
}

impl Default for RetryPolicy {
    /// Five attempts within five minutes, with delays from 200 ms to 20 s.
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::MIN.saturating_add(4),
            timeout: Duration::from_secs(300),
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(20),
            budget: RetryBudget::default(),
            jitter_seed: None,
        }
    }
}

impl RetryPolicy {
    /// Sets the most attempts of one call, including the first.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: NonZeroU32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets how long after the start of the first attempt another one may start.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the first and the longest delay between attempts.
    #[must_use]
    pub const fn delays(mut self, first: Duration, max: Duration) -> Self {
        self.first_delay = first;
        self.max_delay = max;
        self
    }

    /// Sets the budget from which retries are taken. Clones of a budget share it.
    #[must_use]
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a seed that makes the random part of the delays reproducible.
    #[must_use]
    pub const fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Returns the delays between attempts, without end.
    pub(super) fn backoff(&self) -> ExponentialBackoff {
        const MIN_DELAY: Duration = Duration::from_millis(1);
        let first = self.first_delay.max(MIN_DELAY);
        let mut builder = ExponentialBuilder::new()
            .with_factor(2.0)
            .with_min_delay(first)
            .with_max_delay(self.max_delay.max(first))
            .without_max_times()
            .with_jitter();
        if let Some(seed) = self.jitter_seed {
            builder = builder.with_jitter_seed(seed);
        }
        builder.build()
    }
}

/// Retries failed calls.
///
/// - A read or an idempotent change is retried whenever its error allows it.
/// - A launch is retried with its token, or after an error without effect. If its last error could be
///   retried and its outcome is unknown, the layer looks its token up and returns the instances that
///   it finds, provided that their [fingerprint](InstanceInfo::config) is that of the config. If the
///   backend reports none, nothing observed may contradict the config.
/// - A reboot is retried only after an error without effect.
/// - Of a batch, the items whose errors allow it are retried, in one call.
/// - A stream is opened again as long as no item was read from it.
///
/// | call | is retried after an error with retry advice |
/// | --- | --- |
/// | reads, terminate, stop, start, tags, resize, reimage, console, snapshot | always |
/// | launch with a token | always, with the same token |
/// | launch without a token, reboot | only if the error had no effect |
///
/// The error of a call that finally failed is that of its last attempt, with the strongest effect and
/// the survivors of all attempts.
///
/// ```
/// use fleetwright::layer::{Layered, Retry, RetryPolicy};
/// use fleetwright_memory::MemoryCloud;
///
/// let retry = Retry::new(RetryPolicy::default());
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), retry);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Retry {
    policy: RetryPolicy,
    partial_batches: PartialBatches,
}

/// What happens to a batch in which some items succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartialBatches {
    /// The failed items are retried.
    #[default]
    Retry,
    /// The batch is returned, because different callers wait for different items.
    Return,
}

impl Retry {
    /// Creates a layer that retries as `policy` says.
    pub const fn new(policy: RetryPolicy) -> Self {
        let partial_batches = PartialBatches::Retry;
        Self {
            policy,
            partial_batches,
        }
    }

    /// Creates a layer that retries a batch only until one of its items succeeds.
    pub(super) const fn until_partial_success(policy: RetryPolicy) -> Self {
        let partial_batches = PartialBatches::Return;
        Self {
            policy,
            partial_batches,
        }
    }

    /// Sends a call until it succeeds or must not be retried.
    async fn send_until_done<'a, T>(
        &self,
        request: &Request<'a>,
        mut state: RetryState<'_>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync,
    ) -> Result<T> {
        let mut history = FailureHistory::default();
        loop {
            let result = telemetry::attempt(request, state.attempt, send()).await;
            let error = match result {
                Ok(value) => {
                    self.policy.budget.deposit();
                    return Ok(value);
                }
                Err(error) => history.merge(error),
            };
            let Some(delay) = state.next_delay(request, min_delay(request, &error)) else {
                return Err(error);
            };
            telemetry::retrying(request, &error, state.attempt, delay.duration);
            delay.sleep().await;
        }
    }

    /// Looks up a launch whose last attempt failed with an unknown outcome. Returns its instances if
    /// it launched all of them with `config`, else `None`.
    async fn settle<'a, T: LaunchOutput>(
        &self,
        request: &Request<'a>,
        config: &InstanceConfig,
        token: &'a LaunchToken,
        started: Instant,
    ) -> Option<T> {
        match self.find_launch(request, token, started).await {
            // The token may belong to another config, because no attempt has checked it.
            Ok(LaunchRecord::Found(found)) => found
                .iter()
                .all(|info| is_result_of(info, config, request.count))
                .then(|| T::complete(found, request.count))
                .flatten(),
            // "Not found" proves nothing inside the consistency window, and terminated instances are
            // not a result: the outcome is as unknown as before.
            Ok(LaunchRecord::Terminated(_) | LaunchRecord::NotFound) | Err(_) => None,
        }
    }

    /// Looks a token up, with retries until the deadline of its launch.
    async fn find_launch<'a>(
        &self,
        request: &Request<'a>,
        token: &'a LaunchToken,
        started: Instant,
    ) -> Result<LaunchRecord> {
        let (inner, count) = (request.inner, request.count);
        let is_batch = request.operation() == Operation::LaunchInstances;
        let call = request.call.with_operation(Operation::FindLaunch);
        let request = Request::new(inner, call).with_token(Some(token));
        let state = RetryState::started_at(&self.policy, started);
        let lookup = self.send_until_done(&request, state, || {
            Box::pin(async move {
                if is_batch {
                    inner.find_launches(token, count).await
                } else {
                    inner.find_launch(token).await
                }
            })
        });
        telemetry::settle_launch(&request, lookup).await
    }
}

impl Layer for Retry {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let state = RetryState::new(&self.policy);
            self.send_until_done(&request, state, send).await
        })
    }

    fn launch<'a, T: LaunchOutput + 'a>(
        &'a self,
        request: Request<'a>,
        config: &'a InstanceConfig,
        send: impl Fn(Cow<'a, InstanceConfig>) -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let state = RetryState::new(&self.policy);
            let started = state.started;
            let sent = self.send_until_done(&request, state, || send(Cow::Borrowed(config)));
            let error = match sent.await {
                Ok(launched) => return Ok(launched),
                Err(error) => error,
            };
            // An error that must not be retried says what is wrong, so it is returned as it is.
            let is_open = error.effect() == Effect::Unknown && error.retry().delay().is_some();
            match request.token.filter(|_| is_open) {
                Some(token) => {
                    let settled = self.settle(&request, config, token, started).await;
                    settled.ok_or(error)
                }
                None => Err(error),
            }
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let mut state = RetryState::new(&self.policy);
            let mut items: Vec<BatchItem<T>> =
                request.ids.iter().map(|_| BatchItem::default()).collect();
            // The indexes of the items that the next attempt sends.
            let mut open: Vec<usize> = (0..items.len()).collect();
            while !open.is_empty() {
                let sent = open.len();
                let ids: Cow<'_, [InstanceId]> = if sent == request.ids.len() {
                    Cow::Borrowed(request.ids)
                } else {
                    open.iter().map(|at| request.ids[*at].clone()).collect()
                };
                let results = telemetry::attempt_batch(&request, state.attempt, send(ids)).await;
                let mut round = Round::default();
                for (at, result) in open
                    .into_iter()
                    .zip(request.one_result_per_id(sent, results))
                {
                    round.add(at, items[at].set(result), &request, &state);
                }
                if round.any_success {
                    self.policy.budget.deposit();
                    if self.partial_batches == PartialBatches::Return {
                        break;
                    }
                }
                let delay = state.next_delay(&request, round.min_delay);
                let (Some(delay), Some(error)) = (delay, round.last_error) else {
                    break;
                };
                telemetry::retrying(&request, &error, state.attempt, delay.duration);
                delay.sleep().await;
                open = round.retry;
            }
            // The first attempt sent every item, so every item has a result.
            items.into_iter().filter_map(|item| item.result).collect()
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let opened = async move {
            let mut state = RetryState::new(&self.policy);
            loop {
                // A stream without items has ended already, and `chain` polls it once more.
                let mut items = open().fuse();
                let first = telemetry::attempt_stream(&request, state.attempt, items.next()).await;
                if let Some(Err(error)) = &first {
                    if let Some(delay) = state.next_delay(&request, min_delay(&request, error)) {
                        telemetry::retrying(&request, error, state.attempt, delay.duration);
                        delay.sleep().await;
                        continue;
                    }
                } else {
                    self.policy.budget.deposit();
                }
                return stream::iter(first).chain(items);
            }
        };
        stream::once(opened).flatten().boxed()
    }
}

/// Returns whether `info`, which the token of a launch has found, is a result of a launch of `count`
/// instances with `config`.
///
/// The fingerprint decides, if the backend reports it. Otherwise only values that clouds report as they
/// were requested are compared: tags may be added by a policy, and networks have several names.
fn is_result_of(info: &InstanceInfo, config: &InstanceConfig, count: NonZeroU32) -> bool {
    if let Some(launched) = info.config {
        // The default body of a batch launches every instance on its own.
        let mut item = config.clone();
        item.batch = Some(count);
        let possible = [config.fingerprint(count), item.fingerprint(NonZeroU32::MIN)];
        return possible.contains(&launched);
    }
    let (observed, requested) = (&info.placement, &config.placement);
    info.tags.contains_all(&config.tags)
        && matches_if_known(Some(&config.image), info.image.as_ref())
        && matches_if_known(Some(&config.instance_type), info.instance_type.as_ref())
        && (requested.zone.is_none() || observed.zone == requested.zone)
        && matches_if_known(
            requested.public_address.as_ref(),
            observed.public_address.as_ref(),
        )
        && matches_if_known(requested.market.as_ref(), observed.market.as_ref())
}

/// Returns whether two values are equal, or one of them is unknown.
fn matches_if_known<V: PartialEq>(requested: Option<&V>, observed: Option<&V>) -> bool {
    requested.is_none() || observed.is_none() || requested == observed
}
