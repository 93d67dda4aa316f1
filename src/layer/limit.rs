//! Keeps calls below a cloud's rate limits.
//!
//! Owns the order in which calls are sent. Callers wait in the order of their arrival, a caller that
//! is dropped before its turn has used no permit, and one that is not polled keeps no other from
//! being sent. A [`Rate`] sets how fast an operation may be
//! called. The layer lowers it when the cloud throttles anyway, because other programs use the same
//! account, and raises it again with time.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{Layer, Request, adaptive_rate::AdaptiveRate, permit_queue::PermitQueue, telemetry};
use crate::{BoxStream, ErrorKind, InstanceId, ListItem, Operation, ProvisionError, Result};

/// How many calls may be sent, and how many may be in flight.
///
/// ```
/// use std::{num::{NonZeroU32, NonZeroUsize}, time::Duration};
/// use fleetwright::layer::Rate;
///
/// let many = |n| NonZeroU32::new(n).unwrap();
/// // 10 calls per second, up to 50 at once after a pause, at most 8 in flight.
/// let rate = Rate::per_second(many(10))
///     .burst(many(50))
///     .max_concurrent(NonZeroUsize::new(8).unwrap());
/// assert_eq!(rate.interval, Duration::from_millis(100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The average time between two calls.
    pub interval: Duration,
    /// How many calls may be sent at once after a pause. Permits that are not used add up to this.
    pub burst: NonZeroU32,
    /// How many calls may be in flight at once. Default: `None`, no limit.
    pub max_concurrent: Option<NonZeroUsize>,
}

impl Rate {
    /// Creates a rate of `calls` per second, with a burst of the same number.
    pub fn per_second(calls: NonZeroU32) -> Self {
        Self {
            interval: Duration::from_secs(1) / calls.get(),
            burst: calls,
            max_concurrent: None,
        }
    }

    /// Creates a rate of one call per `interval`, with a burst of 1.
    pub const fn every(interval: Duration) -> Self {
        Self {
            interval,
            burst: NonZeroU32::MIN,
            max_concurrent: None,
        }
    }

    /// Sets how many calls may be sent at once after a pause.
    #[must_use]
    pub const fn burst(mut self, calls: NonZeroU32) -> Self {
        self.burst = calls;
        self
    }

    /// Sets how many calls may be in flight at once.
    #[must_use]
    pub const fn max_concurrent(mut self, calls: NonZeroUsize) -> Self {
        self.max_concurrent = Some(calls);
        self
    }
}

/// The rates of the operations.
///
/// Operations without a rate are limited only by the delay that the cloud requests when it throttles.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use fleetwright::{Operation, layer::{LimitPolicy, Rate}};
///
/// let many = |n| NonZeroU32::new(n).unwrap();
/// let policy = LimitPolicy::default()
///     // Launches and terminates share one rate.
///     .with(&[Operation::LaunchInstance, Operation::TerminateInstance], Rate::per_second(many(2)))
///     .recovery_time(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct LimitPolicy {
    rules: Vec<(Vec<Operation>, Rate)>,
    pub(super) recovery: Duration,
}

impl LimitPolicy {
    /// Creates a policy without rates. Only the delay that a throttling cloud requests applies.
    pub const fn unlimited() -> Self {
        Self {
            rules: Vec::new(),
            recovery: Duration::from_secs(10),
        }
    }

    /// Sets one `rate` that all `operations` share. It replaces their earlier rates.
    ///
    /// A single call and its batch are one operation here, whichever of the two is named, and so are
    /// a list and its stream.
    #[must_use]
    pub fn with(mut self, operations: &[Operation], rate: Rate) -> Self {
        self.rules.push((operations.to_vec(), rate));
        self
    }

    /// Sets how fast a rate recovers after the cloud throttled: one eighth of it per `time` without
    /// throttling. Default: 10 s.
    #[must_use]
    pub const fn recovery_time(mut self, time: Duration) -> Self {
        self.recovery = time;
        self
    }
}

impl Default for LimitPolicy {
    /// Each operation has its own rate: 20 per second with a burst of 100 for reads, 10 per second
    /// with a burst of 50 for changes. That is below what the large clouds allow for an account. Set
    /// the limits of your own account where you know them.
    fn default() -> Self {
        let rate = |per_second: u32, burst: u32| {
            let many = |calls| NonZeroU32::new(calls).unwrap_or(NonZeroU32::MIN);
            Rate::per_second(many(per_second)).burst(many(burst))
        };
        let all = Operation::ALL
            .into_iter()
            .filter(|operation| limited_as(*operation) == *operation);
        all.fold(Self::unlimited(), |policy, operation| {
            let rate = if operation.is_read() {
                rate(20, 100)
            } else {
                rate(10, 50)
            };
            policy.with(&[operation], rate)
        })
    }
}

/// Delays calls so that they stay below the rates of a policy.
///
/// - A call needs one permit for each native call, as many as the backend
///   [declares](crate::Capabilities::native_costs). If it needs more than the burst, it is sent when
///   the burst is full, and later calls wait until the rest is earned.
/// - A list needs permits for its first page only, because the number of pages is not known in
///   advance.
/// - Waiting holds no lock: a call that exists and is not polled keeps no other from being sent,
///   unless it holds one of the [`max_concurrent`](Rate::max_concurrent) calls in flight.
/// - A stream is in flight until it is read to its end or dropped. With one call in flight at most,
///   do not list while a stream is open: the list would wait for ever.
/// - A throttled call halves the rate, down to one eighth. It recovers with the
///   [recovery time](LimitPolicy::recovery_time) of the policy.
///
/// ```
/// use fleetwright::layer::{Layered, Limit, LimitPolicy};
/// use fleetwright_memory::MemoryCloud;
///
/// let limit = Limit::new(&LimitPolicy::default());
/// let provisioner = Layered::new(MemoryCloud::new().provisioner(), limit);
/// ```
#[derive(Debug)]
pub struct Limit {
    gates: BTreeMap<Operation, Arc<Gate>>,
}

