//! Staying below a cloud's rate limits, instead of being thrown out for passing them.
//!
//! Owns the turn of every call. Callers wait in the order they came; who is dropped while waiting
//! has taken nothing. How fast an operation may go is given by a [`Rate`], is lowered when the
//! cloud throttles all the same (it shares its limits with strangers), and comes back with time.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use super::{Layer, Request, pace::Pace, signal};
use crate::{BoxStream, ErrorKind, InstanceId, ListItem, Operation, ProvisionError, Result};

/// How fast calls may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The time in which one call is earned.
    pub interval: Duration,
    /// How many calls may be saved up, to be made at once.
    pub burst: NonZeroU32,
    /// How many may be under way at once.
    pub max_concurrent: Option<NonZeroUsize>,
}

impl Rate {
    /// So many calls a second, of which a second's worth may be made at once.
    pub fn per_second(calls: NonZeroU32) -> Self {
        Self {
            interval: Duration::from_secs(1) / calls.get(),
            burst: calls,
            max_concurrent: None,
        }
    }

    /// One call in every `time`, and none saved up.
    pub const fn every(time: Duration) -> Self {
        Self {
            interval: time,
            burst: NonZeroU32::MIN,
            max_concurrent: None,
        }
    }

    /// Lets so many be saved up.
    #[must_use]
    pub const fn burst(mut self, calls: NonZeroU32) -> Self {
        self.burst = calls;
        self
    }

    /// Lets so many be under way at once.
    #[must_use]
    pub const fn max_concurrent(mut self, calls: NonZeroUsize) -> Self {
        self.max_concurrent = Some(calls);
        self
    }
}

/// Which operations share which rate.
#[derive(Clone, Debug)]
pub struct LimitPolicy {
    rules: Vec<(Vec<Operation>, Rate)>,
    pub(super) recovery: Duration,
}

impl LimitPolicy {
    /// No limit but the time that the cloud asks for when it throttles.
    pub const fn unlimited() -> Self {
        Self {
            rules: Vec::new(),
            recovery: Duration::from_secs(10),
        }
    }

    /// Lets `operations` together go at `rate`, and no longer as an earlier rule said. A single
    /// call and its batch are one operation, whichever is named; a list and its stream too.
    #[must_use]
    pub fn with(mut self, operations: &[Operation], rate: Rate) -> Self {
        self.rules.push((operations.to_vec(), rate));
        self
    }

    /// Gives an eighth of the rate back for every `time` that has passed without throttling.
    #[must_use]
    pub const fn recovery_time(mut self, time: Duration) -> Self {
        self.recovery = time;
        self
    }
}

