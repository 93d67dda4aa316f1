//! The queue in which the callers of one operation wait until their batch is sent.
//!
//! Owns which caller is in which batch, and when a batch is sent. It never sends anything itself:
//! the caller passes a function that does.
//!
//! A [lone](BatchQueue::enter) caller needs no batch. The life of a batch:
//!
//! 1. The first caller creates it; later callers [join](BatchQueue::submit) it while it is open.
//! 2. It is closed when it is full, or when its delay is over and no more callers arrive; see [`gathering_delay`].
//! 3. It is sent, and every caller takes its own results from the shared results.
//!
//! A batch is one [`Shared`] future: whichever of its callers is polled drives it. A caller that is woken
//! while another one polls the batch relies on that one to continue. If that one is dropped instead, it
//! wakes another caller. The batch is dropped when its last caller is dropped.

mod alone;

use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    num::NonZeroUsize,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Either, Shared, join_all, select},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

pub(super) use alone::Entered;

use crate::InstanceId;

/// How long a batch waits for more callers after the second one has joined it, if no batch is in
/// flight. It is less than the time of a call, and a lone caller does not wait at all.
const LINGER: Duration = Duration::from_millis(1);

/// How much longer for each instance of the batch before, up to half the window: where many callers
/// arrive one after the other, each batch gathers more of them than the one before.
const LINGER_PER_INSTANCE: Duration = Duration::from_micros(500);

/// How often a batch of one instance lets other tasks run before it is sent, so that calls that are made at the
/// same time are sent together. A lone caller without a batch does so once.
const YIELDS: usize = 3;

/// The results of a batch, by instance.
type Results<T> = BTreeMap<InstanceId, T>;

/// The future of a batch, which all its callers share.
type SharedBatch<T> = Shared<BoxFuture<'static, Arc<Results<T>>>>;

/// The batches of one operation.
pub(super) struct BatchQueue<T> {
    window: Duration,
    max_size: NonZeroUsize,
    state: Arc<Mutex<QueueState<T>>>,
}

struct QueueState<T> {
    /// How many batches were sent and have not returned.
    in_flight: usize,
    /// The batch that callers can still join.
    open: Option<OpenBatch<T>>,
    /// When the last batch was sent, and how many instances it had.
    last_sent: Option<(Instant, usize)>,
    /// When the last caller joined a batch.
    last_joined: Option<Instant>,
    /// The caller that is [alone](BatchQueue::enter) so far: its number and its instance.
    alone: Option<(u64, InstanceId)>,
    /// Callers that were alone, by number: the batch that another caller has made them join.
    joined: BTreeMap<u64, Joined<T>>,
    /// The number of the next caller that is alone.
    next_number: u64,
}

/// A batch that was not sent yet.
struct OpenBatch<T> {
    waiters: Arc<Waiters>,
    shared: SharedBatch<T>,
}

/// The callers that wait for a batch to be sent.
#[derive(Default)]
struct Waiters {
    /// How many callers wait for each instance. Empty once the batch was sent.
    by_id: Mutex<BTreeMap<InstanceId, usize>>,
    /// Whether the batch has its maximum size, so that nobody can join.
    full: AtomicBool,
    /// Signals a change after which the batch may be sent.
    changed: Notify,
    /// Signals that a caller was dropped, which may have been the one that was to poll the batch.
    left: Notify,
}