impl Limit {
    /// Creates a layer with the rates of `policy`.
    pub fn new(policy: &LimitPolicy) -> Self {
        let unlimited = || Arc::new(Gate::new(None, policy.recovery));
        let mut gates: BTreeMap<_, _> = Operation::ALL
            .into_iter()
            .map(|operation| (limited_as(operation), unlimited()))
            .collect();
        for (operations, rate) in &policy.rules {
            let gate = Arc::new(Gate::new(Some(*rate), policy.recovery));
            gates.extend(
                operations
                    .iter()
                    .map(|operation| (limited_as(*operation), Arc::clone(&gate))),
            );
        }
        Self { gates }
    }

    async fn acquire(&self, request: &Request<'_>) -> Option<CallPermit> {
        let gate = self.gates.get(&limited_as(request.operation()))?;
        Some(Arc::clone(gate).acquire(request).await)
    }
}

impl Layer for Limit {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let permit = self.acquire(&request).await;
            let result = send().await;
            lower_if_throttled(permit.as_ref(), &request, result.as_ref().err());
            result
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Cow<'a, [InstanceId]>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let permit = self.acquire(&request).await;
            let results = send(Cow::Borrowed(request.ids)).await;
            for result in &results {
                lower_if_throttled(permit.as_ref(), &request, result.as_ref().err());
            }
            results
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let opened = async move {
            let permit = self.acquire(&request).await;
            // The closure owns the permit, so it ends with the stream.
            open().inspect(move |item| {
                lower_if_throttled(permit.as_ref(), &request, item.as_ref().err());
            })
        };
        stream::once(opened).flatten().boxed()
    }
}

/// Returns the operation whose rate applies to `operation`.
const fn limited_as(operation: Operation) -> Operation {
    match operation {
        Operation::LaunchInstances => Operation::LaunchInstance,
        Operation::TerminateInstances => Operation::TerminateInstance,
        Operation::StopInstances => Operation::StopInstance,
        Operation::StartInstances => Operation::StartInstance,
        Operation::DescribeInstances => Operation::DescribeInstance,
        Operation::StreamInstances => Operation::ListInstances,
        Operation::LaunchInstance
        | Operation::TerminateInstance
        | Operation::StopInstance
        | Operation::StartInstance
        | Operation::DescribeInstance
        | Operation::ListInstances
        | Operation::FindLaunch
        | Operation::AccountId
        | Operation::UpdateTags
        | Operation::RebootInstance
        | Operation::ResizeInstance
        | Operation::ReimageInstance
        | Operation::ConsoleOutput
        | Operation::ConsoleSession
        | Operation::SnapshotImage
        | Operation::DeleteImage => operation,
    }
}

/// Lowers the rate of a call if the cloud throttled it.
fn lower_if_throttled(
    permit: Option<&CallPermit>,
    request: &Request<'_>,
    error: Option<&ProvisionError>,
) {
    let throttled = error.filter(|error| error.kind() == ErrorKind::Throttled);
    if let (Some(permit), Some(error)) = (permit, throttled) {
        let delay = error.retry().delay().unwrap_or_default();
        if let Some(calls_per_second) = permit.gate.queue.rate.lower(permit.epoch, delay) {
            telemetry::rate_changed(request, calls_per_second);
        }
    }
}

/// The limits of one or more operations.
#[derive(Debug)]
struct Gate {
    queue: PermitQueue,
    slots: Option<Arc<Semaphore>>,
}

/// The permission to have one call in flight.
#[derive(Debug)]
struct CallPermit {
    gate: Arc<Gate>,
    /// How often the rate was lowered before the call was sent.
    epoch: u64,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Gate {
    fn new(rate: Option<Rate>, recovery: Duration) -> Self {
        let max_concurrent = rate.and_then(|rate| rate.max_concurrent);
        let slots =
            |most: NonZeroUsize| Arc::new(Semaphore::new(most.get().min(Semaphore::MAX_PERMITS)));
        Self {
            queue: PermitQueue::new(AdaptiveRate::new(rate, recovery)),
            slots: max_concurrent.map(slots),
        }
    }

    async fn acquire(self: Arc<Self>, request: &Request<'_>) -> CallPermit {
        let native_calls = request.native_calls();
        let mut waited = Duration::ZERO;
        // The slot comes first: a call must not take a permit and then wait for a slot.
        let slot = match &self.slots {
            Some(slots) => {
                let started = Instant::now();
                // The semaphore is never closed. If it were, there would be no limit.
                let slot = Arc::clone(slots).acquire_owned().await.ok();
                waited = started.elapsed();
                slot
            }
            None => None,
        };
        let permit = match self.queue.acquire_at_once(native_calls) {
            Some(permit) => permit,
            None => {
                let started = Instant::now();
                let permit = self.queue.acquire(native_calls).await;
                waited += started.elapsed();
                permit
            }
        };
        if let Some(calls_per_second) = permit.raised {
            telemetry::rate_changed(request, calls_per_second);
        }
        telemetry::limit_wait(request, waited);
        CallPermit {
            gate: self,
            epoch: permit.epoch,
            _slot: slot,
        }
    }
}