impl Default for LimitPolicy {
    /// For each operation on its own, 20 reads a second and 100 at once, or 10 changes a second and
    /// 50 at once: below what the large clouds allow an account. Know your own limits, and set them.
    fn default() -> Self {
        let rate = |per_second: u32, burst: u32| {
            let many = |calls| NonZeroU32::new(calls).unwrap_or(NonZeroU32::MIN);
            Rate::per_second(many(per_second)).burst(many(burst))
        };
        let all = Operation::ALL
            .into_iter()
            .filter(|operation| lane(*operation) == *operation);
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

/// Lets calls through at the rates of its policy.
///
/// A batch of ids takes as many turns as the native calls that it needs; where those are more than
/// may be saved up, it goes when all is saved, and nobody else until the rest is earned. A list takes
/// one, whatever its pages, because nobody knows how many there will be. A stream is under way until
/// it is read to its end or dropped: where one call at a time may be, do not list while reading it.
#[derive(Debug)]
pub struct Limit {
    gates: BTreeMap<Operation, Arc<Gate>>,
}

impl Limit {
    /// Lets calls through as `policy` says.
    pub fn new(policy: &LimitPolicy) -> Self {
        let free = || Arc::new(Gate::new(None, policy.recovery));
        let mut gates: BTreeMap<_, _> = Operation::ALL
            .into_iter()
            .map(|operation| (lane(operation), free()))
            .collect();
        for (operations, rate) in &policy.rules {
            let gate = Arc::new(Gate::new(Some(*rate), policy.recovery));
            gates.extend(
                operations
                    .iter()
                    .map(|operation| (lane(*operation), Arc::clone(&gate))),
            );
        }
        Self { gates }
    }

    async fn enter(&self, request: &Request<'_>) -> Option<Pass> {
        let gate = self.gates.get(&lane(request.operation()))?;
        Some(Arc::clone(gate).enter(request).await)
    }
}

impl Layer for Limit {
    fn call<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn() -> BoxFuture<'a, Result<T>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let pass = self.enter(&request).await;
            let answer = send().await;
            tell(pass.as_ref(), &request, answer.as_ref().err());
            answer
        })
    }

    fn batch<'a, T: Send + 'a>(
        &'a self,
        request: Request<'a>,
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'a, Vec<Result<T>>> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Result<T>>> {
        Box::pin(async move {
            let pass = self.enter(&request).await;
            let answers = send(request.ids.to_vec()).await;
            for answer in &answers {
                tell(pass.as_ref(), &request, answer.as_ref().err());
            }
            answers
        })
    }

    fn stream<'a>(
        &'a self,
        request: Request<'a>,
        open: impl Fn() -> BoxStream<'a, Result<ListItem>> + Send + Sync + 'a,
    ) -> BoxStream<'a, Result<ListItem>> {
        let begun = async move {
            let pass = self.enter(&request).await;
            // The pass is kept until the stream is read to its end or dropped.
            open().inspect(move |item| tell(pass.as_ref(), &request, item.as_ref().err()))
        };
        stream::once(begun).flatten().boxed()
    }
}

/// The operation whose turn a call of `operation` takes.
const fn lane(operation: Operation) -> Operation {
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
        | Operation::UpdateTags
        | Operation::RebootInstance
        | Operation::ResizeInstance
        | Operation::ReimageInstance
        | Operation::ConsoleOutput
        | Operation::ConsoleSession
        | Operation::SnapshotImage => operation,
    }
}

/// Tells the gate that a call came through when the cloud throttled it.
fn tell(pass: Option<&Pass>, request: &Request<'_>, error: Option<&ProvisionError>) {
    let throttled = error.filter(|error| error.kind() == ErrorKind::Throttled);
    if let (Some(pass), Some(error)) = (pass, throttled) {
        let asked = error.retry().delay().unwrap_or_default();
        if let Some(rate) = pass.gate.pace.lower(pass.epoch, asked) {
            signal::rate_is(request, rate);
        }
    }
}

/// Where the calls of one or more operations wait for their turn.
#[derive(Debug)]
struct Gate {
    /// Whoever holds it is the next: waiting is fair, and one timer serves all.
    turn: tokio::sync::Mutex<()>,
    pace: Pace,
    slots: Option<Arc<Semaphore>>,
}

/// The right to make one call, given back when it is dropped.
#[derive(Debug)]
struct Pass {
    gate: Arc<Gate>,
    /// Which pace the call was let through at.
    epoch: u64,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Gate {
    fn new(rate: Option<Rate>, recovery: Duration) -> Self {
        let concurrent = rate.and_then(|rate| rate.max_concurrent);
        let slots =
            |most: NonZeroUsize| Arc::new(Semaphore::new(most.get().min(Semaphore::MAX_PERMITS)));
        Self {
            turn: tokio::sync::Mutex::default(),
            pace: Pace::new(rate, recovery),
            slots: concurrent.map(slots),
        }
    }

    async fn enter(self: Arc<Self>, request: &Request<'_>) -> Pass {
        let began = Instant::now();
        // The slot first: a call must not use up its turn and then wait for a place.
        let slot = match &self.slots {
            // The semaphore is never closed; if it were, nothing would be limited.
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        let turn = self.turn.lock().await;
        let taken = loop {
            match self.pace.take(request.native_calls()) {
                Ok(taken) => break taken,
                Err(until) => sleep_until(until).await,
            }
        };
        drop(turn);
        if let Some(rate) = taken.raised {
            signal::rate_is(request, rate);
        }
        signal::waited(request, began.elapsed());
        Pass {
            gate: self,
            epoch: taken.epoch,
            _slot: slot,
        }
    }
}