impl<T> fmt::Debug for BatchQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("BatchQueue")
            .field("window", &self.window)
            .field("max_size", &self.max_size)
            .field("in_flight", &state.in_flight)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> BatchQueue<T> {
    /// Creates an empty queue whose batches have at most `max_size` instances, and wait for `window`
    /// while another one is in flight. If the window is zero, no batch waits.
    pub(super) fn new(window: Duration, max_size: NonZeroUsize) -> Self {
        let state = QueueState {
            in_flight: 0,
            open: None,
            last_sent: None,
            last_joined: None,
            alone: None,
            joined: BTreeMap::new(),
            next_number: 0,
        };
        Self {
            window,
            max_size,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the most instances of a batch.
    pub(super) const fn max_size(&self) -> NonZeroUsize {
        self.max_size
    }

    /// Adds `ids` to the open batch, and to as many others as they need, which `send` sends. Returns
    /// the result for each id, in order: `None` if its batch returned nothing for it.
    pub(super) async fn submit(
        &self,
        ids: &[InstanceId],
        send: impl Fn(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        let joined = self.join(ids, &send).into_iter();
        join_all(joined.map(Joined::results)).await.concat()
    }

    /// Adds callers of `ids` to the open batch until it is full, then to new ones.
    fn join(
        &self,
        mut ids: &[InstanceId],
        send: &(impl Fn(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Clone + Send + 'static),
    ) -> Vec<Joined<T>> {
        let mut state = lock(&self.state);
        // A caller that was alone so far came first.
        if let Some((number, id)) = state.alone.take() {
            let ids = [id];
            let first = self.join_open(&mut state, &mut &ids[..], send);
            state.joined.insert(number, first);
        }
        let mut joined = Vec::with_capacity(1);
        while !ids.is_empty() {
            joined.push(self.join_open(&mut state, &mut ids, send));
        }
        joined
    }

    /// Adds a caller of as many of `ids` as fit to the open batch, or to a new one, and removes them from `ids`.
    fn join_open(
        &self,
        state: &mut QueueState<T>,
        ids: &mut &[InstanceId],
        send: &(impl Fn(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Clone + Send + 'static),
    ) -> Joined<T> {
        // All callers of an open batch may have been dropped. It was not sent, so it is replaced.
        let open = state.open.take().filter(|open| open.waiters.len() > 0);
        let batch = open.unwrap_or_else(|| self.open_batch(send.clone()));
        let guard = WaiterGuard::register(&batch.waiters, ids, self.max_size);
        *ids = &ids[guard.ids.len()..];
        state.last_joined = Some(Instant::now());
        let shared = batch.shared.clone();
        if batch.waiters.len() < self.max_size.get() {
            state.open = Some(batch);
        } else {
            batch.waiters.full.store(true, Ordering::Relaxed);
            batch.waiters.changed.notify_one();
        }
        Joined { guard, shared }
    }

    /// Creates a batch that waits for its [`gathering_delay`] and is then sent.
    fn open_batch(
        &self,
        send: impl FnOnce(Vec<InstanceId>) -> BoxFuture<'static, Results<T>> + Send + 'static,
    ) -> OpenBatch<T> {
        let waiters = Arc::new(Waiters::default());
        // Weak, because the queue holds the open batch: a strong reference would be a cycle.
        let state = Arc::downgrade(&self.state);
        let (window, own_waiters) = (self.window, Arc::clone(&waiters));
        let future = async move {
            wait_until_due(window, &state, &own_waiters).await;
            let in_flight = InFlightGuard::start(&state, &own_waiters);
            let ids = std::mem::take(&mut *lock(&own_waiters.by_id));
            let results = send(ids.into_keys().collect()).await;
            drop(in_flight);
            Arc::new(results)
        };
        OpenBatch {
            waiters,
            shared: future.boxed().shared(),
        }
    }
}

/// Waits until a batch must be sent. The delay is computed again after every change.
async fn wait_until_due<T>(
    window: Duration,
    state: &Weak<Mutex<QueueState<T>>>,
    waiters: &Waiters,
) {
    let created = Instant::now();
    if window.is_zero() {
        return;
    }
    for _ in 0..YIELDS {
        if !gathering_delay(window, state, waiters, created).is_zero() {
            break;
        }
        yield_to_other_tasks().await;
    }
    loop {
        let delay = gathering_delay(window, state, waiters, created);
        let mut remaining = delay.saturating_sub(created.elapsed());
        if remaining.is_zero() {
            if !is_growing(window, state, waiters, created) {
                return;
            }
            remaining = LINGER.min((window / 2).saturating_sub(created.elapsed()));
        }
        let _ = timeout(remaining, waiters.changed.notified()).await;
    }
}

/// Returns whether callers are still arriving, one right after the other, so that a batch whose delay is over waits a little
/// longer: at most for half the window in total.
fn is_growing<T>(
    window: Duration,
    state: &Weak<Mutex<QueueState<T>>>,
    waiters: &Waiters,
    created: Instant,
) -> bool {
    let Some(state) = state.upgrade() else {
        return false;
    };
    let last_joined = lock(&state).last_joined;
    last_joined.is_some_and(|at| at.elapsed() < LINGER / 2)
        && waiters.len() > 1
        && !waiters.full.load(Ordering::Relaxed)
        && created.elapsed() < window / 2
}

/// How long a batch waits for more callers after it was created.
///
/// - Not at all if it is full, or if it has one caller and so had the batch before.
/// - Else for [`LINGER`] and, if another batch was sent within the last window, for
///   [`LINGER_PER_INSTANCE`] of it.
/// - While batches are in flight: the window, doubled for each of them after the first. The doubling
///   matters because calls may queue in a layer below: if batches were sent at a constant rate, they
///   would pile up there and never get larger.
fn gathering_delay<T>(
    window: Duration,
    state: &Weak<Mutex<QueueState<T>>>,
    waiters: &Waiters,
    created: Instant,
) -> Duration {
    let Some(state) = state.upgrade() else {
        return Duration::ZERO;
    };
    let state = lock(&state);
    if waiters.full.load(Ordering::Relaxed) {
        return Duration::ZERO;
    }
    if let Some(others) = state.in_flight.checked_sub(1) {
        let doublings = u32::try_from(others).unwrap_or(u32::MAX);
        return window.saturating_mul(2_u32.saturating_pow(doublings));
    }
    let before = state.recent_size(window, created);
    if before <= 1 && waiters.len() <= 1 {
        return Duration::ZERO;
    }
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    let linger = LINGER.max(LINGER_PER_INSTANCE.saturating_mul(before));
    linger.min(window / 2)
}

impl<T> QueueState<T> {
    /// Returns how many instances the last batch had, if it was sent within the window before `time`; else zero.
    fn recent_size(&self, window: Duration, time: Instant) -> usize {
        let recent = |(at, _): &(Instant, usize)| time.saturating_duration_since(*at) < window;
        self.last_sent.filter(recent).map_or(0, |(_, size)| size)
    }
}

/// A caller of a batch.
pub(super) struct Joined<T> {
    guard: WaiterGuard,
    shared: SharedBatch<T>,
}

impl<T: Clone> Joined<T> {
    /// Returns the result for each id of this caller, in order: `None` if the batch returned nothing for it.
    pub(super) async fn results(mut self) -> Vec<Option<T>> {
        let results = loop {
            let left = pin!(self.guard.waiters.left.notified());
            match select(&mut self.shared, left).await {
                Either::Left((results, _)) => break results,
                Either::Right(((), _)) => {}
            }
        };
        self.guard.has_results = true;
        let each = self.guard.ids.iter().map(|id| results.get(id).cloned());
        each.collect()
    }
}

/// Lets the tasks run that are ready now. No timer is involved.
async fn yield_to_other_tasks() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Waiters {
    /// Returns how many instances are waited for.
    fn len(&self) -> usize {
        lock(&self.by_id).len()
    }
}

/// One caller that waits for instances of a batch. If it is dropped before the batch is sent, its
/// instances are not sent, except those for which another caller waits.
struct WaiterGuard {
    waiters: Arc<Waiters>,
    ids: Vec<InstanceId>,
    /// Whether the batch has ended, so that nobody has to poll it.
    has_results: bool,
}

impl WaiterGuard {
    /// Registers a caller for as many of `ids`, from the first, as fit into a batch of `max_size`.
    fn register(waiters: &Arc<Waiters>, ids: &[InstanceId], max_size: NonZeroUsize) -> Self {
        let mut by_id = lock(&waiters.by_id);
        let mut registered = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(callers) = by_id.get_mut(id) {
                *callers += 1;
            } else if by_id.len() < max_size.get() {
                by_id.insert(id.clone(), 1);
            } else {
                break;
            }
            registered.push(id.clone());
        }
        Self {
            waiters: Arc::clone(waiters),
            ids: registered,
            has_results: false,
        }
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        let mut by_id = lock(&self.waiters.by_id);
        for id in &self.ids {
            if let Some(callers) = by_id.get_mut(id) {
                *callers -= 1;
                if *callers == 0 {
                    by_id.remove(id);
                }
            }
        }
        drop(by_id);
        if !self.has_results {
            self.waiters.left.notify_one();
        }
    }
}

/// A batch in flight. When it ends or is dropped, the open batch may be due.
pub(super) struct InFlightGuard<T> {
    state: Arc<Mutex<QueueState<T>>>,
}

impl<T> InFlightGuard<T> {
    /// Counts the batch as in flight and closes it, so that no caller can join.
    fn start(state: &Weak<Mutex<QueueState<T>>>, waiters: &Arc<Waiters>) -> Option<Self> {
        // Callers borrow the queue, so it exists as long as any of them is polled.
        let state = state.upgrade()?;
        let mut locked = lock(&state);
        locked.in_flight += 1;
        locked.last_sent = Some((Instant::now(), waiters.len()));
        let is_this_batch = |open: &mut OpenBatch<T>| Arc::ptr_eq(&open.waiters, waiters);
        // The open batch holds the future that runs this code: drop it after the lock.
        let closed = locked.open.take_if(is_this_batch);
        drop(locked);
        drop(closed);
        Some(Self { state })
    }
}

impl<T> Drop for InFlightGuard<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.in_flight -= 1;
        if let Some(open) = &state.open {
            open.waiters.changed.notify_one();
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // No code panics while it holds one of these locks, and the values would be valid if it did.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
